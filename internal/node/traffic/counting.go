// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package traffic

import (
	"context"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// Counting measures, and puts into the result what the kernel of the host counted meanwhile on the CPU of the client. CPU -1 is none, of which
// nothing is counted. The files are read before and after, and not meanwhile, from whatever CPU this program runs on.
func Counting(ctx context.Context, h *host.Host, cpu int, measure func() (*latency.Result, error)) (*latency.Result, error) {
	if cpu < 0 {
		return measure()
	}
	begun, err := beginCounting(ctx, h, cpu)
	if err != nil {
		return nil, err
	}
	result, err := measure()
	if err != nil {
		return nil, err
	}
	counts, err := begun.end(ctx, h)
	if err != nil {
		return nil, err
	}
	result.Counted, result.CountedNanoseconds = counts.Counted, counts.CountedNanoseconds
	result.InterruptsFrom, result.Isolation = counts.InterruptsFrom, counts.Isolation
	return result, nil
}

// begunCounting is what a CPU had counted when a measurement began.
type begunCounting struct {
	cpu    int
	at     time.Time
	before counters
}

// beginCounting reads what a CPU has counted; the only error is that the context has ended.
func beginCounting(ctx context.Context, h *host.Host, cpu int) (*begunCounting, error) {
	begun := &begunCounting{cpu: cpu, at: time.Now()}
	var err error
	begun.before, err = countersOf(ctx, h, cpu)
	return begun, err
}

// end is what the CPU has counted since.
func (b *begunCounting) end(ctx context.Context, h *host.Host) (latency.Counts, error) {
	after, err := countersOf(ctx, h, b.cpu)
	if err != nil {
		return latency.Counts{}, err
	}
	return latency.Counts{
		CPU: b.cpu, Counted: after.Since(b.before.Counters, b.cpu), InterruptsFrom: after.InterruptsFrom(),
		// Over both readings, whichever moment of them the counters are of: a rate is not told too high.
		CountedNanoseconds: time.Since(b.at).Nanoseconds(), Isolation: new(after.isolation.Since(b.before.isolation, b.cpu)),
	}, nil
}

// counters are those that tell of a CPU.
type counters struct {
	*host.Counters
	isolation *host.Isolation
}

func countersOf(ctx context.Context, h *host.Host, cpu int) (counters, error) {
	isolation, err := h.ReadIsolation(ctx, cpus.Of(cpu), nil)
	if err != nil {
		return counters{}, err
	}
	read, err := h.ReadCounters(ctx)
	return counters{read, isolation}, err
}
