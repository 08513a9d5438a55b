// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package jitter

import (
	"errors"
	"fmt"
	"time"
)

const (
	// maximumDuration of a measurement.
	maximumDuration = 24 * time.Hour
	// minimumThreshold is above what the loop itself costs on any processor that is supported.
	minimumThreshold = 100 * time.Nanosecond
	// maximumRoom bounds the memory of one CPU's record to 64 MiB.
	maximumRoom = 4 << 20
	// maximumPriority is one below that of the kernel's own threads that must not starve.
	maximumPriority = 98
)

// Request says what is measured.
type Request struct {
	// CPUs are measured at the same time, one thread on each.
	CPUs []int `json:"cpus"`
	// Duration of the measurement, besides the warm-up.
	Duration time.Duration `json:"duration"`
	// WarmUp runs the loop before the measurement: the CPU reaches its frequency, and the rate of interruptions
	// says how much room their record needs.
	WarmUp time.Duration `json:"warmUp"`
	// Threshold is the least length of an interruption.
	Threshold time.Duration `json:"threshold"`
	// Priority runs the threads as SCHED_FIFO with this priority; 0 runs them as SCHED_OTHER, as a program on an
	// isolated CPU usually runs. With SCHED_FIFO the kernel's throttle takes 50 ms of each second unless
	// kernel.sched_rt_runtime_us is -1.
	Priority int `json:"priority,omitempty"`
}

// Check returns an error that names the value that cannot be measured with.
func (r *Request) Check() error {
	switch {
	case len(r.CPUs) == 0:
		return errors.New("no CPU is given to measure")
	case r.Duration <= 0 || r.Duration > maximumDuration:
		return fmt.Errorf("the duration %s is not between 0 and %s", r.Duration, maximumDuration)
	case r.WarmUp < 0 || r.WarmUp > r.Duration:
		return fmt.Errorf("the warm-up of %s is not between 0 and the duration of %s", r.WarmUp, r.Duration)
	case r.Threshold < minimumThreshold || r.Threshold > time.Second:
		return fmt.Errorf("the threshold %s is not between %s and 1s", r.Threshold, minimumThreshold)
	case r.Priority < 0 || r.Priority > maximumPriority:
		return fmt.Errorf("the priority %d is not between 0 and %d", r.Priority, maximumPriority)
	}
	return nil
}

// room is how many interruptions a record is made for, when the warm-up saw so many: twice the rate, within bounds.
func (r *Request) room(seen uint64) int {
	const least = 1 << 16
	if r.WarmUp <= 0 {
		return maximumRoom
	}
	expected := 2 * float64(seen) * (float64(r.Duration) / float64(r.WarmUp))
	return int(min(max(expected, least), maximumRoom))
}
