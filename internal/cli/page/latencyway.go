// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package page

import (
	"html/template"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/picture"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// way draws the latencies of a node's messages over their sizes or rates, and the medians of the run before; "" where there is only one
// size or rate.
func way(node *view.LatencyNode) template.HTML {
	if node.Measured.Network == nil {
		return ""
	}
	rows := qualification.Rows(node.Measured.Network)
	if len(rows) < 2 {
		return ""
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
