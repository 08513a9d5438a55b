// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/traffic"
)

// judgeCounts injects loss, duplication and reordering, and compares what was found with what was done.
func judgeCounts(ctx context.Context, s *stage) ([]row, error) {
	cases := []struct {
		what string
		way  impairment
		done func(injected) uint64
		seen func(latency.Stream) uint64
	}{
		{"lost of %d messages", impairment{loss: 0.01}, func(i injected) uint64 { return i.lost }, func(s latency.Stream) uint64 { return s.Lost }},
		{"gaps, with a fifth of %d lost", impairment{loss: 0.2}, func(i injected) uint64 { return i.gaps }, func(s latency.Stream) uint64 { return s.Gaps }},
		{"duplicates of %d messages", impairment{duplicate: 0.01}, func(i injected) uint64 { return i.duplicated }, func(s latency.Stream) uint64 { return s.Duplicates }},
		{"reordered of %d messages", impairment{swap: 0.01}, func(i injected) uint64 { return i.swapped }, func(s latency.Stream) uint64 { return s.Reordered }},
	}
	rows := make([]row, 0, len(cases))
	for _, c := range cases {
		s.link.set(c.way)
		r := sweep(linkServer, 64, 5000)
		r.Duration = 4 * time.Second
		result, err := s.rates(ctx, r)
		if err != nil {
			return rows, err
		}
		s.link.flush()
		done, seen := c.done(s.link.did()), c.seen(result.Rates[0].Load)
		rows = append(rows, countRow(fmt.Sprintf(c.what, result.Rates[0].Load.Sent), done, seen))
	}
	s.link.set(impairment{})
	return rows, nil
}

// countRow holds what was seen of something against how often it was done.
func countRow(what string, done, seen uint64) row {
	return row{
		what: what, known: strconv.FormatUint(done, 10), measured: strconv.FormatUint(seen, 10),
		off: strconv.FormatInt(int64(seen)-int64(done), 10), bound: exact, holds: seen == done && done > 0,
	}
}

// judgeDelays adds a delay, and compares how much longer the fastest round trip is: what else a machine at work adds is in all others. A program that
// sleeps longer also takes longer to wake, most of all in a virtual machine, so sockperf is asked about the same delay.
func judgeDelays(ctx context.Context, s *stage) ([]row, error) {
	end, err := s.sockperfServer(ctx, linkServer)
	if err != nil {
		return nil, err
	}
	defer end()
	fastest := func(delay time.Duration) (ours, theirs time.Duration, err error) {
		s.link.set(impairment{delay: delay})
		d, err := s.pingPong(ctx, linkServer, func(r *traffic.Request) {
			r.RoundTrip, r.Waiting, r.WarmUpPings, r.Batch, r.MinimumTime, r.MaximumTime = true, latency.Block, 100, 100, 5*time.Second, 5*time.Second
		})
		if err != nil {
			return 0, 0, err
		}
		text, err := s.sockperf(ctx, linkServer, "-m", "64", "--full-rtt")
		if err != nil {
			return 0, 0, err
		}
		least, err := parseSockperf(text, minimumLine)
		return time.Duration(d.MinimumNanoseconds), time.Duration(least), err
	}
	ours, theirs, err := fastest(0)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, delay := range []time.Duration{time.Millisecond, 5 * time.Millisecond} {
		slow, theirSlow, err := fastest(delay)
		if err != nil {
			return rows, err
		}
		off, theirOff := float64(slow-ours)/float64(delay)-1, float64(theirSlow-theirs)/float64(delay)-1
		rows = append(rows, row{
			what: "delay added to the fastest round trip", known: delay.String(), measured: (slow - ours).String(), off: fmt.Sprintf("%s (sockperf: %s)", percent(off), percent(theirOff)),
			bound: "1 %, or as sockperf", holds: math.Abs(off) <= 0.01 || math.Abs(off-theirOff) <= 0.01,
		})
	}
	s.link.set(impairment{})
	return rows, nil
}

