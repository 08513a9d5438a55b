// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package jitter

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
)

// The colours of bars before and after.
const colourBefore, colourAfter = "#8c959f", "#2f6f9f"

// mostNames is how many counters a panel names; what is less frequent is one bar together.
const mostNames = 6

// CompareCounted draws only what the kernel counted in two measurements, per second: what compares when the processor is shared or
// emulated, so that lengths tell of the machine below. CPUs of which either measurement has no counts say so.
func CompareCounted(before, after *Result) string {
	numbers := cpuNumbers(before, after)
	c := newCanvas(len(numbers))
	for i, cpu := range numbers {
		c.counted(i, cpu, before.On(cpu), after.On(cpu))
	}
	return c.end("The axis of each panel is logarithmic. What was not counted at all has no bar.")
}

// pair is how often something was counted, per second, before and after; uncounted where it was not.
type pair struct {
	name          string
	before, after float64
}

// uncounted is the rate of what nobody counted.
const uncounted = -1

// counted draws a row: by kind, and by the names of the kernel's counters.
func (c *canvas) counted(row, cpu int, before, after *CPUResult) {
	but := ""
	if isCounted(before, after) && !before.CountsAlike(after) {
		but = ", but interrupts: not the same were"
	}
	c.pairs(0, row, fmt.Sprintf("CPU %d: what the kernel counted%s", cpu, but), pairsByKind(before, after))
	c.pairs(1, row, fmt.Sprintf("CPU %d: which counters", cpu), pairsByName(before, after))
}

// isCounted reports whether there is anything to compare.
func isCounted(all ...*CPUResult) bool {
	return !slices.ContainsFunc(all, func(one *CPUResult) bool { return one == nil || one.CountedNanoseconds <= 0 })
}

func pairsByKind(before, after *CPUResult) []pair {
	if !isCounted(before, after) {
		return nil
	}
	alike := before.CountsAlike(after)
	var all []pair
	for _, kind := range []struct {
		kind counted.Kind
		name string
	}{{counted.Interrupt, "interrupts"}, {counted.Softirq, "softirqs"}} {
		if kind.kind == counted.Interrupt && !alike {
			continue
		}
		all = append(all, pair{kind.name, before.CountedPerSecond(kind.kind), after.CountedPerSecond(kind.kind)})
	}
	return append(all, pair{"preemptions", ptr.Deref(before.PreemptionsPerSecond(), uncounted), ptr.Deref(after.PreemptionsPerSecond(), uncounted)})
}

// pairsByName are the counters of interrupts and softirqs, the most frequent first, at most mostNames, the last of which is the sum of
// the others where there are more.
func pairsByName(before, after *CPUResult) []pair {
	if !isCounted(before, after) {
		return nil
	}
	alike := before.CountsAlike(after)
	var all []pair
	add := func(one *CPUResult, set func(*pair, float64)) {
		for _, cause := range one.Counted {
			if cause.Kind == counted.ContextSwitch || cause.Kind == counted.Interrupt && !alike {
				continue
			}
			name := cause.Title()
			at := slices.IndexFunc(all, func(p pair) bool { return p.name == name })
			if at < 0 {
				all, at = append(all, pair{name: name}), len(all)
			}
			set(&all[at], float64(cause.Count)/(float64(one.CountedNanoseconds)/1e9))
		}
	}
	add(before, func(p *pair, value float64) { p.before += value })
	add(after, func(p *pair, value float64) { p.after += value })
	slices.SortStableFunc(all, func(a, b pair) int {
		return cmp.Or(cmp.Compare(max(b.before, b.after), max(a.before, a.after)), cmp.Compare(a.name, b.name))
	})
	if len(all) <= mostNames {
		return all
	}
	others := pair{name: fmt.Sprintf("%d others", len(all)-mostNames+1)}
	for _, one := range all[mostNames-1:] {
		others.before, others.after = others.before+one.before, others.after+one.after
	}
	return append(all[:mostNames-1:mostNames-1], others)
}

// pairs draws two bars for each pair, the name above them, the rates behind them.
func (c *canvas) pairs(column, row int, title string, all []pair) {
	const (
		// A name has the height named above its two bars; the longest bar leaves room for its rate.
		named, gap, longest, thickest = 15, 1, 0.85, 14.0
		fewest                        = 3
	)
	x, y := corner(column, row)
	c.words(x, y-48, "start", `font-size="15" font-weight="bold"`, title)
	c.frame(x, y)
	if len(all) == 0 {
		c.words(x+areaWidth/2, y+areaHeight/2, "middle", "", "not counted in both")
		return
	}
	c.mark(c.mark(x, y-18, colourBefore, "before"), y-18, colourAfter, "after")
	var values []float64
	for _, one := range all {
		values = append(values, one.before, one.after)
	}
	s := barsOf(slices.DeleteFunc(values, func(value float64) bool { return value <= 0 }))
	c.vertical(column, row, "per second", s.ticks(rate, longest))
	step := float64(areaHeight) / float64(max(fewest, len(all)))
	thick := min(thickest, (step-named-gap)/2-1)
	for i, one := range all {
		top := y + float64(i)*step
		c.words(x+6, top+13, "start", "", one.name)
		for k, bar := range []struct {
			value  float64
			colour string
		}{{one.before, colourBefore}, {one.after, colourAfter}} {
			length := s.at(bar.value) * areaWidth * longest
			at := top + named + float64(k)*(thick+gap)
			fmt.Fprintf(&c.Builder, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", x, at, length, thick, bar.colour)
			c.words(x+length+5, at+thick, "start", fmt.Sprintf(`font-size="%.0f"`, min(13, thick+3)), orUnknown(bar.value))
		}
	}
}

// orUnknown is a rate, or that nobody knows it.
func orUnknown(perSecond float64) string {
	if perSecond == uncounted {
		return "unknown"
	}
	return rate(perSecond)
}
