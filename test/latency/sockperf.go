// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// sockperfPort is where its server listens.
const sockperfPort = "11111"

// judgeSockperf compares medians of half round trips with both programs in turns.
func judgeSockperf(ctx context.Context, s *stage) ([]row, error) {
	if _, err := exec.LookPath("sockperf"); err != nil {
		return nil, errors.New("sockperf is missing: install Debian's sockperf")
	}
	return s.eachWay(func(transport latency.Transport, bytes int) (row, error) {
		return s.besideSockperf(ctx, transport, bytes)
	})
}

func (s *stage) besideSockperf(ctx context.Context, transport latency.Transport, bytes int) (row, error) {
	flags := []string{"-m", strconv.Itoa(bytes)}
	var server []string
	if transport == latency.TCP {
		flags, server = append(flags, "--tcp"), []string{"--tcp"}
	}
	end, err := s.sockperfServer(ctx, s.host, server...)
	if err != nil {
		return row{}, err
	}
	defer end()
	median := func(d *latency.Distribution) int64 { return d.MedianNanoseconds }
	return s.compare(ctx, comparison{"median", "sockperf", transport, bytes}, median, func() (int64, error) {
		text, err := s.sockperf(ctx, s.host, flags...)
		if err != nil {
			return 0, err
		}
		return parseSockperf(text, medianLine)
	})
}

// sockperfServer starts a server of sockperf.
func (s *stage) sockperfServer(ctx context.Context, host string, flags ...string) (end func(), err error) {
	return s.startServer(ctx, "sockperf", append([]string{"server", "-i", host, "-p", sockperfPort}, flags...)...)
}

// sockperf measures once, and gives what it prints. Its server may not be there at the first try.
func (s *stage) sockperf(ctx context.Context, host string, flags ...string) (string, error) {
	arguments := append([]string{"ping-pong", "-i", host, "-p", sockperfPort, "-t", "3"}, flags...)
	var out []byte
	var err error
	for range 5 {
		if out, err = s.nearby(ctx, "sockperf", arguments...).CombinedOutput(); err == nil {
			return string(out), nil
		}
		time.Sleep(time.Second)
	}
	return "", fmt.Errorf("sockperf: %w: %s", err, out)
}

// The lines of sockperf with the median and the minimum, in microseconds with three digits.
const (
	medianLine  = `percentile 50\.000`
	minimumLine = `<MIN> observation`
)

// parseSockperf is a number that sockperf prints, in nanoseconds.
func parseSockperf(text, line string) (int64, error) {
	found := regexp.MustCompile(line + ` = +(\d+\.\d+)`).FindStringSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("sockperf prints no line with %s: %.300q", line, text)
	}
	microseconds, err := strconv.ParseFloat(found[1], 64)
	return int64(math.Round(microseconds * 1000)), err
}
