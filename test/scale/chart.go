// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// chart is a picture of curves.
type chart struct {
	title, x, y string
	curves      []curve
}

// curve is one line of a chart.
type curve struct {
	name   string
	points [][2]float64
}

const (
	chartWidth, chartHeight = 720.0, 360.0
	chartLeft, chartRight   = 70.0, 120.0
	chartTop, chartBottom   = 40.0, 50.0
	// chartSteps is about how many lines the grid has.
	chartSteps = 5
)

// colours are told apart by those who see few colours, too; lines have names besides.
func colours() []string {
	return []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}
}

// draw prints the chart as SVG.
func (c *chart) draw() string {
	width, height := c.extent()
	stepX, stepY := step(width), step(height)
	width, height = math.Ceil(width/stepX)*stepX, math.Ceil(height/stepY)*stepY
	x := func(value float64) float64 { return chartLeft + value/width*(chartWidth-chartLeft-chartRight) }
	y := func(value float64) float64 {
		return chartHeight - chartBottom - value/height*(chartHeight-chartTop-chartBottom)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="12">`+"\n", chartWidth, chartHeight)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#ffffff"/>`+"\n")
	text(&b, chartWidth/2, chartTop/2, "middle", c.title)
	text(&b, (chartLeft+chartWidth-chartRight)/2, chartHeight-12, "middle", c.x)
	text(&b, chartLeft, chartTop-8, "end", c.y)
	for value := 0.0; value <= width; value += stepX {
		line(&b, x(value), y(0), x(value), y(height))
		text(&b, x(value), y(0)+18, "middle", number(value))
	}
	for value := 0.0; value <= height; value += stepY {
		line(&b, x(0), y(value), x(width), y(value))
		text(&b, x(0)-6, y(value)+4, "end", number(value))
	}
	for i, one := range c.curves {
		colour := colours()[i%len(colours())]
		var path strings.Builder
		for _, p := range one.points {
			fmt.Fprintf(&path, "%.1f,%.1f ", x(p[0]), y(p[1]))
		}
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/>`+"\n", colour, strings.TrimSpace(path.String()))
		at := chartTop + 18*float64(i)
		fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="12" height="4" fill="%s"/>`+"\n", chartWidth-chartRight+12, at, colour)
		text(&b, chartWidth-chartRight+30, at+6, "start", one.name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// extent is how far the curves reach.
func (c *chart) extent() (width, height float64) {
	for _, one := range c.curves {
		for _, p := range one.points {
			width, height = max(width, p[0]), max(height, p[1])
		}
	}
	return max(width, 1), max(height, 1)
}

// step is the distance of the lines of the grid: 1, 2 or 5 times a power of ten.
func step(extent float64) float64 {
	rough := extent / chartSteps
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	for _, factor := range []float64{1, 2, 5} {
		if rough <= factor*power {
			return factor * power
		}
	}
	return 10 * power
}

func number(value float64) string { return fmt.Sprintf("%g", math.Round(value*100)/100) }

func line(b *strings.Builder, x1, y1, x2, y2 float64) {
	fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#dddddd"/>`+"\n", x1, y1, x2, y2)
}

func text(b *strings.Builder, x, y float64, anchor, words string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, html.EscapeString(words))
}