// judgeCapacity lets a token bucket pass so many messages, and searches for how many.
func judgeCapacity(ctx context.Context, s *stage) ([]row, error) {
	const bytes, headers, bits, probes = 1000, 42, 20_000_000, 100
	const bound = 0.02
	if err := s.tc(ctx, fmt.Sprintf("qdisc replace dev v0 root tbf rate %d burst 5000 limit 300000", bits)); err != nil {
		return nil, err
	}
	r := sweep(vethServer, bytes, 1)
	r.WarmUpPings, r.MaximumPings, r.Batch = 1, 100, 100
	result, err := traffic.SearchLoad(ctx, s.client, r, latency.SearchOptions{
		// What the bucket queues is below a hundredth of what it passes in a trial.
		Minimum: 200, Start: 2000, Maximum: 100_000, Granularity: 0.01, Sniff: 2 * time.Second, Search: 15 * time.Second, Confirm: 20 * time.Second, Retries: 2,
		Probes: probes, Budget: latency.Budget{LossPartsPerMillion: new(float64)},
	}, func(latency.Step) {}, func(traffic.Progress) {})
	if err := s.tc(ctx, "qdisc del dev v0 root"); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	// The bucket counts Ethernet, IP and UDP headers, and probes pass through it, too.
	known := float64(bits)/8/(bytes+headers) - probes
	off := float64(result.Load.BestPass)/known - 1
	return []row{{
		what: "capacity of a token bucket, messages a second", known: fmt.Sprintf("%.0f", known), measured: fmt.Sprintf("%d..%d", result.Load.BestPass, result.Load.LowestFail),
		off: percent(off) + " (" + string(result.Outcome.Reason) + ")", bound: "2 %", holds: math.Abs(off) <= bound && result.Outcome.Verdict == latency.Passed,
	}}, nil
}

// judgeStall stops the server for 20 ms of each 200 ms. Messages on a schedule wait as long as it is stopped, a tenth of them; a ping-pong
// sends one for each stall.
func judgeStall(ctx context.Context, s *stage) ([]row, error) {
	end := s.stall()
	naive, err := s.pingPong(ctx, vethServer, func(r *traffic.Request) {
		r.MinimumTime, r.MaximumTime, r.Waiting, r.RoundTrip = 5*time.Second, 5*time.Second, latency.Block, true
	})
	end()
	if err != nil {
		return nil, err
	}
	end = s.stall()
	r := sweep(vethServer, 64, 5000)
	r.Duration, r.RoundTrip = 10*time.Second, true
	result, err := s.rates(ctx, r)
	known := heldUp(end(), 0.99)
	if err != nil {
		return nil, err
	}
	hidden, _ := naive.At(99)
	shown, carried := result.Rates[0].FromIntended.At(99)
	off := float64(shown.Nanoseconds)/float64(known) - 1
	return []row{
		{what: "99 % of a ping-pong with a server that stalls", known: "hidden", measured: time.Duration(hidden.Nanoseconds).String(), bound: "below a tenth", holds: hidden.Nanoseconds < known.Nanoseconds()/10, off: "-"},
		{what: "99 % at 5000 messages a second, the same server", known: known.Round(time.Microsecond).String(), measured: time.Duration(shown.Nanoseconds).String(), off: percent(off), bound: "5 %", holds: carried && math.Abs(off) <= 0.05},
	}, nil
}

// stalled is when a server was stopped, and when it went on.
type stalled struct{ from, to time.Time }

// stall stops the server again and again until the function that it gives is called, which says when that was.
func (s *stage) stall() (end func() []stalled) {
	const long, every = 20 * time.Millisecond, 200 * time.Millisecond
	done, all := make(chan struct{}), make(chan []stalled)
	go func() {
		var was []stalled
		for {
			one := stalled{from: time.Now()}
			_ = s.server.Process.Signal(unix.SIGSTOP)
			time.Sleep(long)
			_ = s.server.Process.Signal(unix.SIGCONT)
			one.to = time.Now()
			was = append(was, one)
			select {
			case <-done:
				all <- was
				return
			case <-time.After(every - long):
			}
		}
	}()
	return func() []stalled {
		close(done)
		return <-all
	}
}

// heldUp is how long a share of messages that leave steadily are held up at most, by stalls alone.
func heldUp(stalls []stalled, share float64) time.Duration {
	const interval = 100 * time.Microsecond
	var waits []time.Duration
	if len(stalls) == 0 {
		return 0
	}
	at := 0
	for t := stalls[0].from; t.Before(stalls[len(stalls)-1].to); t = t.Add(interval) {
		for stalls[at].to.Before(t) {
			at++
		}
		waits = append(waits, max(0, stalls[at].to.Sub(t)))
		if t.Before(stalls[at].from) {
			waits[len(waits)-1] = 0
		}
	}
	slices.Sort(waits)
	return waits[int(share*float64(len(waits)))]
}

func percent(share float64) string { return fmt.Sprintf("%+.2f %%", 100*share) }
