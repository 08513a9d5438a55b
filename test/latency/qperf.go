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

// judgeQperf compares means of half round trips with both programs in turns. qperf tells no median. It waits in the kernel, as ours does here.
func judgeQperf(ctx context.Context, s *stage) ([]row, error) {
	if _, err := exec.LookPath("qperf"); err != nil {
		return nil, errors.New("qperf is missing: install Debian's qperf")
	}
	end, err := s.startServer(ctx, "qperf")
	if err != nil {
		return nil, err
	}
	defer end()
	tests := map[latency.Transport]string{latency.UDP: "udp_lat", latency.TCP: "tcp_lat"}
	mean := func(d *latency.Distribution) int64 { return int64(math.Round(d.MeanNanoseconds)) }
	return s.eachWay(func(transport latency.Transport, bytes int) (row, error) {
		return s.compare(ctx, comparison{"mean", "qperf", transport, bytes}, mean, func() (int64, error) { return s.qperf(ctx, tests[transport], bytes) })
	})
}

// qperf measures once, and gives the mean in nanoseconds. Its server may not be there at the first try.
func (s *stage) qperf(ctx context.Context, test string, bytes int) (int64, error) {
	var out []byte
	var err error
	for range 5 {
		out, err = s.nearby(ctx, "qperf", "--precision", "6", "-t", "3", "-m", strconv.Itoa(bytes), s.host, test).CombinedOutput()
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
