// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/traffic"
)

// besideBound is how far our numbers may be from those of another program on the same path, as a share.
const besideBound = 0.02

// comparison is what is compared with which program, of messages of so many bytes.
type comparison struct {
	number, program string
	transport       latency.Transport
	bytes           int
}

// eachWay makes a row of each transport and size.
func (s *stage) eachWay(judge func(latency.Transport, int) (row, error)) ([]row, error) {
	var rows []row
	for _, transport := range []latency.Transport{latency.UDP, latency.TCP} {
		for _, bytes := range s.sizes {
			one, err := judge(transport, bytes)
			if err != nil {
				return rows, fmt.Errorf("%d bytes over %s: %w", bytes, transport, err)
			}
			rows = append(rows, one)
		}
	}
	return rows, nil
}

// compare measures with ours and with another program in turns.
func (s *stage) compare(ctx context.Context, c comparison, number func(*latency.Distribution) int64, other func() (int64, error)) (row, error) {
	ours, theirs, err := inTurns(s.rounds, func() (int64, error) {
		d, err := s.pingPong(ctx, s.host, func(r *traffic.Request) {
			r.Sizes, r.Transport, r.Waiting, r.MinimumTime, r.MaximumTime = []int{c.bytes}, c.transport, latency.Block, 3*time.Second, 3*time.Second
		})
		if err != nil {
			return 0, err
		}
		return number(d), nil
	}, other)
	if err != nil {
		return row{}, err
	}
	one, ratio, err := beside(fmt.Sprintf("%s of %d bytes over %s", c.number, c.bytes, c.transport), c.program, "%.0f ns", ours, theirs)
	one.judgeRatio(ratio, besideBound)
	return one, err
}

// inTurns measures with two programs so many times; who goes first changes.
func inTurns[T any](rounds int, first, second func() (T, error)) (firsts, seconds []T, err error) {
	for round := range rounds {
		for _, isFirst := range []bool{round%2 == 0, round%2 != 0} {
			measure, all := second, &seconds
			if isFirst {
				measure, all = first, &firsts
			}
			number, err := measure()
			if err != nil {
				return nil, nil, err
			}
			*all = append(*all, number)
		}
	}
	return firsts, seconds, nil
}

// beside is a row of ours beside another program's, without its bound.
func beside(what, program, format string, ours, theirs []int64) (row, latency.Ratio, error) {
	ratio, err := latency.Compare(ours, theirs)
	return row{
		what: fmt.Sprintf("%s, beside %s in %d turns", what, program, ratio.Pairs), known: fmt.Sprintf(format, middle(theirs)), measured: fmt.Sprintf(format, middle(ours)), off: offBy(ratio),
	}, ratio, err
}

// offBy is by how much a ratio differs from one, with its interval.
func offBy(ratio latency.Ratio) string {
	return fmt.Sprintf("%s (%s..%s)", percent(ratio.Value-1), percent(ratio.Low-1), percent(ratio.High-1))
}

// The reasons for a bound that is not shown. What is too wide may be within it or not.
const (
	tooWide = "interval too wide"
	beyond  = "the whole interval is beyond it"
)

// judgeRatio tells whether a ratio is within a bound: only its whole interval shows that. A share of 0.02 is from 98 % to 102 %.
func (r *row) judgeRatio(ratio latency.Ratio, bound float64) {
	r.bound = strconv.FormatFloat(100*bound, 'g', -1, 64) + " %"
	low, high := ratio.Low-1, ratio.High-1
	switch {
	case low >= -bound && high <= bound:
		r.holds = true
	case low > bound || high < -bound:
		r.why = beyond
	default:
		r.why = tooWide
	}
}

// busy is the share of time in which programs waited for a CPU from which on a machine is called busy: as much as what is to be shown.
const busy = besideBound

// blame says of intervals that are too wide that the machine was busy, when some program waited for a CPU for so large a share of the time.
func blame(rows []row, share float64) {
	for i := range rows {
		if rows[i].why == tooWide && share >= busy {
			rows[i].why += fmt.Sprintf(": the machine was busy (some program waited for a CPU in %.0f %% of the time)", 100*share)
		}
	}
}

// unknownPressure is what a kernel gives that does not count it (CONFIG_PSI).
const unknownPressure = time.Duration(-1)

// readPressure is for how long some program of this machine has waited for a CPU since the start of the machine (Documentation/accounting/psi.rst).
func readPressure() time.Duration {
	text, err := os.ReadFile("/proc/pressure/cpu")
	if err != nil {
		return unknownPressure
	}
	return parsePressure(string(text))
}

// parsePressure is the total of the line "some", in microseconds.
func parsePressure(text string) time.Duration {
	found := regexp.MustCompile(`(?m)^some .*\btotal=(\d{1,15})$`).FindStringSubmatch(text)
	if found == nil {
		return unknownPressure
	}
	microseconds, err := strconv.ParseInt(found[1], 10, 64)
	if err != nil {
		return unknownPressure
	}
	return time.Duration(microseconds) * time.Microsecond
}

// middle is the median of runs, as latency.Compare takes it.
func middle(runs []int64) float64 {
	ratio, err := latency.Compare(runs, ones(len(runs)))
	if err != nil {
		return math.NaN()
	}
	return ratio.Value
}

func ones(n int) []int64 { return slices.Repeat([]int64{1}, n) }
