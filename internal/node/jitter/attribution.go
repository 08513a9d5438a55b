// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package jitter

import (
	"slices"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
)

// sample is what the kernel had counted at some moment between two.
type sample struct {
	// BeganNanoseconds and EndedNanoseconds are the two, by CLOCK_MONOTONIC: reading takes time, and where the reader does not get a
	// CPU, it takes as long as the interruption that is looked for.
	BeganNanoseconds, EndedNanoseconds int64
	Counters                           *host.Counters
	// Preemptions are nonvoluntary_ctxt_switches of the measuring threads, by CPU. A thread whose count could not be read is not among them.
	Preemptions map[int]uint64
	// ManagementInterrupts are those of the CPU of the reader; nil when nobody counts them.
	ManagementInterrupts *uint64
}

// attribute gives every interruption of the result the counters that moved on its CPU between the last sample that ended before
// it and the first that began after it. The samples are in the order of time. Several counters may have moved: they are what it
// can have been, in the order of counted.Compare.
func attribute(result *Result, samples []sample) {
	for i := range result.CPUs {
		one := &result.CPUs[i]
		one.InterruptsFrom = interruptsFrom(samples)
		for j := range one.Worst {
			worst := &one.Worst[j]
			before, after, found := around(samples, worst.ClockNanoseconds, worst.ClockNanoseconds+worst.LengthNanoseconds)
			if found {
				worst.Causes = about(one.CPU, before, after)
			}
		}
		if len(samples) > 1 {
			first, last := &samples[0], &samples[len(samples)-1]
			one.Counted, one.CountedNanoseconds = over(one.CPU, first, last), last.EndedNanoseconds-first.BeganNanoseconds
		}
	}
}

// interruptsFrom is where the samples have their interrupts from.
func interruptsFrom(samples []sample) string {
	if len(samples) == 0 {
		return host.NoInterrupts
	}
	return samples[0].Counters.InterruptsFrom()
}

// around finds the samples that enclose a time.
func around(samples []sample, from, to int64) (before, after *sample, found bool) {
	for i := range samples {
		s := &samples[i]
		if s.EndedNanoseconds <= from {
			before = s
		}
		if s.BeganNanoseconds >= to {
			after = s
			break
		}
	}
	return before, after, before != nil && after != nil
}

// firmware is an event when the firmware interrupted the CPU of the reader between two samples. Measured CPUs are not asked while they are measured: it
// would make them run code; and an interrupt by the firmware stops all CPUs (Intel SDM, volume 3, chapter 33). It goes before all counters of the
// kernel, because it is far less frequent: that it came by chance is less likely.
func firmware(before, after *sample) []counted.Event {
	if was, now := before.ManagementInterrupts, after.ManagementInterrupts; was != nil && now != nil && *now > *was {
		return []counted.Event{counted.Firmwares(*now - *was)}
	}
	return nil
}

// about lists what can have interrupted a CPU between two samples.
func about(cpu int, before, after *sample) []counted.Event {
	events := append(firmware(before, after), after.Counters.Since(before.Counters, cpu)...)
	if count, known := preempted(cpu, before, after); known && count > 0 {
		events = append(events, counted.Preemptions(count))
	}
	slices.SortStableFunc(events, counted.Compare)
	return events
}

// over lists the counters of one CPU that moved between two samples, the most frequent first. Preemptions that were counted are among them even if there
// was none: where they are missing, nobody knows.
func over(cpu int, before, after *sample) []counted.Event {
	events := after.Counters.Since(before.Counters, cpu)
	if count, known := preempted(cpu, before, after); known {
		events = append(events, counted.Preemptions(count))
	}
	counted.Sort(events)
	return events
}

// preempted is how often the measuring thread of a CPU was preempted between two samples; false where one of them could not read it.
func preempted(cpu int, before, after *sample) (uint64, bool) {
	was, isFirst := before.Preemptions[cpu]
	now, isLast := after.Preemptions[cpu]
	if !isFirst || !isLast || now < was {
		return 0, false
	}
	return now - was, true
}
