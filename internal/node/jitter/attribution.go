// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package jitter

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// sample is what the kernel had counted at one moment.
type sample struct {
	// ClockNanoseconds is the moment, by CLOCK_MONOTONIC.
	ClockNanoseconds int64
	Counters         *host.Counters
	// Preemptions are nonvoluntary_ctxt_switches of the measuring threads, by CPU.
	Preemptions map[int]uint64
}

// attribute gives every interruption of the result the counters that moved on its CPU between the last sample
// before it and the first after it. The samples are in the order of time. Several counters may have moved: they
// are what it can have been, the most frequent first.
func attribute(result *Result, samples []sample) {
	for i := range result.CPUs {
		one := &result.CPUs[i]
		one.InterruptsFrom = interruptsFrom(samples)
		for j := range one.Worst {
			worst := &one.Worst[j]
			before, after, found := around(samples, worst.ClockNanoseconds, worst.ClockNanoseconds+worst.LengthNanoseconds)
			if found {
				worst.Causes = moved(one.CPU, before, after)
			}
		}
		if len(samples) > 1 {
			first, last := &samples[0], &samples[len(samples)-1]
			one.Counted, one.CountedNanoseconds = moved(one.CPU, first, last), last.ClockNanoseconds-first.ClockNanoseconds
		}
	}
}

// interruptsFrom is where the samples have their interrupts from.
func interruptsFrom(samples []sample) string {
	if len(samples) == 0 || !samples[0].Counters.Interrupts.Lines.Known {
		return NoInterrupts
	}
	return samples[0].Counters.Interrupts.Lines.Source
}

// around finds the samples that enclose a time.
func around(samples []sample, from, to int64) (before, after *sample, found bool) {
	for i := range samples {
		s := &samples[i]
		if s.ClockNanoseconds <= from {
			before = s
		}
		if s.ClockNanoseconds >= to {
			after = s
			break
		}
	}
	return before, after, before != nil && after != nil
}

// moved lists the counters of one CPU that moved between two samples.
func moved(cpu int, before, after *sample) []Cause {
	causes := movedLines(CauseInterrupt, cpu,
		before.Counters.Interrupts.Columns, before.Counters.Interrupts.Lines.Value,
		after.Counters.Interrupts.Columns, after.Counters.Interrupts.Lines.Value)
	causes = append(causes, movedLines(CauseSoftirq, cpu,
		before.Counters.Softirqs.Columns, before.Counters.Softirqs.Lines.Value,
		after.Counters.Softirqs.Columns, after.Counters.Softirqs.Lines.Value)...)
	if was, now := before.Preemptions[cpu], after.Preemptions[cpu]; now > was {
		causes = append(causes, Cause{CauseContextSwitch, "nonvoluntary_ctxt_switches", now - was})
	}
	slices.SortStableFunc(causes, func(a, b Cause) int { return cmp.Compare(b.Count, a.Count) })
	return causes
}

// movedLines compares the lines of two counter tables in the column of a CPU.
func movedLines(kind CauseKind, cpu int, oldColumns []int, old []host.InterruptLine, newColumns []int, now []host.InterruptLine) []Cause {
	oldColumn, newColumn := slices.Index(oldColumns, cpu), slices.Index(newColumns, cpu)
	if oldColumn < 0 || newColumn < 0 {
		return nil
	}
	was := make(map[string]uint64, len(old))
	for _, line := range old {
		if oldColumn < len(line.Counts) {
			was[line.Name] = line.Counts[oldColumn]
		}
	}
	var causes []Cause
	for _, line := range now {
		if newColumn >= len(line.Counts) {
			continue
		}
		if count, known := was[line.Name]; known && line.Counts[newColumn] > count {
			causes = append(causes, Cause{kind, nameOf(line), line.Counts[newColumn] - count})
		}
	}
	return causes
}

// nameOf is the name of a counter with what the kernel says of it.
func nameOf(line host.InterruptLine) string {
	description := strings.Join(strings.Fields(line.Description), " ")
	if description == "" {
		return line.Name
	}
	return line.Name + " " + description
}
