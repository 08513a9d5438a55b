// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux && (amd64 || arm64)

package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// parseOslat reads what oslat prints for one CPU: the number of gaps of at least so many microseconds, the longest,
// and what a turn of its loop costs on average.
func parseOslat(output string, thresholdMicroseconds int, duration time.Duration) (turn, error) {
	var measured turn
	var loops float64
	for line := range strings.Lines(output) {
		label, rest, found := strings.Cut(line, ":")
		values := strings.Fields(rest)
		if !found || len(values) == 0 {
			continue
		}
		value, err := strconv.ParseFloat(values[0], 64)
		if err != nil {
			continue
		}
		label = strings.TrimSpace(label)
		if label == "Maximum" {
			measured.maximumNanoseconds = value * 1e3
		}
		bucket, isBucket := strings.CutSuffix(label, " (us)")
		if !isBucket {
			continue
		}
		number, err := strconv.Atoi(bucket)
		if err != nil {
			return turn{}, fmt.Errorf("oslat names a bucket %q", bucket)
		}
		loops += value
		if number > thresholdMicroseconds {
			measured.interruptions += value
		}
	}
	if loops == 0 || measured.maximumNanoseconds == 0 {
		return turn{}, errors.New("oslat printed no histogram")
	}
	measured.loopNanoseconds = float64(duration.Nanoseconds()) / loops
	return measured, nil
}

// judge says in which way the two programs disagree.
func judge(ours, theirs turn) error {
	var disagreements []error
	if ratio := math.Abs(math.Log10(ours.maximumNanoseconds / theirs.maximumNanoseconds)); !(ratio < 1) {
		disagreements = append(disagreements, errors.New("the maxima are of different orders of magnitude"))
	}
	const tolerance = 0.1
	if difference := math.Abs(ours.interruptions-theirs.interruptions) / max(theirs.interruptions, 1); difference > tolerance {
		disagreements = append(disagreements, fmt.Errorf("the numbers of interruptions differ by %.0f %%", 100*difference))
	}
	if ours.loopNanoseconds > theirs.loopNanoseconds {
		disagreements = append(disagreements, errors.New("the probe's loop costs more than oslat's"))
	}
	return errors.Join(disagreements...)
}
