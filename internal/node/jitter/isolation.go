// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package jitter

import (
	"context"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
)

// isolation are the first and the last reading of the scheduler's counters and of idle states within a measurement. Outside it the threads that measure
// do not run, so that their CPUs are idle.
type isolation struct {
	first, last *host.Isolation
	// lastAt is when the last reading was begun.
	lastAt time.Duration
}

// isolationInterval is the time between two readings, of which the last one counts: idle states are a file each.
func isolationInterval(measured time.Duration) time.Duration {
	const most, parts = time.Second, 5
	return min(most, measured/parts)
}

// take reads the counters, when it is time to; passed is since the threads were told to begin. The first reading waits for an interval, too: threads that
// got no CPU at once have one by then.
func (i *isolation) take(ctx context.Context, options *Options, passed time.Duration) error {
	if passed < i.lastAt+isolationInterval(options.Request.Duration) {
		return nil
	}
	begun := time.Now()
	now, err := options.Host.ReadIsolation(ctx, options.Placement.Measured, i.last)
	if err != nil {
		return err
	}
	i.add(now, passed, passed+time.Since(begun), options.Request.Duration)
	return nil
}

// add keeps a reading that was begun and ended within the measurement.
func (i *isolation) add(now *host.Isolation, begun, ended, duration time.Duration) {
	switch {
	case ended > duration:
	case i.first == nil:
		i.first, i.last, i.lastAt = now, now, begun
	default:
		i.last, i.lastAt = now, begun
	}
}

// of is what was counted on a CPU.
func (i *isolation) of(cpu int) *counted.Isolation {
	if i.first == i.last {
		return new(counted.Uncounted(cpu, "the measurement was too short to read counters twice"))
	}
	return new(i.last.Since(i.first, cpu))
}
