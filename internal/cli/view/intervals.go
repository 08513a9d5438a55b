// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package view

import (
	"strconv"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// IntervalRow has the intervals of the percentiles of a size, or of a rate.
type IntervalRow struct {
	// Name of the size or rate, with its side where sides are compared.
	Name string
	// Samples of the repetition that had the fewest.
	Samples string
	// Spans are the intervals in words, of each of qualification.Percentiles; "-" where there is none.
	Spans []string
}

// Intervals are those of a measurement, which may be nil; none where it has no intervals.
func Intervals(m *v1alpha1.LatencyMeasurement) []IntervalRow {
	if m == nil || m.Network == nil {
		return nil
	}
	var found []IntervalRow
	for _, row := range qualification.Rows(m.Network) {
		if len(row.Figures.Intervals) == 0 {
			continue
		}
		one := IntervalRow{Name: row.Name, Samples: strconv.FormatInt(row.Figures.LeastSamples, 10)}
		for _, name := range qualification.Percentiles() {
			span := "-"
			if interval := qualification.IntervalOf(row.Figures, name); interval != nil {
				span = latency.Span(interval.LowNanoseconds, interval.HighNanoseconds, latency.Length)
			}
			one.Spans = append(one.Spans, span)
		}
		found = append(found, one)
	}
	return found
}
