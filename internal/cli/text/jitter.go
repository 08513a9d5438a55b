// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/jitter"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// worstShown is how many of the longest interruptions of a CPU are shown.
const worstShown = 5

// Jitter draws what a measurement of jitter found: a line for each CPU, then the longest interruptions with what
// the kernel counted about that time.
func Jitter(result *jitter.Result, palette Palette, columns int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "interruptions of %s and longer · %s · records %s\n", nanoseconds(result.ThresholdNanoseconds), result.Scheduling, result.MemoryLocked)
	fmt.Fprintf(&b, "counter %.1f MHz, %.1f ppm from the kernel's clock\n\n", result.CounterHertz/1e6, result.CalibrationPartsPerMillion)
	b.WriteString(Table(
		[]string{"CPU", "LOOP", "PER SECOND", "STOLEN (ppm)", "MEDIAN", "P99", "P99.9", "MAXIMUM", "P99.99 OF TIME"},
		jitterRows(result), palette, columns))
	for i := range result.CPUs {
		b.WriteString("\n" + worst(&result.CPUs[i], palette, columns))
	}
	return b.String()
}

func jitterRows(result *jitter.Result) [][]string {
	rows := make([][]string, 0, len(result.CPUs))
	for i := range result.CPUs {
		one := &result.CPUs[i]
		rows = append(rows, []string{
			strconv.Itoa(one.CPU), fmt.Sprintf("%.1f ns", one.LoopNanoseconds), fmt.Sprintf("%.1f", one.InterruptionsPerSecond),
			least(one.NotRecorded) + fmt.Sprintf("%.1f", one.StolenPartsPerMillion), overInterruptions(one, 50), overInterruptions(one, 99),
			overInterruptions(one, 99.9), least(one.NotRecorded) + nanoseconds(one.MaximumNanoseconds), least(one.NotRecorded) + percentile(one.OverTime, 99.99),
		})
	}
	return rows
}

// least stands before what is no less of all interruptions than of those that are recorded.
func least(notRecorded uint64) string {
	if notRecorded > 0 {
		return "≥"
	}
	return ""
}

// overInterruptions is a percentile over all interruptions, which those that are recorded do not tell where there are others.
func overInterruptions(one *jitter.CPUResult, percent float64) string {
	if one.NotRecorded > 0 {
		return orDash("")
	}
	return percentile(one.OverInterruptions, percent)
}

// JitterPair puts two measurements of the same CPUs side by side, a line for each.
func JitterPair(before, after *jitter.Result, palette Palette, columns int) string {
	compared := jitter.CompareResults(before, after)
	var rows [][]string
	for i := range compared.CPUs {
		cpu := &compared.CPUs[i]
		for _, side := range []struct {
			when string
			of   *jitter.ComparedSide
		}{{"before", cpu.Before}, {"after", cpu.After}} {
			if side.of != nil {
				rows = append(rows, slices.Concat([]string{strconv.Itoa(cpu.CPU), side.when}, jitterCells(side.of)))
			}
		}
	}
	drawn := fmt.Sprintf("interruptions of %s and longer before, of %s and longer after\n\n", nanoseconds(compared.BeforeThresholdNanoseconds), nanoseconds(compared.AfterThresholdNanoseconds)) +
		Table([]string{"CPU", "", "PER SECOND", "STOLEN (ppm)", "MEDIAN", "P99", "MAXIMUM", "COUNTED BY THE KERNEL, PER SECOND"}, rows, palette, columns)
	if dropped := jitter.DroppedOfPair(before, after); len(dropped) > 0 {
		drawn += palette.Warn(strings.Join(dropped, "\n")) + "\n"
	}
	return drawn
}

// jitterCells are what one result has of a CPU.
func jitterCells(s *jitter.ComparedSide) []string {
	length := func(of *int64) string {
		if of == nil {
			return "-"
		}
		return nanoseconds(*of)
	}
	counted := orDash("")
	if s.Counted != nil {
		counted = s.Counted.Words()
	}
	return []string{
		fmt.Sprintf("%.1f", s.InterruptionsPerSecond), least(s.NotRecorded) + fmt.Sprintf("%.1f", s.StolenPartsPerMillion), length(s.MedianNanoseconds), length(s.P99Nanoseconds),
		least(s.NotRecorded) + nanoseconds(s.MaximumNanoseconds), counted,
	}
}

func percentile(all []jitter.Percentile, percent float64) string {
	for _, p := range all {
		if p.Percent == percent {
			return nanoseconds(p.Nanoseconds)
		}
	}
	return "-"
}

// nanoseconds writes a length with three digits.
func nanoseconds(length int64) string {
	d := time.Duration(length)
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}

// worst shows the longest interruptions of a CPU, the longest first.
func worst(one *jitter.CPUResult, palette Palette, columns int) string {
	title := palette.Title(fmt.Sprintf("CPU %d, the longest", one.CPU))
	if one.NotRecorded > 0 {
		title += palette.Warn(fmt.Sprintf(" (%d interruptions had no room in the record)", one.NotRecorded))
	}
	if one.DevicesOnly() {
		title = "/proc/interrupts is hidden here: interrupts of devices were counted, and those of the kernel's timer and between CPUs were not\n" + title
	}
	if one.CountedNanoseconds > 0 {
		title = "CPU " + strconv.Itoa(one.CPU) + ", what the kernel counted, per second: " + jitter.CountedWords(one) + "\n" + isolationOf(one) + managementOf(one) + title
	}
	if len(one.Worst) == 0 {
		return title + ": none\n"
	}
	longest := slices.Clone(one.Worst)
	slices.SortStableFunc(longest, func(a, b jitter.Interruption) int { return cmp.Compare(b.LengthNanoseconds, a.LengthNanoseconds) })
	var rows [][]string
	for _, i := range longest[:min(worstShown, len(longest))] {
		rows = append(rows, []string{nanoseconds(i.LengthNanoseconds), "+" + nanoseconds(i.AtNanoseconds), causes(i.Causes, one.HidesCauses())})
	}
	return title + "\n" + Table([]string{"LENGTH", "AT", "WHAT THE KERNEL COUNTED MEANWHILE"}, rows, palette, columns)
}

// isolationOf is a line about the run queue and the idle states of a CPU; "" when they were not asked.
func isolationOf(one *jitter.CPUResult) string {
	if one.Isolation == nil {
		return ""
	}
	return "CPU " + strconv.Itoa(one.CPU) + ", run queue and idle states: " +
		strings.Join(qualification.IsolationWords(qualification.IsolationOf([]counted.Isolation{*one.Isolation})), ", ") + "\n"
}

// managementOf is a line about system management interrupts; "" when they were not asked.
func managementOf(one *jitter.CPUResult) string {
	if one.ManagementInterrupts == nil {
		return ""
	}
	found := qualification.ManagementInterruptsOf(map[int][]counted.ManagementInterrupts{one.CPU: {*one.ManagementInterrupts}})
	return "CPU " + strconv.Itoa(one.CPU) + ", firmware: " + qualification.ManagementInterruptWords(found) + "\n"
}

// causes names the counters that moved, at most five.
func causes(all []counted.Event, hidden bool) string {
	const most = 5
	if len(all) == 0 && hidden {
		return "nothing that is seen here: the kernel's own interrupts, firmware (SMI), the hypervisor or the hardware"
	}
	if len(all) == 0 {
		return "nothing: firmware (SMI), the hypervisor or the hardware"
	}
	var names []string
	for _, cause := range all[:min(most, len(all))] {
		names = append(names, fmt.Sprintf("%s ×%d", cause.Name, cause.Count))
	}
	if more := len(all) - most; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
