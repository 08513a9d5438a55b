// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package picture

import (
	"fmt"
	"math"
	"strconv"
)

// RatioSeries are ratios of one percentile over sizes of messages.
type RatioSeries struct {
	Name   string
	Points []Ratio
}

// Ratio is how many times as long messages of a size in bytes took, and the interval that holds it.
type Ratio struct{ Across, Value, Low, High float64 }

const (
	// widest is the ratio at which a plot ends: what lies beyond is at its edge.
	widest = 1000
	// beyond is how many times the largest ratio a plot goes up: an interval that is wider ends at its edge, so that it does not flatten the others.
	beyond = 3
	// rowsOfRatios is about how many lines go across a plot of ratios.
	rowsOfRatios = 5
	// apart is how many pixels the intervals of series at one place lie apart.
	apart = 5
)

// Ratios draws ratios with their intervals over sizes of messages, and a line where messages take as long on both sides.
func Ratios(series []RatioSeries) string {
	places, named := span{}, make([]Series, 0, len(series))
	low, high, top := 0.9, 1.1, beyond*largestRatio(series)
	for _, s := range series {
		of := Series{Name: s.Name}
		for _, point := range s.Points {
			places.hold(point.Across)
			of.Points = append(of.Points, Point{Across: point.Across})
			low, high = min(low, max(point.Low, 0)), max(high, min(point.High, top))
		}
		named = append(named, of)
	}
	p := newPlot("bytes of a message", "times as long, and the interval", places.decades(), decades{})
	p.places(named, itself)
	up := func(ratio float64) float64 { return p.y((min(max(ratio, low), high) - low) / (high - low)) }
	step := ratioStep(high - low)
	for row := math.Ceil(low/step) * step; row <= high; row += step {
		fmt.Fprintf(&p.Builder, `<path d="M%.1f %.1fH%.1f" stroke="#d8dee4"/>`+"\n", p.x(0), up(row), p.x(1))
		p.words(p.x(0)-6, up(row)+4, "end", strconv.FormatFloat(math.Round(row*widest)/widest, 'f', -1, 64))
	}
	fmt.Fprintf(&p.Builder, `<path d="M%.1f %.1fH%.1f" stroke="#24292f" stroke-dasharray="4 3"/>`+"\n", p.x(0), up(1), p.x(1))
	for i, s := range series {
		for _, point := range s.Points {
			x := p.x(p.across.at(point.Across)) + apart*float64(i)
			fmt.Fprintf(&p.Builder, `<path d="M%.1f %.1fV%.1f" stroke="%s" stroke-width="2"/>`+"\n", x, up(point.Low), up(point.High), colourOf(i))
			fmt.Fprintf(&p.Builder, `<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"/>`+"\n", x, up(point.Value), colourOf(i))
		}
	}
	return p.end(named)
}

// largestRatio is that of all series, one at least and widest at most.
func largestRatio(series []RatioSeries) float64 {
	largest := 1.0
	for _, s := range series {
		for _, point := range s.Points {
			largest = max(largest, min(point.Value, widest))
		}
	}
	return largest
}

// ratioStep is how far apart lines are, of a height: 1, 2 or 5 with noughts.
func ratioStep(height float64) float64 {
	rough := height / rowsOfRatios
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	for _, factor := range []float64{1, 2, 5} {
		if factor*power >= rough {
			return factor * power
		}
	}
	return 10 * power
}
