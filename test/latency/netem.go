// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/traffic"
)

// errNoNetem is what a kernel without the queueing discipline gives.
var errNoNetem = errors.New("this kernel has no netem (CONFIG_NET_SCH_NETEM); make lab-netem has a machine with one")

// netemCase is what the kernel's own network emulator does, and who knows how often.
type netemCase struct {
	what string
	// faults are the arguments of tc.
	faults string
	rate   uint64
	known  func(queue, *witness, latency.Stream) uint64
	seen   func(latency.Stream) uint64
}

// netemCases: the discipline counts what it drops and what it lets go, and the witness sees what arrives.
func netemCases() []netemCase {
	dropped := func(q queue, _ *witness, _ latency.Stream) uint64 { return q.Drops }
	doubled := func(q queue, _ *witness, s latency.Stream) uint64 { return max(q.Packets, s.Sent) - s.Sent }
	overtaken := func(_ queue, w *witness, _ latency.Stream) uint64 { return w.reordered }
	gaps := func(_ queue, w *witness, s latency.Stream) uint64 { return w.gaps(s.Sent) }
	return []netemCase{
		{"lost of %d messages, by netem", "loss 1%", 5000, dropped, func(s latency.Stream) uint64 { return s.Lost }},
		{"lost of %d messages in bursts, by netem", "loss gemodel 1% 20%", 5000, dropped, func(s latency.Stream) uint64 { return s.Lost }},
		{"gaps, with a fifth of %d lost by netem", "loss 20%", 5000, gaps, func(s latency.Stream) uint64 { return s.Gaps }},
		{"duplicates of %d messages, by netem", "duplicate 1%", 5000, doubled, func(s latency.Stream) uint64 { return s.Duplicates }},
		{"reordered of %d messages, by netem", "delay 3ms reorder 2%", 1000, overtaken, func(s latency.Stream) uint64 { return s.Reordered }},
	}
}

// judgeNetem lets the kernel's network emulator do to messages of a stream what the project's own link does elsewhere, and compares what was found
// with what the emulator and a socket that sees every frame have counted.
func judgeNetem(ctx context.Context, s *stage) ([]row, error) {
	if err := s.delay(ctx, 0); err != nil {
		if strings.Contains(err.Error(), "qdisc kind is unknown") {
			err = errors.Join(errNoNetem, err)
		}
		return nil, err
	}
	var rows []row
	for _, c := range netemCases() {
		one, err := s.judgeNetem(ctx, c)
		if err != nil {
			return rows, err
		}
		rows = append(rows, one)
	}
	delays, err := s.judgeNetemDelays(ctx)
	return append(rows, delays...), errors.Join(err, s.unimpair(ctx))
}

func (s *stage) judgeNetem(ctx context.Context, c netemCase) (row, error) {
	if err := s.impair(ctx, c.faults); err != nil {
		return row{}, err
	}
	w, err := watch(s.far, "v1")
	if err != nil {
		return row{}, err
	}
	r := sweep(vethServer, 64, c.rate)
	r.Duration = 4 * time.Second
	result, err := s.rates(ctx, r)
	if err := errors.Join(err, w.end()); err != nil {
		return row{}, err
	}
	q, err := s.queue(ctx)
	if err != nil {
		return row{}, err
	}
	load := result.Rates[0].Load
	known, seen := c.known(q, w, load), c.seen(load)
	return countRow(fmt.Sprintf(c.what, load.Sent), known, seen), nil
}

// judgeDelaysAway has netem on the way to another machine hold every packet back.
func judgeDelaysAway(ctx context.Context, s *stage) ([]row, error) {
	rows, err := s.judgeNetemDelays(ctx)
	return rows, errors.Join(err, s.unimpair(ctx))
}

// always is how long netem holds packets back in the measurements that others are compared with. A timer comes late, in an emulated machine by tenths of a
// millisecond: so there is one in all of them, and what it is late by is in none of their differences.
const always = time.Millisecond

// delayBound is how far a delay may be from what netem was told, as a share.
const delayBound = 0.01

