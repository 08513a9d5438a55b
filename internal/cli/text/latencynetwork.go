// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// networkTable has a row for each size of messages of each node.
func networkTable(test *view.LatencyTest, palette Palette, columns int) string {
	if len(test.Nodes) == 0 {
		return "no node was measured\n"
	}
	header := []string{"NODE", "OUTCOME", "SERVER", "PATH", "BYTES", "SAMPLES", "LOST", "MINIMUM", "MEAN"}
	for _, name := range qualification.Percentiles() {
		header = append(header, strings.TrimSuffix(qualification.Words(name), " %")+"%")
	}
	header = append(header, "MAXIMUM", "MEDIANS", "CHANGE")
	var rows [][]string
	for i := range test.Nodes {
		rows = append(rows, networkRows(&test.Nodes[i], palette, len(header))...)
	}
	return Table(header, rows, palette, columns)
}

func networkRows(node *view.LatencyNode, palette Palette, columns int) [][]string {
	if node.Measured == nil || node.Measured.Network == nil {
		return [][]string{slices.Concat([]string{node.Node, outcomeWords(node, palette)}, slices.Repeat([]string{"-"}, columns-2))}
	}
	n := node.Measured.Network
	var rows [][]string
	for i := range n.Sizes {
		s := &n.Sizes[i]
		row := []string{
			node.Node, outcomeWords(node, palette), n.Server, string(n.Path), strconv.Itoa(int(s.Bytes)), strconv.FormatInt(s.Samples, 10),
			strconv.FormatInt(s.Lost, 10), latency.Length(s.MinimumNanoseconds), latency.Length(s.MeanNanoseconds),
		}
		for _, name := range qualification.Percentiles() {
			row = append(row, percentileWords(s.Percentiles, name))
		}
		medians := "-"
		if i == 0 {
			medians = spreadWords(n.RepetitionMediansNanoseconds)
		}
		rows = append(rows, append(row, latency.Length(s.MaximumNanoseconds), medians, trendWords(node.Change, palette)))
	}
	return rows
}

// percentileWords is a percentile; "-" where the samples do not carry it.
func percentileWords(percentiles []v1alpha1.LatencyPercentile, name v1alpha1.PercentileName) string {
	at := slices.IndexFunc(percentiles, func(p v1alpha1.LatencyPercentile) bool { return p.Percentile == name })
	if at < 0 {
		return notCarried
	}
	return latency.Length(percentiles[at].Nanoseconds)
}

// networkChangeRows are the figures of two measurements over the network.
func networkChangeRows(before, after *v1alpha1.NetworkMeasurement) [][]string {
	rows := [][]string{{"server", before.Server, after.Server}, {"path", string(before.Path), string(after.Path)}}
	for i := range after.Sizes {
		is := &after.Sizes[i]
		at := slices.IndexFunc(before.Sizes, func(s v1alpha1.SizeMeasurement) bool { return s.Bytes == is.Bytes })
		if at < 0 {
			continue
		}
		was := &before.Sizes[at]
		row := func(what, then, now string) {
			rows = append(rows, []string{fmt.Sprintf("%d bytes, %s", is.Bytes, what), then, now})
		}
		for _, p := range is.Percentiles {
			row(qualification.Words(p.Percentile), percentileWords(was.Percentiles, p.Percentile), latency.Length(p.Nanoseconds))
		}
		row("longest", latency.Length(was.MaximumNanoseconds), latency.Length(is.MaximumNanoseconds))
		row("lost", strconv.FormatInt(was.Lost, 10), strconv.FormatInt(is.Lost, 10))
	}
	return rows
}
