// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package jitter

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// scales are those of all panels of a plot, so that they can be compared.
type scales struct {
	// length in nanoseconds, and rate in interruptions per second.
	length, rate decades
}

// decades is a logarithmic scale between two powers of ten.
type decades struct{ from, to int }

// at is the place of a value on the scale, from 0 to 1.
func (d decades) at(value float64) float64 {
	if value <= 0 {
		return 0
	}
	return min(1, max(0, (math.Log10(value)-float64(d.from))/float64(d.to-d.from)))
}

// decadesOf is the scale that holds all values.
func decadesOf(values []float64) decades {
	if len(values) == 0 {
		return decades{0, 1}
	}
	from, to := int(math.Floor(math.Log10(slices.Min(values)))), int(math.Ceil(math.Log10(slices.Max(values))))
	return decades{from, max(to, from+1)}
}

func scalesOf(results ...*Result) scales {
	var lengths, rates []float64
	for _, result := range results {
		for i := range result.CPUs {
			one := &result.CPUs[i]
			for _, bucket := range one.Histogram {
				if bucket.Count > 0 && bucket.FromNanoseconds > 0 && one.DurationNanoseconds > 0 {
					lengths = append(lengths, float64(bucket.FromNanoseconds), float64(bucket.ToNanoseconds))
					rates = append(rates, perSecond(bucket, one))
				}
			}
		}
	}
	return scales{length: decadesOf(lengths), rate: barsOf(rates)}
}

// barsOf is the scale of bars: the smallest needs some length.
func barsOf(values []float64) decades {
	d := decadesOf(values)
	if len(values) > 0 && slices.Min(values) < 1.5*math.Pow10(d.from) {
		d.from--
	}
	return d
}

// ticks are marks at the decades on the first share of an axis.
func (d decades) ticks(label func(float64) string, share float64) []tick {
	var all []tick
	for exponent := d.from; exponent <= d.to; exponent++ {
		all = append(all, tick{d.at(math.Pow10(exponent)) * share, label(math.Pow10(exponent))})
	}
	return all
}

func perSecond(bucket Bucket, one *CPUResult) float64 {
	return float64(bucket.Count) / (float64(one.DurationNanoseconds) / 1e9)
}

// On is what was measured on a CPU; nil when it was not.
func (r *Result) On(cpu int) *CPUResult {
	at := slices.IndexFunc(r.CPUs, func(one CPUResult) bool { return one.CPU == cpu })
	if at < 0 {
		return nil
	}
	return &r.CPUs[at]
}

// cpuNumbers are the CPUs of any of the results, in ascending order.
func cpuNumbers(results ...*Result) []int {
	var numbers []int
	for _, result := range results {
		for i := range result.CPUs {
			numbers = append(numbers, result.CPUs[i].CPU)
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// CountedWords says how often, per second, the kernel counted interrupts, softirqs and preemptions on a CPU.
func CountedWords(one *CPUResult) string {
	rates := ratesOf(one)
	return rates.Words()
}

// Words says the same in words.
func (r *CountedRates) Words() string {
	interrupts := "interrupts unknown"
	if r.InterruptsPerSecond != nil {
		interrupts = rate(*r.InterruptsPerSecond) + " interrupts"
	}
	if r.DevicesOnly {
		interrupts += " of devices"
	}
	preemptions := "preemptions unknown"
	if r.PreemptionsPerSecond != nil {
		preemptions = rate(*r.PreemptionsPerSecond) + " preemptions"
	}
	return strings.Join([]string{interrupts, rate(r.SoftirqsPerSecond) + " softirqs", preemptions}, ", ")
}

// rate writes a number per second with two or three digits.
func rate(value float64) string {
	switch {
	case value >= 1e6:
		return fmt.Sprintf("%.3gM", value/1e6)
	case value >= 1e4:
		return fmt.Sprintf("%.3gk", value/1e3)
	case value >= 100:
		return strconv.FormatFloat(math.Round(value), 'f', -1, 64)
	}
	return strconv.FormatFloat(value, 'g', 2, 64)
}

// percent writes parts per million as a share of a hundred, where that has digits.
func percent(partsPerMillion float64) string {
	if partsPerMillion < 100 {
		return fmt.Sprintf("%.2g ppm", partsPerMillion)
	}
	return fmt.Sprintf("%.2f %%", partsPerMillion/1e4)
}
