// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package qualification

import (
	"errors"
	"fmt"
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// Judged are the figures of a measurement that a budget is held against: those of its rates from when messages were to leave, or those of its
// sizes. Of a search they are those of the best rate that passed; where none did, of the lowest. Of a comparison they are those of the first side that is not the base.
func Judged(n *v1alpha1.NetworkMeasurement) []*v1alpha1.LatencyFigures {
	rows := Rows(n)
	found := make([]*v1alpha1.LatencyFigures, 0, len(rows))
	for i := range rows {
		if rows[i].isJudged(n) {
			found = append(found, rows[i].Figures)
		}
	}
	return found
}

// Worst is the longest latency of all figures, and of each percentile that all carry the largest.
func Worst(all []*v1alpha1.LatencyFigures) (longest int64, worst []v1alpha1.LatencyPercentile) {
	for i, f := range all {
		longest = max(longest, f.MaximumNanoseconds)
		worst = WorstPercentiles(i == 0, worst, f.Percentiles)
	}
	return longest, worst
}

// WorstPercentiles are the larger values of the percentiles that both have; first says that there is only one.
func WorstPercentiles(first bool, a, b []v1alpha1.LatencyPercentile) []v1alpha1.LatencyPercentile {
	if first {
		return slices.Clone(b)
	}
	worst := a[:min(len(a), len(b))]
	for i := range worst {
		worst[i].Nanoseconds = max(worst[i].Nanoseconds, b[i].Nanoseconds)
	}
	if len(worst) == 0 {
		return nil
	}
	return worst
}

// AddFigures takes those of another repetition into figures: samples add up, and of each figure the worst counts. An interval stays with its percentile.
func AddFigures(f, one *v1alpha1.LatencyFigures) {
	f.Intervals = worstIntervals(f, one)
	f.Percentiles = WorstPercentiles(false, f.Percentiles, one.Percentiles)
	f.LeastSamples = min(f.LeastSamples, one.LeastSamples)
	if one.Samples == 0 {
		return
	}
	f.Samples += one.Samples
	f.MinimumNanoseconds = min(f.MinimumNanoseconds, one.MinimumNanoseconds)
	f.MeanNanoseconds = max(f.MeanNanoseconds, one.MeanNanoseconds)
	f.DeviationNanoseconds = max(f.DeviationNanoseconds, one.DeviationNanoseconds)
	f.MaximumNanoseconds = max(f.MaximumNanoseconds, one.MaximumNanoseconds)
}

// worstIntervals are those of the larger values of the percentiles that both have; none where one has no intervals.
func worstIntervals(a, b *v1alpha1.LatencyFigures) []v1alpha1.LatencyInterval {
	both := min(len(a.Percentiles), len(b.Percentiles))
	if both == 0 || len(a.Intervals) < both || len(b.Intervals) < both {
		return nil
	}
	worst := slices.Clone(a.Intervals[:both])
	for i := range worst {
		if b.Percentiles[i].Nanoseconds > a.Percentiles[i].Nanoseconds {
			worst[i] = b.Intervals[i]
		}
	}
	return worst
}

// IntervalOf is the interval of a percentile; nil where there is none.
func IntervalOf(f *v1alpha1.LatencyFigures, name v1alpha1.PercentileName) *v1alpha1.LatencyInterval {
	at := slices.IndexFunc(f.Percentiles, func(p v1alpha1.LatencyPercentile) bool { return p.Percentile == name })
	if at < 0 || at >= len(f.Intervals) {
		return nil
	}
	return &f.Intervals[at]
}

// noUpperEnd stands in a row of intervals for an interval that has none.
const noUpperEnd = -1

// IntervalRow is the row of the intervals of figures in a record.
func IntervalRow(f *v1alpha1.LatencyFigures) []int64 {
	row := append(make([]int64, 0, 1+2*len(f.Intervals)), f.LeastSamples)
	for i, interval := range f.Intervals {
		value, above := f.Percentiles[i].Nanoseconds, int64(noUpperEnd)
		if interval.HighNanoseconds != nil {
			above = *interval.HighNanoseconds - value
		}
		row = append(row, value-interval.LowNanoseconds, above)
	}
	return row
}

// addIntervals takes the intervals of figures from the row at an index, where there is one.
func addIntervals(f *v1alpha1.LatencyFigures, rows [][]int64, index int) {
	if index >= len(rows) {
		return
	}
	row := rows[index]
	f.LeastSamples = row[0]
	for i := range len(f.Percentiles) {
		if 2*i+2 >= len(row) {
			return
		}
		value, above := f.Percentiles[i].Nanoseconds, row[2*i+2]
		interval := v1alpha1.LatencyInterval{LowNanoseconds: value - row[2*i+1]}
		if above != noUpperEnd {
			interval.HighNanoseconds = new(value + above)
		}
		f.Intervals = append(f.Intervals, interval)
	}
}

// withoutIntervals is a record that takes less room; nil for nil.
func (n *NetworkRecord) withoutIntervals() *NetworkRecord {
	if n == nil {
		return nil
	}
	less := *n
	less.SizeIntervals, less.RateIntervals = nil, nil
	return &less
}

// checkIntervals wants a row for each size and for each rate where there are intervals, one for each percentile, and each between the shortest and the
// longest latency.
func (n *NetworkRecord) checkIntervals() error {
	if len(n.RateIntervals) > 0 && len(n.Rates) == 0 {
		return fmt.Errorf("the record has intervals of %d rates, and 0 rates", len(n.RateIntervals))
	}
	for i := range n.Sizes {
		if size := sizeOf(n.Sizes[i]); !areIntervals(&size.LatencyFigures, n.SizeIntervals, i, len(n.Sizes)) {
			return errors.New("the intervals of the record do not hold the percentiles of its sizes")
		}
	}
	for i := range n.Rates {
		if rate := rateOf(n.Rates[i]); !areIntervals(&rate.FromIntended, n.RateIntervals, i, len(n.Rates)) {
			return errors.New("the intervals of the record do not hold the percentiles of its rates")
		}
	}
	return nil
}

// areIntervals reports whether the row at an index has the intervals of figures, or there are no rows at all.
func areIntervals(f *v1alpha1.LatencyFigures, rows [][]int64, index, wanted int) bool {
	if len(rows) == 0 {
		return true
	}
	if len(rows) != wanted || len(rows[index]) != 1+2*len(f.Percentiles) || rows[index][0] < 0 || rows[index][0] > f.Samples {
		return false
	}
	row := rows[index][1:]
	for i, p := range f.Percentiles {
		below, above := row[2*i], row[2*i+1]
		if below < 0 || below > p.Nanoseconds-f.MinimumNanoseconds || above < noUpperEnd || above > f.MaximumNanoseconds-p.Nanoseconds {
			return false
		}
	}
	return true
}
