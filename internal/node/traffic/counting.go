// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package traffic

import (
	"context"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// Counting measures, and puts into the result what the kernel of the host counted meanwhile on the CPU of the client. CPU -1 is none, of which
// nothing is counted. The files are read before and after, and not meanwhile, from whatever CPU this program runs on.
func Counting(ctx context.Context, h *host.Host, cpu int, measure func() (*latency.Result, error)) (*latency.Result, error) {
	if cpu < 0 {
		return measure()
	}
	before, err := h.ReadCounters(ctx)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	result, err := measure()
	if err != nil {
		return nil, err
	}
	elapsed := time.Since(begin)
	after, err := h.ReadCounters(ctx)
	if err != nil {
		return nil, err
	}
	result.Counted, result.CountedNanoseconds, result.InterruptsFrom = after.Since(before, cpu), elapsed.Nanoseconds(), after.InterruptsFrom()
	return result, nil
}
