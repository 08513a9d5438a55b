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

// judgeQperf measures the mean half round trip of 64 bytes with both programs in turns; who goes first changes. qperf tells no median. It waits in the
// kernel, as ours does here.
func judgeQperf(ctx context.Context, s *stage) ([]row, error) {
	if _, err := exec.LookPath("qperf"); err != nil {
		return nil, errors.New("qperf is missing: install Debian's qperf")
	}
	server := exec.CommandContext(ctx, "ip", "netns", "exec", s.far, "qperf")
	if err := server.Start(); err != nil {
		return nil, fmt.Errorf("starting qperf: %w", err)
	}
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}()
	var rows []row
	for _, one := range []struct {
		transport latency.Transport
		test      string
	}{{latency.UDP, "udp_lat"}, {latency.TCP, "tcp_lat"}} {
		var ours, theirs []int64
		for round := range s.rounds {
			for _, first := range []bool{round%2 == 0, round%2 != 0} {
				if err := s.turnOfQperf(ctx, first, one.transport, one.test, &ours, &theirs); err != nil {
					return rows, err
				}
			}
		}
		ratio, err := latency.Compare(ours, theirs)
		if err != nil {
			return rows, err
		}
		rows = append(rows, row{
			what: fmt.Sprintf("mean of 64 bytes over %s, beside qperf in %d turns", one.transport, ratio.Pairs), known: fmt.Sprintf("%.0f ns", middle(theirs)),
			measured: fmt.Sprintf("%.0f ns", middle(ours)), off: fmt.Sprintf("%s (%s..%s)", percent(ratio.Value-1), percent(ratio.Low-1), percent(ratio.High-1)),
			bound: "2 %", holds: math.Abs(ratio.Value-1) <= 0.02,
		})
	}
	return rows, nil
}

// turnOfQperf measures once with one of the programs.
func (s *stage) turnOfQperf(ctx context.Context, isOurs bool, transport latency.Transport, test string, ours, theirs *[]int64) error {
	if !isOurs {
		mean, err := s.qperf(ctx, test)
		*theirs = append(*theirs, mean)
		return err
	}
	d, err := s.pingPong(ctx, vethServer, func(r *traffic.Request) {
		r.Transport, r.Waiting, r.MinimumTime, r.MaximumTime = transport, latency.Block, 3*time.Second, 3*time.Second
	})
	if err != nil {
		return err
	}
	*ours = append(*ours, int64(math.Round(d.MeanNanoseconds)))
	return nil
}

// qperf measures once, and gives the mean in nanoseconds. Its server may not be there at the first try.
func (s *stage) qperf(ctx context.Context, test string) (int64, error) {
	var out []byte
	var err error
	for range 5 {
		out, err = exec.CommandContext(ctx, "ip", "netns", "exec", s.near, "qperf", "--precision", "6", "-t", "3", "-m", "64", vethServer, test).CombinedOutput()
		if err == nil {
			return parseQperf(string(out))
		}
		time.Sleep(time.Second)
	}
	return 0, fmt.Errorf("qperf: %w: %s", err, out)
}

// parseQperf is the latency that qperf prints, in nanoseconds: half of the round trip.
func parseQperf(text string) (int64, error) {
	found := regexp.MustCompile(`latency += +([0-9.]+) (ns|us|ms|sec)\b`).FindStringSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("qperf prints no latency: %.300q", text)
	}
	value, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		return 0, fmt.Errorf("qperf prints latency %s: %w", found[1], err)
	}
	unit := map[string]time.Duration{"ns": time.Nanosecond, "us": time.Microsecond, "ms": time.Millisecond, "sec": time.Second}[found[2]]
	return int64(math.Round(value * float64(unit))), nil
}
