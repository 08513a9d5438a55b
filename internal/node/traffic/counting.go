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
	begin := time.Now()
	before, err := countersOf(ctx, h, cpu)
	if err != nil {
		return nil, err
	}
	result, err := measure()
	if err != nil {
		return nil, err
	}
	after, err := countersOf(ctx, h, cpu)
	if err != nil {
		return nil, err
	}
	// Over both readings, whichever moment of them the counters are of: a rate is not told too high.
	result.CountedNanoseconds = time.Since(begin).Nanoseconds()
	result.Counted, result.InterruptsFrom = after.Since(before.Counters, cpu), after.InterruptsFrom()
	result.Isolation = new(after.isolation.Since(before.isolation, cpu))
	return result, nil
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
