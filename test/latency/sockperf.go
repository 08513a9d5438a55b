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
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/traffic"
)

// sockperfPort is where its server listens.
const sockperfPort = "11111"

// judgeSockperf measures the median half round trip of 64 bytes with both programs in turns; who goes first changes.
func judgeSockperf(ctx context.Context, s *stage) ([]row, error) {
	if _, err := exec.LookPath("sockperf"); err != nil {
		return nil, errors.New("sockperf is missing: install Debian's sockperf")
	}
	var rows []row
	for _, transport := range []latency.Transport{latency.UDP, latency.TCP} {
		ours, theirs, err := s.inTurns(ctx, transport)
		if err != nil {
			return rows, err
		}
		ratio, err := latency.Compare(ours, theirs)
		if err != nil {
			return rows, err
		}
		rows = append(rows, row{
			what: fmt.Sprintf("median of 64 bytes over %s, beside sockperf in %d turns", transport, ratio.Pairs), known: fmt.Sprintf("%.0f ns", middle(theirs)),
			measured: fmt.Sprintf("%.0f ns", middle(ours)), off: fmt.Sprintf("%s (%s..%s)", percent(ratio.Value-1), percent(ratio.Low-1), percent(ratio.High-1)),
			bound: "2 %", holds: math.Abs(ratio.Value-1) <= 0.02,
		})
	}
	return rows, nil
}

func (s *stage) inTurns(ctx context.Context, transport latency.Transport) (ours, theirs []int64, err error) {
	var flags []string
	if transport == latency.TCP {
		flags = []string{"--tcp"}
	}
	end, err := s.sockperfServer(ctx, vethServer, flags...)
	if err != nil {
		return nil, nil, err
	}
	defer end()
	for round := range s.rounds {
		for _, first := range []bool{round%2 == 0, round%2 != 0} {
			if first {
				d, err := s.pingPong(ctx, vethServer, func(r *traffic.Request) {
					r.Transport, r.Waiting, r.MinimumTime, r.MaximumTime = transport, latency.Block, 3*time.Second, 3*time.Second
				})
				if err != nil {
					return nil, nil, err
				}
				ours = append(ours, d.MedianNanoseconds)
				continue
			}
			text, err := s.sockperf(ctx, vethServer, flags...)
			if err != nil {
				return nil, nil, err
			}
			median, err := parseSockperf(text, medianLine)
			if err != nil {
				return nil, nil, err
			}
			theirs = append(theirs, median)
		}
	}
	return ours, theirs, nil
}

// sockperfServer starts a server of sockperf.
func (s *stage) sockperfServer(ctx context.Context, host string, flags ...string) (end func(), err error) {
	server := exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", s.far, "sockperf", "server", "-i", host, "-p", sockperfPort}, flags...)...)
	if err := server.Start(); err != nil {
		return nil, fmt.Errorf("starting sockperf: %w", err)
	}
	return func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}, nil
}

// sockperf measures once, and gives what it prints. Its server may not be there at the first try.
func (s *stage) sockperf(ctx context.Context, host string, flags ...string) (string, error) {
	arguments := append([]string{"netns", "exec", s.near, "sockperf", "ping-pong", "-i", host, "-p", sockperfPort, "-m", "64", "-t", "3"}, flags...)
	var out []byte
	var err error
	for range 5 {
		if out, err = exec.CommandContext(ctx, "ip", arguments...).CombinedOutput(); err == nil {
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

// middle is the median of runs, as latency.Compare takes it.
func middle(runs []int64) float64 {
	ratio, err := latency.Compare(runs, ones(len(runs)))
	if err != nil {
		return math.NaN()
	}
	return ratio.Value
}

func ones(n int) []int64 {
	all := make([]int64, n)
	for i := range all {
		all[i] = 1
	}
	return all
}
