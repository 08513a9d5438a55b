// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"slices"
	"strconv"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// networkTable has a row for each size of messages of each node, or for each rate.
func networkTable(test *view.LatencyTest, palette Palette, columns int) string {
	if len(test.Nodes) == 0 {
		return "no node was measured\n"
	}
	header := slices.Concat([]string{"NODE", "OUTCOME", "SERVER", "PATH"}, messageColumns(test.Kind), []string{"MINIMUM", "MEAN"})
	for _, name := range qualification.Percentiles() {
		header = append(header, strings.TrimSuffix(qualification.Words(name), " %")+"%")
	}
	header = append(append(header, "MAXIMUM", "STDDEV"), append(ratioColumns(test.Kind), repetitionsColumn(test.Kind), "CHANGE")...)
	var rows [][]string
	for i := range test.Nodes {
		rows = append(rows, networkRows(&test.Nodes[i], palette, len(header))...)
	}
	return Table(header, rows, palette, columns)
}

// intervalTable has the intervals of the percentiles of each size or rate of each node; "" where there are none.
func intervalTable(test *view.LatencyTest, palette Palette, columns int) string {
	header := append(make([]string, 0, 3+len(qualification.Percentiles())), "NODE", "MESSAGES", "LEAST SAMPLES")
	for _, name := range qualification.Percentiles() {
		header = append(header, strings.TrimSuffix(qualification.Words(name), " %")+"%")
	}
	var rows [][]string
	for i := range test.Nodes {
		for _, row := range view.Intervals(test.Nodes[i].Measured) {
			rows = append(rows, append([]string{test.Nodes[i].Node, row.Name, row.Samples}, row.Spans...))
		}
	}
	if len(rows) == 0 {
		return ""
	}
	return paragraph("intervals that hold the percentile of a repetition with 95 % confidence, and the samples of the repetition with the fewest:", columns) +
		Table(header, rows, palette, columns)
}

// repetitionsColumn is the name of what is compared between runs.
func repetitionsColumn(kind v1alpha1.LatencyTestKind) string {
	switch {
	case kind == v1alpha1.LatencyTestLoadSearch:
		return "BEST PASSES"
	case qualification.Compares(kind):
		return "RATIOS"
	default:
		return "MEDIANS"
	}
}

// ratioColumns are how many times as long messages took as on the base of a comparison; none of other kinds.
func ratioColumns(kind v1alpha1.LatencyTestKind) []string {
	if qualification.Compares(kind) {
		return []string{"50% RATIO", "TAIL RATIO"}
	}
	return nil
}

// ratioCells are the cells of ratioColumns.
func ratioCells(row *qualification.Row) []string {
	if row.Side == nil {
		return nil
	}
	median, tail := notCarried, notCarried
	if ratio := qualification.RatioOf(row.Side, row.Bytes, v1alpha1.P50); ratio != nil {
		median = qualification.RatioWords(ratio)
	}
	if ratio := qualification.TailRatioOf(row.Side, row.Bytes); ratio != nil {
		tail = qualification.Words(ratio.Percentile) + ": " + qualification.RatioWords(ratio)
	}
	return []string{median, tail}
}

// messageColumns say what was sent, and what became of it.
func messageColumns(kind v1alpha1.LatencyTestKind) []string {
	if kind == v1alpha1.LatencyTestPingPong {
		return []string{"BYTES", "SAMPLES", "LOST"}
	}
	if qualification.Compares(kind) {
		return []string{"SIDE", "BYTES", "SAMPLES", "LOST"}
	}
	columns := []string{"RATE", "REACHED", "BYTES", "SAMPLES", "LOST", "REORDERED", "LATE"}
	if kind == v1alpha1.LatencyTestLoadSearch {
		return append([]string{"TRIAL"}, columns...)
	}
	return columns
}

// messageCells are the cells of messageColumns.
func messageCells(row *qualification.Row) []string {
	cells := []string{strconv.Itoa(int(row.Bytes)), decimal(row.Figures.Samples), decimal(row.Lost)}
	if row.Side != nil {
		return append([]string{string(row.Side.Side)}, cells...)
	}
	if row.Rate == nil {
		return cells
	}
	var trial []string
	if row.Rate.Trial != "" {
		trial = []string{row.Name}
	}
	return slices.Concat(trial, []string{row.PerSecond(), decimal(row.Rate.AchievedPerSecond)}, cells, []string{decimal(row.Rate.Reordered), decimal(row.Rate.Late)})
}

