// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package picture

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// The measures of a plot of lengths, in pixels.
const (
	plotWidth, plotHeight = 600, 300
	plotLeft, plotTop     = 84, 20
	plotRight, plotBottom = 32, 84
)

// Series is one line or one row of bars of a plot. The first are told apart by colours, all others are grey.
type Series struct {
	Name string
	// Bars are a distribution; Points a curve, in ascending order.
	Bars   []latency.Bar
	Points []Point
}

// Point is a length of time at a place of the lower axis: at a percentile, a rate in messages a second, or a size in bytes.
type Point struct {
	Across      float64
	Nanoseconds int64
}

// seriesColours are told apart with any colour vision. What has no colour of its own is grey.
func seriesColours() []string { return []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7"} }

// Distribution draws how many there were of which length, both on logarithmic axes, which are named as they are called. It is a
// complete SVG document without any reference to another, as all plots are.
func Distribution(below, beside string, series []Series) string {
	lengths, counts := span{}, span{}
	for _, s := range series {
		for _, bar := range s.Bars {
			if bar.Count > 0 {
				lengths.hold(float64(bar.FromNanoseconds))
				lengths.hold(float64(bar.ToNanoseconds))
				counts.hold(float64(bar.Count))
			}
		}
	}
	counts.hold(1)
	p := newPlot(below, beside, lengths.decades(), counts.decades())
	p.lengthTicks()
	p.rows(func(value float64) string { return fmt.Sprintf("%.0f", value) })
	for i, s := range series {
		var outline strings.Builder
		for _, bar := range s.Bars {
			if bar.Count == 0 {
				continue
			}
			left, right, top := p.x(p.across.at(float64(bar.FromNanoseconds))), p.x(p.across.at(float64(bar.ToNanoseconds))), p.y(p.up.at(float64(bar.Count)))
			fmt.Fprintf(&outline, "M%.1f %.1fV%.1fH%.1fV%.1f", left, p.y(0), top, right, p.y(0))
		}
		if outline.Len() > 0 {
			p.path(i, outline.String(), i == 0)
		}
	}
	return p.end(series)
}

// Percentiles draws lengths over percentiles. The axis of percentiles has the same room for each nine.
func Percentiles(series []Series) string {
	return curves("percentile", "at most so long", series, remoteness)
}

// Rates draws latencies over rates in messages a second.
func Rates(series []Series) string { return curves("messages a second", "latency", series, itself) }

// Sizes draws latencies over sizes of messages.
func Sizes(series []Series) string { return curves("bytes of a message", "latency", series, itself) }

// mostSteps is how many parts the axis of a time line has at most.
const mostSteps = 8

// stepOf is the length of the parts of an axis, a round number of seconds.
func stepOf(whole float64) float64 {
	if whole <= 0 {
		return 1
	}
	step := math.Pow(10, math.Floor(math.Log10(whole/mostSteps)))
	for _, round := range []float64{2, 5, 10} {
		if whole/step > mostSteps {
			step = round * math.Pow(10, math.Floor(math.Log10(whole/mostSteps)))
		}
	}
	return step
}

// TimeLine draws the longest length of each slice of time. Points stand at the begins of slices, in seconds, and the last slice of each series ends after so
// many seconds; the axis of time is a linear one.
func TimeLine(beside string, series []Series, seconds []float64) string {
	lengths, whole := span{}, slices.Max(append([]float64{0}, seconds...))
	for _, s := range series {
		for _, point := range s.Points {
			if point.Nanoseconds > 0 {
				lengths.hold(float64(point.Nanoseconds))
			}
		}
	}
	p := newPlot("seconds since the begin", beside, decades{0, 1}, lengths.decades())
	step := stepOf(whole)
	for at := 0.0; at <= whole && whole > 0; at += step {
		p.column(at/whole, strconv.FormatFloat(at, 'g', 6, 64))
	}
	p.rows(func(value float64) string { return latency.Length(int64(value)) })
	for i, s := range series {
		if outline := p.slices(s.Points, seconds[i], whole); outline != "" {
			p.path(i, outline, i == 0)
		}
	}
	return p.end(series)
}

// slices are the outlines of slices of time, each as high as its length; one without a length has none.
func (p *plot) slices(points []Point, end, whole float64) string {
	var outline strings.Builder
	for i, point := range points {
		ends := end
		if i+1 < len(points) {
			ends = points[i+1].Across
		}
		if point.Nanoseconds > 0 && whole > 0 {
			fmt.Fprintf(&outline, "M%.1f %.1fV%.1fH%.1fV%.1f", p.x(point.Across/whole), p.y(0), p.y(p.up.at(float64(point.Nanoseconds))), p.x(ends/whole), p.y(0))
		}
	}
	return outline.String()
}

// curves draws lengths of time over something else, which has its place on a logarithmic axis.
func curves(below, beside string, series []Series, place func(float64) float64) string {
	lengths, places := span{}, span{}
	for _, s := range series {
		for _, point := range s.Points {
			lengths.hold(float64(point.Nanoseconds))
			places.hold(place(point.Across))
		}
	}
	p := newPlot(below, beside, places.decades(), lengths.decades())
	p.places(series, place)
	p.rows(func(value float64) string { return latency.Length(int64(value)) })
	for i, s := range series {
		var line, dots strings.Builder
		for j, point := range s.Points {
			x, y := p.x(p.across.at(place(point.Across))), p.y(p.up.at(float64(point.Nanoseconds)))
			command := "L"
			if j == 0 {
				command = "M"
			}
			fmt.Fprintf(&line, "%s%.1f %.1f", command, x, y)
			fmt.Fprintf(&dots, `<circle cx="%.1f" cy="%.1f" r="2.5" fill="%s"/>`+"\n", x, y, colourOf(i))
		}
		if line.Len() > 0 {
			p.path(i, line.String(), false)
			p.WriteString(dots.String())
		}
	}
	return p.end(series)
}

// remoteness of a percentile grows tenfold with each nine.
func remoteness(percent float64) float64 { return 100 / max(100-percent, 1e-9) }

func itself(value float64) float64 { return value }

// span holds positive values.
type span struct{ least, most float64 }

// hold widens the span by a value, which is at least one: nothing smaller has a place on these axes.
func (s *span) hold(value float64) {
	value = max(value, 1)
	if s.most == 0 {
		s.least, s.most = value, value
	}
	s.least, s.most = min(s.least, value), max(s.most, value)
}

// decades are the powers of ten around all values; one decade where there are none.
func (s *span) decades() decades {
	if s.most == 0 {
		return decades{0, 1}
	}
	d := decades{math.Floor(math.Log10(s.least)), math.Ceil(math.Log10(s.most))}
	if d.to <= d.from {
		d.to = d.from + 1
	}
	return d
}

// decades is a logarithmic axis between two powers of ten.
type decades struct{ from, to float64 }

// at is where a value lies on the axis, from 0 to 1.
func (d decades) at(value float64) float64 {
	return min(max((math.Log10(max(value, 1))-d.from)/(d.to-d.from), 0), 1)
}

func (d decades) powers() []float64 {
	var all []float64
	for exponent := d.from; exponent <= d.to; exponent++ {
		all = append(all, math.Pow(10, exponent))
	}
	return all
}

// plot collects the elements of a picture with two logarithmic axes.
type plot struct {
	strings.Builder
	across, up decades
}

func newPlot(below, beside string, across, up decades) *plot {
	p := &plot{across: across, up: up}
	fmt.Fprintf(&p.Builder, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="system-ui,'DejaVu Sans',sans-serif" font-size="12" fill="#24292f">`+"\n",
		plotWidth, plotHeight, plotWidth, plotHeight)
	p.WriteString(`<rect width="100%" height="100%" fill="#ffffff"/>` + "\n")
	p.words(p.x(0.5), plotHeight-plotBottom+38, "middle", below)
	fmt.Fprintf(&p.Builder, `<text transform="translate(14 %.1f) rotate(-90)" text-anchor="middle">%s</text>`+"\n", p.y(0.5), escape(beside))
	return p
}

func (p *plot) x(share float64) float64 { return plotLeft + share*(plotWidth-plotLeft-plotRight) }

func (p *plot) y(share float64) float64 {
	return plotHeight - plotBottom - share*(plotHeight-plotTop-plotBottom)
}

func (p *plot) words(x, y float64, anchor, text string) {
	fmt.Fprintf(&p.Builder, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, escape(text))
}

// column draws a line up the plot at a share of its width, with its name.
func (p *plot) column(share float64, name string) {
	fmt.Fprintf(&p.Builder, `<path d="M%.1f %.1fV%.1f" stroke="#d8dee4"/>`+"\n", p.x(share), p.y(0), p.y(1))
	p.words(p.x(share), p.y(0)+18, "middle", name)
}

func (p *plot) lengthTicks() {
	for _, power := range p.across.powers() {
		p.column(p.across.at(power), latency.Length(int64(power)))
	}
}

// closestNames is how near to each other two names below a plot may be, as a share of its width.
const closestNames = 0.08

// places are lines up the plot where the series have values, with their names where there is room.
func (p *plot) places(series []Series, place func(float64) float64) {
	var all []float64
	for _, s := range series {
		for _, point := range s.Points {
			all = append(all, point.Across)
		}
	}
	slices.Sort(all)
	last := math.Inf(-1)
	for _, across := range slices.Compact(all) {
		share, name := p.across.at(place(across)), ""
		if share-last >= closestNames {
			last, name = share, strconv.FormatFloat(across, 'f', -1, 64)
		}
		p.column(share, name)
	}
}

// rows draws a line across the plot at each power of ten, with its name.
func (p *plot) rows(name func(float64) string) {
	for _, power := range p.up.powers() {
		y := p.y(p.up.at(power))
		fmt.Fprintf(&p.Builder, `<path d="M%.1f %.1fH%.1f" stroke="#d8dee4"/>`+"\n", p.x(0), y, p.x(1))
		p.words(p.x(0)-6, y+4, "end", name(power))
	}
}

// path draws a series.
func (p *plot) path(index int, d string, filled bool) {
	fill := "none"
	if filled {
		fill = colourOf(index) + "33"
	}
	fmt.Fprintf(&p.Builder, `<path d="%s" fill="%s" stroke="%s" stroke-width="2"/>`+"\n", d, fill, colourOf(index))
}

func colourOf(index int) string {
	if colours := seriesColours(); index < len(colours) {
		return colours[index]
	}
	return "#8c959f"
}

// end names the series below the plot, as many as have colours of their own, and closes the document.
func (p *plot) end(series []Series) string {
	x := float64(plotLeft)
	for i, s := range series[:min(len(series), len(seriesColours()))] {
		fmt.Fprintf(&p.Builder, `<path d="M%.1f %dh14" stroke="%s" stroke-width="3"/>`+"\n", x, plotHeight-18, colourOf(i))
		p.words(x+20, plotHeight-14, "start", s.Name)
		x += 44 + 7*float64(len([]rune(s.Name)))
	}
	p.WriteString("</svg>\n")
	return p.String()
}