// judgeNetemDelays holds every packet back for longer, and compares by how much longer the fastest round trip is.
func (s *stage) judgeNetemDelays(ctx context.Context) ([]row, error) {
	delays := []time.Duration{time.Millisecond, 5 * time.Millisecond}
	added := make([][]int64, len(delays))
	for range s.rounds {
		without, err := s.fastest(ctx, always)
		if err != nil {
			return nil, err
		}
		for i, delay := range delays {
			with, err := s.fastest(ctx, always+delay)
			if err != nil {
				return nil, err
			}
			added[i] = append(added[i], int64(with-without))
		}
	}
	var rows []row
	for i, delay := range delays {
		one, err := delayRow(delay, added[i])
		if err != nil {
			return rows, err
		}
		rows = append(rows, one)
	}
	return rows, nil
}

// delayRow holds how much longer round trips took against how much longer netem held them.
func delayRow(delay time.Duration, added []int64) (row, error) {
	ratio, err := latency.Compare(added, slices.Repeat([]int64{int64(delay)}, len(added)))
	if err != nil {
		return row{}, fmt.Errorf("a delay of %s more: %w", delay, err)
	}
	one := row{
		what: fmt.Sprintf("delay that netem added to the fastest round trip, in %d turns", ratio.Pairs), known: delay.String(),
		measured: time.Duration(math.Round(middle(added))).String(), off: offBy(ratio),
	}
	one.judgeRatio(ratio, delayBound)
	return one, nil
}

// fastest is the fastest round trip with a delay, of as many with a long one as with a short one: the least of fewer is longer.
func (s *stage) fastest(ctx context.Context, delay time.Duration) (time.Duration, error) {
	if err := s.delay(ctx, delay); err != nil {
		return 0, err
	}
	d, err := s.pingPong(ctx, s.host, func(r *traffic.Request) {
		r.RoundTrip, r.Waiting, r.WarmUpPings, r.Batch = true, latency.Spin, 100, 100
		r.MinimumTime, r.MaximumTime, r.MaximumPings = 0, time.Minute, 500
	})
	if err != nil {
		return 0, err
	}
	return time.Duration(d.MinimumNanoseconds), nil
}

// impair does something to the messages of streams alone, on their way to the server: to those whose header has the number of the first stream of a client in
// the byte that ofStream looks at. The rest goes through another band.
func (s *stage) impair(ctx context.Context, faults string) error {
	if err := s.unimpair(ctx); err != nil {
		return err
	}
	for _, command := range []string{
		"qdisc replace dev v0 root handle 1: prio bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
		"qdisc add dev v0 parent 1:2 handle 2: netem limit 100000 " + faults,
		"filter add dev v0 parent 1: protocol ip u32 match ip protocol 17 0xff match u8 1 0xff at 34 flowid 1:2",
	} {
		if err := s.tc(ctx, command); err != nil {
			return err
		}
	}
	return nil
}

// delay holds everything back.
func (s *stage) delay(ctx context.Context, delay time.Duration) error {
	if err := s.unimpair(ctx); err != nil {
		return err
	}
	return s.tc(ctx, fmt.Sprintf("qdisc replace dev %s root netem delay %dus", s.device, delay.Microseconds()))
}

// unimpair takes away what is there, if anything is.
func (s *stage) unimpair(ctx context.Context) error {
	return errors.Join(s.tc(ctx, "qdisc replace dev "+s.device+" root pfifo"), s.tc(ctx, "qdisc del dev "+s.device+" root"))
}

func (s *stage) tc(ctx context.Context, command string) error {
	if out, err := s.nearby(ctx, "tc", strings.Fields(command)...).CombinedOutput(); err != nil {
		return fmt.Errorf("tc %s: %w: %s", command, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// queue is what a queueing discipline has counted: what it let go, copies among them, and what it dropped.
type queue struct {
	Kind    string `json:"kind"`
	Packets uint64 `json:"packets"`
	Drops   uint64 `json:"drops"`
}

// queue reads what netem has counted.
func (s *stage) queue(ctx context.Context) (queue, error) {
	out, err := s.nearby(ctx, "tc", "-s", "-j", "qdisc", "show", "dev", s.device).Output()
	if err != nil {
		return queue{}, fmt.Errorf("asking tc what netem did: %w", err)
	}
	return parseQueues(out)
}

func parseQueues(text []byte) (queue, error) {
	var all []queue
	if err := json.Unmarshal(text, &all); err != nil {
		return queue{}, fmt.Errorf("reading what tc says of netem: %w", err)
	}
	at := slices.IndexFunc(all, func(q queue) bool { return q.Kind == "netem" })
	if at < 0 {
		return queue{}, fmt.Errorf("tc tells of no netem: %.200s", text)
	}
	return all[at], nil
}