func networkRows(node *view.LatencyNode, palette Palette, columns int) [][]string {
	if node.Measured == nil || node.Measured.Network == nil {
		return [][]string{slices.Concat([]string{node.Node, outcomeWords(node, palette)}, slices.Repeat([]string{"-"}, columns-2))}
	}
	n := node.Measured.Network
	measured := qualification.Rows(n)
	rows := make([][]string, 0, len(measured))
	for i := range measured {
		f := measured[i].Figures
		row := slices.Concat([]string{node.Node, outcomeWords(node, palette), n.Server, string(measured[i].Path(n))}, messageCells(&measured[i]),
			[]string{figureWords(f, f.MinimumNanoseconds), figureWords(f, f.MeanNanoseconds)})
		for _, name := range qualification.Percentiles() {
			row = append(row, percentileWords(f.Percentiles, name))
		}
		medians := "-"
		if i == qualification.RepeatedRow(n, measured) {
			medians = repetitionWords(node.Measured)
		}
		row = append(append(row, figureWords(f, f.MaximumNanoseconds), deviationWords(f)), ratioCells(&measured[i])...)
		rows = append(rows, append(row, medians, trendWords(node.Change, palette)))
	}
	return rows
}

// figureWords is one of the lengths of figures; "-" where no message had an answer.
func figureWords(f *v1alpha1.LatencyFigures, nanoseconds int64) string {
	if f.Samples == 0 {
		return notCarried
	}
	return latency.Length(nanoseconds)
}

// deviationWords is the standard deviation; "-" where the record has none.
func deviationWords(f *v1alpha1.LatencyFigures) string {
	if f.DeviationNanoseconds == 0 {
		return notCarried
	}
	return latency.Length(f.DeviationNanoseconds)
}

// percentileWords is a percentile; "-" where the samples do not carry it.
func percentileWords(percentiles []v1alpha1.LatencyPercentile, name v1alpha1.PercentileName) string {
	value, found := qualification.PercentileOf(percentiles, name)
	if !found {
		return notCarried
	}
	return latency.Length(value)
}

// networkChangeRows are the figures of two measurements over the network.
func networkChangeRows(before, after *v1alpha1.NetworkMeasurement) [][]string {
	rows := [][]string{{"path", qualification.PathWords(before), qualification.PathWords(after)}}
	if before.Load != nil && after.Load != nil {
		rows = append(rows, []string{"load", qualification.LoadWords(before.Load), qualification.LoadWords(after.Load)})
	}
	for _, is := range qualification.Rows(after) {
		was := qualification.RowNamed(before, is.Name)
		if was == nil {
			continue
		}
		row := func(what, then, now string) {
			rows = append(rows, []string{is.Name + ", " + what, then, now})
		}
		for _, p := range is.Figures.Percentiles {
			row(qualification.Words(p.Percentile), percentileWords(was.Figures.Percentiles, p.Percentile), latency.Length(p.Nanoseconds))
		}
		row("longest", figureWords(was.Figures, was.Figures.MaximumNanoseconds), figureWords(is.Figures, is.Figures.MaximumNanoseconds))
		row("standard deviation", deviationWords(was.Figures), deviationWords(is.Figures))
		row("lost", decimal(was.Lost), decimal(is.Lost))
		if is.Rate != nil && was.Rate != nil {
			row("late", decimal(was.Rate.Late), decimal(is.Rate.Late))
		}
		ratioChanges(was, &is, row)
	}
	return rows
}

// ratioChanges tells the ratios of a side of a comparison in both measurements; the base has none.
func ratioChanges(was, is *qualification.Row, row func(what, then, now string)) {
	if is.Side == nil || was.Side == nil {
		return
	}
	then, now := ratioCells(was), ratioCells(is)
	for i, what := range []string{"ratio of 50 %", "ratio of the tail"} {
		if now[i] != notCarried || then[i] != notCarried {
			row(what, then[i], now[i])
		}
	}
}
