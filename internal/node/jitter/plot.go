// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package jitter

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
	"time"
)

// The measures of a plot, in pixels: a panel with its margins, and the area between the axes.
const (
	panelWidth, panelHeight = 504, 372
	marginLeft, marginTop   = 70, 72
	areaWidth, areaHeight   = 400, 246
	footHeight              = 34
	// warningHeight is that of a line below the foot.
	warningHeight = 18
)

// Plot draws, for each CPU, how many interruptions there were of which length, and when the longest came. All CPUs have the same
// scales. It is a complete SVG document without any reference to another.
func Plot(result *Result) string {
	c := newCanvas(len(result.CPUs), result.Dropped()...)
	s := scalesOf(result)
	for i := range result.CPUs {
		one := &result.CPUs[i]
		c.lengths(0, i, fmt.Sprintf("CPU %d: how long", one.CPU), one, s)
		c.times(1, i, fmt.Sprintf("CPU %d: when the longest came", one.CPU), one, s)
	}
	without := "firmware, hypervisor, hardware"
	if slices.ContainsFunc(result.CPUs, func(one CPUResult) bool { return one.HidesCauses() }) {
		without = "the kernel's own interrupts, " + without
	}
	return c.end("Each line is an interruption: blue with something that the kernel counted about that time, red without (" + without + ").")
}

// Compare draws two measurements side by side with the same scales: for each CPU of either how many interruptions of which length there
// were before and after something was changed, and below, for each CPU with counts in both, what the kernel counted.
func Compare(before, after *Result) string {
	numbers := cpuNumbers(before, after)
	counted := slices.DeleteFunc(slices.Clone(numbers), func(cpu int) bool { return !isCounted(before.On(cpu), after.On(cpu)) })
	c := newCanvas(len(numbers)+len(counted), DroppedOfPair(before, after)...)
	s := scalesOf(before, after)
	for i, cpu := range numbers {
		c.lengths(0, i, fmt.Sprintf("CPU %d before", cpu), before.On(cpu), s)
		c.lengths(1, i, fmt.Sprintf("CPU %d after", cpu), after.On(cpu), s)
	}
	for i, cpu := range counted {
		c.counted(len(numbers)+i, cpu, before.On(cpu), after.On(cpu))
	}
	return c.end("A bar counts interruptions from its left to its right edge. Both axes are logarithmic, and the same on both sides.")
}

// canvas collects the elements of a document with two panels in each row.
type canvas struct {
	strings.Builder
	height int
	// warnings are lines below everything else.
	warnings []string
}

func newCanvas(rows int, warnings ...string) *canvas {
	c := &canvas{height: max(1, rows)*panelHeight + footHeight + len(warnings)*warningHeight, warnings: warnings}
	fmt.Fprintf(&c.Builder, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="system-ui,'DejaVu Sans',sans-serif" font-size="13" fill="#24292f">`+"\n",
		2*panelWidth, c.height, 2*panelWidth, c.height)
	c.WriteString(`<rect width="100%" height="100%" fill="#ffffff"/>` + "\n")
	return c
}

// end closes the document with a line below all panels, and the warnings below it.
func (c *canvas) end(words string) string {
	foot := c.height - 14 - len(c.warnings)*warningHeight
	c.words(marginLeft, float64(foot), "start", `fill="#57606a"`, words)
	for i, warning := range c.warnings {
		c.words(marginLeft, float64(foot+(i+1)*warningHeight), "start", `fill="#c62828" font-weight="bold"`, warning)
	}
	c.WriteString("</svg>\n")
	return c.String()
}

func (c *canvas) words(x, y float64, anchor, style, text string) {
	fmt.Fprintf(&c.Builder, `<text x="%.1f" y="%.1f" text-anchor="%s" %s>%s</text>`+"\n", x, y, anchor, style, html.EscapeString(text))
}

// corner is the upper left corner of the area of a panel.
func corner(column, row int) (x, y float64) {
	return float64(column*panelWidth + marginLeft), float64(row*panelHeight + marginTop)
}

// head writes the title of a panel, and what was measured on the CPU.
func (c *canvas) head(column, row int, title string, one *CPUResult) {
	x, y := corner(column, row)
	c.words(x, y-48, "start", `font-size="15" font-weight="bold"`, title)
	if one == nil {
		return
	}
	colour, least := "#57606a", ""
	if one.NotRecorded > 0 {
		colour, least = "#c62828", "≥"
	}
	c.words(x, y-30, "start", `fill="`+colour+`"`, fmt.Sprintf("%s per second, longest %s%s, %s%s of the time",
		rate(one.InterruptionsPerSecond), least, short(one.MaximumNanoseconds), least, percent(one.StolenPartsPerMillion)))
	if one.CountedNanoseconds > 0 {
		c.words(x, y-13, "start", `fill="#57606a"`, "kernel, per second: "+CountedWords(one))
	}
}

// horizontal draws lines across an area at the decades of a scale, with their names and the name of the axis.
func (c *canvas) horizontal(column, row int, s decades, name string, label func(float64) string) {
	x, y := corner(column, row)
	for exponent := s.from; exponent <= s.to; exponent++ {
		level := y + areaHeight*(1-s.at(math.Pow10(exponent)))
		fmt.Fprintf(&c.Builder, `<path d="M%.1f %.1fh%d" stroke="#d8dee4"/>`+"\n", x, level, areaWidth)
		c.words(x-8, level+4, "end", "", label(math.Pow10(exponent)))
	}
	fmt.Fprintf(&c.Builder, `<text transform="translate(%.1f %.1f) rotate(-90)" text-anchor="middle" fill="#57606a">%s</text>`+"\n", x-54, y+areaHeight/2, name)
}

// vertical draws lines down an area, with their names and the name of the axis.
func (c *canvas) vertical(column, row int, name string, ticks []tick) {
	x, y := corner(column, row)
	for _, t := range ticks {
		fmt.Fprintf(&c.Builder, `<path d="M%.1f %.1fv%d" stroke="#d8dee4"/>`+"\n", x+t.share*areaWidth, y, areaHeight)
		c.words(x+t.share*areaWidth, y+areaHeight+18, "middle", "", t.label)
	}
	c.words(x+areaWidth/2, y+areaHeight+38, "middle", `fill="#57606a"`, name)
}

// tick is a mark at a share of an axis.
type tick struct {
	share float64
	label string
}

// lengths draws a bar for each bucket of lengths.
func (c *canvas) lengths(column, row int, title string, one *CPUResult, s scales) {
	c.head(column, row, title, one)
	if c.isEmpty(column, row, one) {
		return
	}
	x, y := corner(column, row)
	c.vertical(column, row, "length of an interruption", s.length.ticks(func(length float64) string { return short(int64(length)) }, 1))
	c.horizontal(column, row, s.rate, "interruptions per second", rate)
	for _, bucket := range one.Histogram {
		if bucket.Count == 0 {
			continue
		}
		left, right := s.length.at(float64(bucket.FromNanoseconds))*areaWidth, s.length.at(float64(bucket.ToNanoseconds))*areaWidth
		height := s.rate.at(perSecond(bucket, one)) * areaHeight
		fmt.Fprintf(&c.Builder, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="#2f6f9f"><title>%s to %s: %d</title></rect>`+"\n",
			x+left+0.5, y+areaHeight-height, max(1, right-left-1), height,
			time.Duration(bucket.FromNanoseconds), time.Duration(bucket.ToNanoseconds), bucket.Count)
	}
}

