// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package picture

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"
	"unicode"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

const (
	// plotWidth and plotHeight are those of a plot.
	plotWidth, plotHeight = vg.Length(450), vg.Length(240)
	// closestTicks is how near to each other two names below a plot may be, as a share of its width.
	closestTicks = 0.07
	// typeface is what the library measures words with. A browser without it takes one with the same measures.
	typeface, typefaces = "font-family:Liberation Sans", "font-family:'Liberation Sans',Arial,Helvetica,sans-serif"
)

// Series is one line or one row of bars of a plot. The first are told apart by colours, all others are grey.
type Series struct {
	Name string
	// Bars are a distribution, in ascending order of lengths; Points a curve, in ascending order.
	Bars   []latency.Bar
	Points []Point
}

// Point is a length of time at a place of the lower axis: at a percentile, a rate in messages a second, or a size in bytes.
type Point struct {
	Across      float64
	Nanoseconds int64
}

// seriesColours are told apart with any colour vision. What has no colour of its own is grey.
func seriesColours() []color.NRGBA {
	return []color.NRGBA{{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff}}
}

func colourOf(index int) color.NRGBA {
	if colours := seriesColours(); index < len(colours) {
		return colours[index]
	}
	return color.NRGBA{0x8c, 0x95, 0x9f, 0xff}
}

// Distribution draws how many there were of which length, both on logarithmic axes, which are named as they are called. It is a
// complete SVG document without any reference to another, as all plots are.
func Distribution(below, beside string, series []Series) string {
	lengths, counts := span{}, span{}
	counts.hold(1)
	for _, s := range series {
		for _, bar := range s.Bars {
			if bar.Count > 0 {
				lengths.hold(positive(bar.FromNanoseconds))
				lengths.hold(positive(bar.ToNanoseconds))
				counts.hold(float64(bar.Count))
			}
		}
	}
	p := newPlot(below, beside, lengths.decades(), counts.decades())
	p.X.Tick.Marker = powers(p.X.Min, p.X.Max, lengthWords)
	p.Y.Tick.Marker = powers(p.Y.Min, p.Y.Max, func(value float64) string { return fmt.Sprintf("%.0f", value) })
	for i, s := range series {
		var outline plotter.XYs
		for _, bar := range s.Bars {
			if from, to, count := positive(bar.FromNanoseconds), positive(bar.ToNanoseconds), float64(bar.Count); count > 0 {
				outline = append(outline, plotter.XY{X: from, Y: p.Y.Min}, plotter.XY{X: from, Y: count}, plotter.XY{X: to, Y: count}, plotter.XY{X: to, Y: p.Y.Min})
			}
		}
		add(p, i, s.Name, outline, i == 0)
	}
	return written(p)
}

// Percentiles draws lengths over percentiles. The lower axis has the same room for each nine.
func Percentiles(series []Series) string {
	return curves("percentile", "at most so long", series, remoteness, func(percent float64) string { return fmt.Sprintf("%g", percent) })
}

// Rates draws latencies over rates in messages a second.
func Rates(series []Series) string {
	return curves("messages a second", "latency", series, itself, func(rate float64) string { return fmt.Sprintf("%.0f", rate) })
}

// Sizes draws latencies over sizes of messages.
func Sizes(series []Series) string {
	return curves("bytes of a message", "latency", series, itself, func(size float64) string { return fmt.Sprintf("%.0f", size) })
}

// curves draws lengths of time, on a logarithmic axis, over something else, which the lower axis shows as its logarithm, too.
func curves(below, beside string, series []Series, across func(float64) float64, name func(float64) string) string {
	lengths, width := span{}, span{}
	var places []float64
	for _, s := range series {
		for _, point := range s.Points {
			lengths.hold(positive(point.Nanoseconds))
			width.hold(across(point.Across))
			places = append(places, point.Across)
		}
	}
	p := newPlot(below, beside, width, lengths.decades())
	p.X.Tick.Marker = named(places, across, name)
	p.Y.Tick.Marker = powers(p.Y.Min, p.Y.Max, lengthWords)
	for i, s := range series {
		line := make(plotter.XYs, 0, len(s.Points))
		for _, point := range s.Points {
			line = append(line, plotter.XY{X: across(point.Across), Y: positive(point.Nanoseconds)})
		}
		add(p, i, s.Name, line, false)
		p.Add(&plotter.Scatter{XYs: line, GlyphStyle: draw.GlyphStyle{Color: colourOf(i), Radius: 2, Shape: draw.CircleGlyph{}}})
	}
	return written(p)
}

