// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package page

import (
	"fmt"
	"html/template"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/picture"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// Way draws the latencies of a node's messages over their sizes or rates, and the medians of the run before; "" where there is only one
// size or rate.
func Way(node *view.LatencyNode) template.HTML {
	if node.Measured.Network == nil {
		return ""
	}
	rows := qualification.Rows(node.Measured.Network)
	if len(rows) < 2 {
		return ""
	}
	if node.Measured.Network.Comparison != nil {
		return sidesWay(rows)
	}
	var series []picture.Series
	for _, name := range []v1alpha1.PercentileName{v1alpha1.P50, v1alpha1.P99, v1alpha1.P999} {
		if s := overRows(qualification.Words(name), name, rows); len(s.Points) > 0 {
			series = append(series, s)
		}
	}
	if node.Previous != nil && node.Previous.Network != nil {
		series = append(series, overRows("50 %, the run before", v1alpha1.P50, qualification.Rows(node.Previous.Network)))
	}
	// The library escapes what the names hold.
	if rows[0].Rate != nil {
		return template.HTML(picture.Rates(series))
	}
	return template.HTML(picture.Sizes(series))
}

// sidesWay draws the latencies of each side of a comparison over the sizes of messages.
func sidesWay(rows []qualification.Row) template.HTML {
	var series []picture.Series
	for _, name := range []v1alpha1.PercentileName{v1alpha1.P50, v1alpha1.P99} {
		for begin := 0; begin < len(rows); {
			end := begin
			for end < len(rows) && rows[end].Side == rows[begin].Side {
				end++
			}
			title := strings.ToLower(string(rows[begin].Side.Side)) + ", " + qualification.Words(name)
			if s := overRows(title, name, rows[begin:end]); len(s.Points) > 0 {
				series = append(series, s)
			}
			begin = end
		}
	}
	return template.HTML(picture.Sizes(series))
}

// Ratios draws how many times as long messages took as on the base of a comparison, over their sizes; "" where nothing was compared.
func Ratios(node *view.LatencyNode) template.HTML {
	if node.Measured.Network == nil || node.Measured.Network.Comparison == nil {
		return ""
	}
	c := node.Measured.Network.Comparison
	var series []picture.RatioSeries
	for i := range c.Sides {
		side := &c.Sides[i]
		median, tail := picture.RatioSeries{Name: "50 %"}, picture.RatioSeries{Name: "tail"}
		for j := range side.Sizes {
			bytes := side.Sizes[j].Bytes
			addRatio(&median, qualification.RatioOf(side, bytes, v1alpha1.P50))
			addRatio(&tail, qualification.TailRatioOf(side, bytes))
		}
		for _, s := range []picture.RatioSeries{median, tail} {
			if len(s.Points) > 0 {
				s.Name = fmt.Sprintf("%s to %s, %s", strings.ToLower(string(side.Side)), strings.ToLower(string(c.Base)), s.Name)
				series = append(series, s)
			}
		}
	}
	if len(series) == 0 {
		return ""
	}
	return template.HTML(picture.Ratios(series))
}

// addRatio adds a ratio to a plot, where the measurements carry one.
func addRatio(series *picture.RatioSeries, ratio *v1alpha1.LatencyRatio) {
	if ratio != nil {
		const parts = 1000
		series.Points = append(series.Points, picture.Ratio{
			Across: float64(ratio.Bytes), Value: float64(ratio.PartsPerThousand) / parts,
			Low: float64(ratio.LowPartsPerThousand) / parts, High: float64(ratio.HighPartsPerThousand) / parts,
		})
	}
}

// overRows is a percentile over the sizes or rates that have it.
func overRows(title string, name v1alpha1.PercentileName, rows []qualification.Row) picture.Series {
	s := picture.Series{Name: title}
	for i := range rows {
		if value, found := qualification.PercentileOf(rows[i].Figures.Percentiles, name); found {
			s.Points = append(s.Points, picture.Point{Across: across(&rows[i]), Nanoseconds: value})
		}
	}
	return s
}

// across is the rate of a row, or the size of its messages.
func across(row *qualification.Row) float64 {
	if row.Rate != nil {
		return float64(row.Rate.MessagesPerSecond)
	}
	return float64(row.Bytes)
}