// times draws a line for each of the longest interruptions where it came.
func (c *canvas) times(column, row int, title string, one *CPUResult, s scales) {
	x, y := corner(column, row)
	c.words(x, y-48, "start", `font-size="15" font-weight="bold"`, title)
	if c.isEmpty(column, row, one) {
		return
	}
	const parts = 4
	var ticks []tick
	for i := range parts + 1 {
		ticks = append(ticks, tick{float64(i) / parts, short(one.DurationNanoseconds * int64(i) / parts)})
	}
	c.vertical(column, row, "time since the begin", ticks)
	c.horizontal(column, row, s.length, "length", func(length float64) string { return short(int64(length)) })
	for _, worst := range one.Worst {
		at := x + float64(worst.AtNanoseconds)/float64(one.DurationNanoseconds)*areaWidth
		height := max(2, s.length.at(float64(worst.LengthNanoseconds))*areaHeight)
		fmt.Fprintf(&c.Builder, `<path d="M%.1f %.1fv-%.1f" stroke="%s" stroke-width="2"><title>%s</title></path>`+"\n",
			at, y+areaHeight, height, colourOf(worst), html.EscapeString(tellInterruption(worst)))
	}
}

// mark writes what a colour means, behind a square of it, and returns where the words end, about.
func (c *canvas) mark(x, y float64, colour, words string) float64 {
	const side, gap, letter = 12, 6, 8
	fmt.Fprintf(&c.Builder, `<rect x="%.1f" y="%.1f" width="%d" height="%d" fill="%s"/>`+"\n", x, y-side+1, side, side, colour)
	c.words(x+side+gap, y, "start", "", words)
	return x + side + gap + float64(letter*len(words))
}

// frame draws the two axes of an area.
func (c *canvas) frame(x, y float64) {
	fmt.Fprintf(&c.Builder, `<path d="M%.1f %.1fv%dh%d" fill="none" stroke="#57606a"/>`+"\n", x, y, areaHeight, areaWidth)
}

// isEmpty writes into an area that there is nothing to draw, when that is so.
func (c *canvas) isEmpty(column, row int, one *CPUResult) bool {
	x, y := corner(column, row)
	c.frame(x, y)
	switch {
	case one == nil:
		c.words(x+areaWidth/2, y+areaHeight/2, "middle", "", "not measured")
	case len(one.Histogram) == 0 || one.DurationNanoseconds <= 0:
		c.words(x+areaWidth/2, y+areaHeight/2, "middle", `fill="#1a7f37"`, "none at or above the threshold")
	default:
		return false
	}
	return true
}

// colourOf is red for an interruption of which the kernel counted nothing.
func colourOf(i Interruption) string {
	if len(i.Causes) == 0 {
		return "#c62828"
	}
	return "#2f6f9f"
}

func tellInterruption(i Interruption) string {
	parts := make([]string, 0, 1+len(i.Causes))
	parts = append(parts, fmt.Sprintf("%s at %s", time.Duration(i.LengthNanoseconds), time.Duration(i.AtNanoseconds)))
	for _, cause := range i.Causes {
		parts = append(parts, fmt.Sprintf("%s ×%d", cause.Name, cause.Count))
	}
	return strings.Join(parts, "; ")
}

// short writes a length with two or three digits.
func short(length int64) string {
	d := time.Duration(length)
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		switch {
		case d >= 10*unit:
			return d.Round(unit).String()
		case d >= unit:
			return d.Round(unit / 10).String()
		}
	}
	return d.String()
}
