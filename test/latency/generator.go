// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/traffic"
)

const (
	// saturating is a rate that no generator reaches from one CPU through the sockets of a kernel.
	saturating = 3_000_000
	// generating is for how long each generator sends.
	generating = 2 * time.Second
)

// generated is what a generator has sent, and what that took.
type generated struct {
	// perSecond is how many messages left in a second.
	perSecond float64
	// each is the CPU time that a message took, of program and kernel.
	each time.Duration
}

// judgeGenerator lets both programs send as many messages of 64 bytes as they can from one CPU, in turns. Ours notes when each was to
// leave and when it left; sockperf notes nothing in its throughput mode.
func judgeGenerator(ctx context.Context, s *stage) ([]row, error) {
	end, err := s.sockperfServer(ctx, vethServer)
	if err != nil {
		return nil, err
	}
	defer end()
	ours, theirs, err := inTurns(s.rounds, func() (generated, error) { return s.ours(ctx) }, func() (generated, error) { return s.theirs(ctx) })
	if err != nil {
		return nil, err
	}
	var rates, costs [2][]int64
	for which, all := range [][]generated{ours, theirs} {
		for _, found := range all {
			rates[which] = append(rates[which], int64(found.perSecond))
			costs[which] = append(costs[which], found.each.Nanoseconds())
		}
	}
	rate, _, err := beside("messages of 64 bytes sent in a second from one CPU", "sockperf", "%.0f", rates[0], rates[1])
	if err != nil {
		return nil, err
	}
	cost, _, err := beside("CPU time of the generator for a message", "sockperf", "%.0f ns", costs[0], costs[1])
	if err != nil {
		return nil, err
	}
	rate.bound, rate.holds = "half as many", middle(rates[0]) >= middle(rates[1])/2
	cost.bound, cost.holds = "twice as much", middle(costs[0]) <= middle(costs[1])*2
	return []row{rate, cost}, nil
}

// ours is what lowlatency-traffic sends.
func (s *stage) ours(ctx context.Context) (generated, error) {
	spent := filepath.Join(s.folder, "spent")
	program := filepath.Join(s.folder, "pinned")
	script := fmt.Sprintf("#!/bin/sh\ntaskset -c 0 %s \"$@\"\nstatus=$?\ntimes > %s\nexit $status\n", s.client, spent)
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		return generated{}, err
	}
	r := sweep(vethServer, 64, saturating)
	r.Duration = generating
	result, err := traffic.MeasureRates(ctx, program, r, latency.Budget{}, func(traffic.Progress) {})
	if err != nil {
		return generated{}, err
	}
	if len(result.Rates) != 1 || result.Rates[0].Load.Sent == 0 {
		return generated{}, fmt.Errorf("%s: %s", result.Outcome.Reason, result.Outcome.Message)
	}
	text, err := os.ReadFile(spent)
	if err != nil {
		return generated{}, err
	}
	took, err := parseTimes(string(text))
	sent := result.Rates[0]
	return generated{sent.AchievedPerSecond, took / time.Duration(sent.Load.Sent)}, err
}

// parseTimes is the CPU time of the children of a shell, which its command times prints in the second line, such as 0m1.25s 0m0.5s
// (POSIX.1-2017, times).
func parseTimes(text string) (time.Duration, error) {
	_, children, _ := strings.Cut(strings.TrimSpace(text), "\n")
	var sum time.Duration
	for field := range strings.FieldsSeq(children) {
		took, err := time.ParseDuration(field)
		if err != nil {
			return 0, fmt.Errorf("times of a shell: %w", err)
		}
		sum += took
	}
	if sum == 0 {
		return 0, fmt.Errorf("a shell prints no time of its children: %q", text)
	}
	return sum, nil
}

// theirs is what sockperf sends.
func (s *stage) theirs(ctx context.Context) (generated, error) {
	command := exec.CommandContext(ctx, "taskset", "-c", "0", "ip", "netns", "exec", s.near, "sockperf", "throughput", "-i", vethServer, "-p", sockperfPort,
		"-m", "64", "-t", strconv.Itoa(int(generating.Seconds())), "--mps=max")
	out, err := command.CombinedOutput()
	if err != nil {
		return generated{}, fmt.Errorf("sockperf: %w: %s", err, out)
	}
	sent, perSecond, err := parseThroughput(string(out))
	if err != nil {
		return generated{}, err
	}
	took := command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	return generated{perSecond, took / time.Duration(sent)}, nil
}

// parseThroughput is how many messages sockperf has sent, and how many in a second.
func parseThroughput(text string) (sent int64, perSecond float64, err error) {
	total := regexp.MustCompile(`Total of (\d+) messages sent`).FindStringSubmatch(text)
	rate := regexp.MustCompile(`Message Rate is (\d+)`).FindStringSubmatch(text)
	if total == nil || rate == nil {
		return 0, 0, fmt.Errorf("sockperf prints no rate: %.300q", text)
	}
	sent, err = strconv.ParseInt(total[1], 10, 64)
	if err == nil {
		perSecond, err = strconv.ParseFloat(rate[1], 64)
	}
	if err == nil && sent == 0 {
		err = errors.New("sockperf has sent nothing")
	}
	return sent, perSecond, err
}