// remoteness of a percentile grows tenfold with each nine.
func remoteness(percent float64) float64 { return 100 / max(100-percent, 1e-9) }

// itself is at least one: nothing else has a place on a logarithmic axis, and the library would panic.
func itself(value float64) float64 { return max(value, 1) }

func positive(nanoseconds int64) float64 { return itself(float64(nanoseconds)) }

func lengthWords(nanoseconds float64) string { return latency.Length(int64(nanoseconds)) }

// span holds positive values.
type span struct{ least, most float64 }

func (s *span) hold(value float64) {
	if s.most == 0 {
		s.least, s.most = value, value
	}
	s.least, s.most = min(s.least, value), max(s.most, value)
}

// decades are the powers of ten around all values; one decade where there are none.
func (s *span) decades() span {
	if s.most == 0 {
		return span{1, 10}
	}
	d := span{math.Pow(10, math.Floor(math.Log10(s.least))), math.Pow(10, math.Ceil(math.Log10(s.most)))}
	if d.most <= d.least {
		d.most = 10 * d.least
	}
	return d
}

// powers are ticks at the powers of ten.
func powers(from, to float64, name func(float64) string) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for power := from; power <= to*1.01; power *= 10 {
		ticks = append(ticks, plot.Tick{Value: power, Label: name(math.Round(power))})
	}
	return ticks
}

// named are ticks at places, of which those have names that are not too near to the one before.
func named(places []float64, across func(float64) float64, name func(float64) string) plot.ConstantTicks {
	slices.Sort(places)
	places = slices.Compact(places)
	ticks := make(plot.ConstantTicks, 0, len(places))
	if len(places) == 0 {
		return ticks
	}
	position := func(place float64) float64 { return math.Log(across(place)) }
	width, last := position(places[len(places)-1])-position(places[0]), math.Inf(-1)
	for _, place := range places {
		tick := plot.Tick{Value: across(place)}
		if position(place)-last >= closestTicks*width {
			tick.Label, last = name(place), position(place)
		}
		ticks = append(ticks, tick)
	}
	return ticks
}

// newPlot is a plot without any series, with two logarithmic axes.
func newPlot(below, beside string, across, up span) *plot.Plot {
	if across.most <= across.least {
		across = across.decades()
	}
	p := plot.New()
	p.X.Scale, p.X.Min, p.X.Max, p.X.Label.Text = plot.LogScale{}, across.least, across.most, below
	p.Y.Scale, p.Y.Min, p.Y.Max, p.Y.Label.Text = plot.LogScale{}, up.least, up.most, beside
	small := font.Font{Typeface: "Liberation", Variant: "Sans", Size: 9}
	for _, f := range []*font.Font{&p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font, &p.X.Tick.Label.Font, &p.Y.Tick.Label.Font, &p.Legend.TextStyle.Font} {
		*f = small
	}
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.NRGBA{0xd8, 0xde, 0xe4, 0xff}, color.NRGBA{0xd8, 0xde, 0xe4, 0xff}
	p.Add(grid)
	p.Legend.Top, p.Legend.Left, p.Legend.Padding, p.Legend.YOffs = true, true, 2, -6
	return p
}

// add draws a series, and names it where it has a colour of its own. Nothing of a plot depends on a series without values.
func add(p *plot.Plot, index int, name string, values plotter.XYs, filled bool) {
	if len(values) == 0 {
		return
	}
	style := draw.LineStyle{Color: colourOf(index), Width: 1.5}
	if filled {
		light := colourOf(index)
		light.A = 0x33
		p.Add(&plotter.Polygon{XYs: []plotter.XYs{values}, Color: light})
	}
	line := &plotter.Line{XYs: values, LineStyle: style}
	p.Add(line)
	if index < len(seriesColours()) {
		p.Legend.Add(printable(name), line)
	}
}

// printable leaves out what XML does not allow; the library escapes markup.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// written is the plot as an SVG element, fit for a page.
func written(p *plot.Plot) string {
	c := vgsvg.New(plotWidth, plotHeight)
	p.Draw(draw.New(c))
	var b strings.Builder
	// A strings.Builder returns no error.
	_, _ = c.WriteTo(&b)
	_, element, _ := strings.Cut(b.String(), "<svg")
	return "<svg" + strings.ReplaceAll(element, typeface, typefaces)
}
