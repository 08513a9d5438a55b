// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package jitter

import (
	"cmp"
	"slices"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
)

// Comparison is two results beside each other. Its JSON form is documented in docs/jitter.md.
type Comparison struct {
	// BeforeThresholdNanoseconds and AfterThresholdNanoseconds are the least lengths of an interruption.
	BeforeThresholdNanoseconds int64 `json:"beforeThresholdNanoseconds"`
	AfterThresholdNanoseconds  int64 `json:"afterThresholdNanoseconds"`
	// CPUs of both, in ascending order.
	CPUs []ComparedCPU `json:"cpus"`
}

// ComparedCPU is what two results have of a CPU; nil where one does not have it.
type ComparedCPU struct {
	CPU    int           `json:"cpu"`
	Before *ComparedSide `json:"before"`
	After  *ComparedSide `json:"after"`
}

// ComparedSide is what one result has of a CPU. Percentiles are nil that its interruptions do not carry, or where some are not recorded.
type ComparedSide struct {
	InterruptionsPerSecond float64 `json:"interruptionsPerSecond"`
	// NotRecorded are interruptions that had no room in the record. Where there are any, StolenPartsPerMillion and MaximumNanoseconds are of the
	// others: those of all are no less.
	NotRecorded           uint64  `json:"notRecorded"`
	StolenPartsPerMillion float64 `json:"stolenPartsPerMillion"`
	MedianNanoseconds     *int64  `json:"medianNanoseconds"`
	P99Nanoseconds        *int64  `json:"p99Nanoseconds"`
	MaximumNanoseconds    int64   `json:"maximumNanoseconds"`
	// Counted is how often the kernel counted, a second; nil where nothing was counted.
	Counted *CountedRates `json:"counted"`
}

// CountedRates is how often the kernel counted on a CPU, a second.
type CountedRates struct {
	// InterruptsPerSecond is nil where interrupts were not counted. DevicesOnly reports whether those of the kernel itself are not among them.
	InterruptsPerSecond *float64 `json:"interruptsPerSecond"`
	DevicesOnly         bool     `json:"devicesOnly,omitempty"`
	SoftirqsPerSecond   float64  `json:"softirqsPerSecond"`
	// PreemptionsPerSecond is nil where preemptions were not counted.
	PreemptionsPerSecond *float64 `json:"preemptionsPerSecond"`
}

// CompareResults puts two results beside each other.
func CompareResults(before, after *Result) Comparison {
	c := Comparison{BeforeThresholdNanoseconds: before.ThresholdNanoseconds, AfterThresholdNanoseconds: after.ThresholdNanoseconds, CPUs: []ComparedCPU{}}
	for i := range before.CPUs {
		c.CPUs = append(c.CPUs, ComparedCPU{CPU: before.CPUs[i].CPU, Before: sideOf(&before.CPUs[i])})
	}
	for i := range after.CPUs {
		one := &after.CPUs[i]
		at := slices.IndexFunc(c.CPUs, func(other ComparedCPU) bool { return other.CPU == one.CPU && other.After == nil })
		if at < 0 {
			at = len(c.CPUs)
			c.CPUs = append(c.CPUs, ComparedCPU{CPU: one.CPU})
		}
		c.CPUs[at].After = sideOf(one)
	}
	slices.SortStableFunc(c.CPUs, func(a, b ComparedCPU) int { return cmp.Compare(a.CPU, b.CPU) })
	return c
}

// DroppedOfPair says of two results what Result.Dropped does.
func DroppedOfPair(before, after *Result) []string {
	first, then := before.Dropped(), after.Dropped()
	sentences := make([]string, 0, len(first)+len(then))
	for _, one := range first {
		sentences = append(sentences, "before, "+one)
	}
	for _, one := range then {
		sentences = append(sentences, "after, "+one)
	}
	return sentences
}

func sideOf(one *CPUResult) *ComparedSide {
	percentile := func(percent float64) *int64 {
		at := slices.IndexFunc(one.OverInterruptions, func(p Percentile) bool { return p.Percent == percent })
		if at < 0 || one.NotRecorded > 0 {
			return nil
		}
		return &one.OverInterruptions[at].Nanoseconds
	}
	s := &ComparedSide{
		InterruptionsPerSecond: one.InterruptionsPerSecond, NotRecorded: one.NotRecorded, StolenPartsPerMillion: one.StolenPartsPerMillion,
		MedianNanoseconds: percentile(50), P99Nanoseconds: percentile(99), MaximumNanoseconds: one.MaximumNanoseconds,
	}
	if one.CountedNanoseconds > 0 {
		rates := ratesOf(one)
		s.Counted = &rates
	}
	return s
}

func ratesOf(one *CPUResult) CountedRates {
	rates := CountedRates{
		DevicesOnly: one.DevicesOnly(), SoftirqsPerSecond: one.CountedPerSecond(counted.Softirq), PreemptionsPerSecond: one.PreemptionsPerSecond(),
	}
	if one.InterruptsFrom != host.NoInterrupts {
		rates.InterruptsPerSecond = new(one.CountedPerSecond(counted.Interrupt))
	}
	return rates
}
