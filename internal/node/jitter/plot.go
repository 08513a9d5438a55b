// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package jitter

import (
	"fmt"
	"html"
	"math"
	"strings"
	"time"
)

// The measures of a plot, in pixels.
const (
	plotWidth, plotHeight = 760, 220
	plotLeft, plotTop     = 70, 34
	plotGap               = 60
)

// Plot draws, for each CPU, how many interruptions there were of which length, and when the longest came. It is a
// complete SVG document without any reference to another.
func Plot(result *Result) string {
	const row = plotTop + plotHeight + plotGap
	height := max(1, len(result.CPUs)) * row
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		2*plotWidth, height, 2*plotWidth, height)
	b.WriteString(`<rect width="100%" height="100%" fill="#ffffff"/>` + "\n")
	for i := range result.CPUs {
		one := &result.CPUs[i]
		drawFrame(&b, 0, i*row, fmt.Sprintf("CPU %d: interruptions by length", one.CPU))
		drawHistogram(&b, i*row, one)
		drawFrame(&b, plotWidth, i*row, fmt.Sprintf("CPU %d: the longest interruptions over time", one.CPU))
		drawTimeLine(&b, i*row, one)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func drawFrame(b *strings.Builder, x, y int, title string) {
	fmt.Fprintf(b, `<text x="%d" y="%d" font-weight="bold">%s</text>`+"\n", x+plotLeft, y+plotTop-12, html.EscapeString(title))
	fmt.Fprintf(b, `<path d="M%d %dv%dh%d" fill="none" stroke="#444444"/>`+"\n", x+plotLeft, y+plotTop, plotHeight, plotWidth-plotLeft-20)
}

// inner is the width between the axes.
const inner = plotWidth - plotLeft - 20

// drawHistogram draws a bar for each bucket, on a logarithmic scale.
func drawHistogram(b *strings.Builder, y int, one *CPUResult) {
	if len(one.Histogram) == 0 {
		drawNothing(b, 0, y)
		return
	}
	most := 1.0
	for _, bucket := range one.Histogram {
		most = max(most, math.Log10(float64(bucket.Count)+1))
	}
	width := inner / float64(len(one.Histogram))
	for i, bucket := range one.Histogram {
		height := math.Log10(float64(bucket.Count)+1) / most * plotHeight
		left := plotLeft + float64(i)*width
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="#2f6f9f"><title>%s to %s: %d</title></rect>`+"\n",
			left+1, float64(y+plotTop)+plotHeight-height, max(1, width-2), height,
			time.Duration(bucket.FromNanoseconds), time.Duration(bucket.ToNanoseconds), bucket.Count)
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle" font-size="10">%d</text>`+"\n",
			left+width/2, float64(y+plotTop)+plotHeight-height-3, bucket.Count)
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle" font-size="10">%s</text>`+"\n",
			left, y+plotTop+plotHeight+14, short(bucket.FromNanoseconds))
	}
}

// drawTimeLine draws a line for each of the longest interruptions where it came, as long as the logarithm says.
func drawTimeLine(b *strings.Builder, y int, one *CPUResult) {
	if len(one.Worst) == 0 || one.DurationNanoseconds <= 0 {
		drawNothing(b, plotWidth, y)
		return
	}
	bottom := float64(y + plotTop + plotHeight)
	top := math.Ceil(math.Log10(float64(max(one.MaximumNanoseconds, 1000))))
	const floor = 2.0
	for exponent := floor; exponent <= top; exponent++ {
		level := bottom - (exponent-floor)/(top-floor)*plotHeight
		fmt.Fprintf(b, `<path d="M%d %.1fh%d" stroke="#dddddd"/><text x="%d" y="%.1f" text-anchor="end" font-size="10">%s</text>`+"\n",
			plotWidth+plotLeft, level, inner, plotWidth+plotLeft-6, level+4, short(int64(math.Pow(10, exponent))))
	}
	for _, worst := range one.Worst {
		x := plotWidth + plotLeft + float64(worst.AtNanoseconds)/float64(one.DurationNanoseconds)*inner
		height := max(2, (math.Log10(float64(max(worst.LengthNanoseconds, 1)))-floor)/(top-floor)*plotHeight)
		fmt.Fprintf(b, `<path d="M%.1f %.1fv-%.1f" stroke="%s" stroke-width="2"><title>%s</title></path>`+"\n",
			x, bottom, height, colourOf(worst), html.EscapeString(tellInterruption(worst)))
	}
	fmt.Fprintf(b, `<text x="%d" y="%.1f" font-size="10">0s</text><text x="%d" y="%.1f" text-anchor="end" font-size="10">%s</text>`+"\n",
		plotWidth+plotLeft, bottom+14, plotWidth+plotLeft+inner, bottom+14, short(one.DurationNanoseconds))
}

func drawNothing(b *strings.Builder, x, y int) {
	fmt.Fprintf(b, `<text x="%d" y="%d" fill="#2e7d32">none at or above the threshold</text>`+"\n", x+plotLeft+20, y+plotTop+plotHeight/2)
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
