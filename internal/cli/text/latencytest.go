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

// single marks a percentile that rests on one interruption.
const single = "*"

// LatencyTests are tests with a row for each node, and what there is to say about the nodes that have not passed.
func LatencyTests(tests []view.LatencyTest, palette Palette, columns int) string {
	var b strings.Builder
	for i := range tests {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(latencyTitle(&tests[i], palette))
		if latencies := view.LatenciesOf(tests[i].Kind); latencies != "" {
			b.WriteString(paragraph("latencies are "+latencies, columns))
		}
		if tests[i].Kind == v1alpha1.LatencyTestJitter {
			b.WriteString(latencyTable(&tests[i], palette, columns))
		} else {
			b.WriteString(networkTable(&tests[i], palette, columns))
			b.WriteString(intervalTable(&tests[i], palette, columns))
		}
		b.WriteString(latencyRemarks(&tests[i], columns))
	}
	return b.String()
}

func latencyTitle(test *view.LatencyTest, palette Palette) string {
	title := palette.Title(fmt.Sprintf("%s/%s", test.Namespace, test.Name)) + ", " + string(test.Kind)
	if test.Ready == nil {
		return title + ": the operator has not looked at it yet\n"
	}
	title = fmt.Sprintf("%s: Ready is %s (%s)\n", title, test.Ready.Status, test.Ready.Reason)
	if test.Undecided != "" {
		title += test.Undecided + "; what is shown is from before\n"
	}
	return title
}

// latencyTable has a row for each node.
func latencyTable(test *view.LatencyTest, palette Palette, columns int) string {
	if len(test.Nodes) == 0 {
		return "no node was measured\n"
	}
	header := []string{"NODE", "OUTCOME", "MAXIMUM", "STOLEN"}
	for _, name := range qualification.Percentiles() {
		header = append(header, strings.TrimSuffix(qualification.Words(name), " %")+"%")
	}
	header = append(header, "REPETITIONS", "CHANGE")
	rows := make([][]string, 0, len(test.Nodes))
	for i := range test.Nodes {
		rows = append(rows, latencyRow(&test.Nodes[i], palette))
	}
	return Table(header, rows, palette, columns)
}

func latencyRow(node *view.LatencyNode, palette Palette) []string {
	row := []string{node.Node, outcomeWords(node, palette)}
	if node.Measured == nil {
		return append(row, slices.Repeat([]string{"-"}, 2+len(qualification.Percentiles())+2)...)
	}
	m := node.Measured
	row = append(row, latency.Length(m.MaximumNanoseconds), strconv.Itoa(int(m.StolenPartsPerMillion))+" ppm")
	for _, name := range qualification.Percentiles() {
		row = append(row, latencyPercentile(node, name))
	}
	return append(row, repetitionWords(m), trendWords(node.Change, palette))
}

func latencyPercentile(node *view.LatencyNode, name v1alpha1.PercentileName) string {
	value, found := qualification.PercentileOf(node.Measured.Percentiles, name)
	switch {
	case !found:
		return "-"
	case slices.Contains(node.Single, name):
		return latency.Length(value) + single
	default:
		return latency.Length(value)
	}
}

// outcomeWords is the outcome, with freshness and activity where they are not what is expected.
func outcomeWords(node *view.LatencyNode, palette Palette) string {
	var parts []string
	switch node.Outcome {
	case v1alpha1.LatencyPassed:
		parts = append(parts, palette.Good(string(node.Outcome)))
	case v1alpha1.LatencyFailed:
		parts = append(parts, palette.Bad(string(node.Outcome)))
	case v1alpha1.LatencyInconclusive:
		parts = append(parts, palette.Warn(string(node.Outcome)))
	}
	if node.Freshness != "" && node.Freshness != v1alpha1.LatencyFresh {
		parts = append(parts, palette.Warn(strings.ToLower(string(node.Freshness))))
	}
	if node.Activity != v1alpha1.LatencyIdle {
		parts = append(parts, strings.ToLower(string(node.Activity)))
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}

// repeatedWords are the least and the most of repetitions, and how many there are.
func repeatedWords(r *qualification.Repeated) string {
	if len(r.Figures) == 0 {
		return "-"
	}
	return fmt.Sprintf("%d: %s to %s", len(r.Figures), r.Words(slices.Min(r.Figures)), r.Words(slices.Max(r.Figures)))
}

func trendWords(change *qualification.Change, palette Palette) string {
	switch {
	case change == nil:
		return "-"
	case change.Trend == qualification.TrendWorse:
		return palette.Bad("worse")
	case change.Trend == qualification.TrendBetter:
		return palette.Good("better")
	case change.Trend == qualification.TrendSame:
		return "the same"
	default:
		return palette.Warn("unknown")
	}
}

// latencyRemarks are sentences about nodes, and about the marks of the table.
func latencyRemarks(test *view.LatencyTest, columns int) string {
	var b strings.Builder
	marked := false
	for i := range test.Nodes {
		node := &test.Nodes[i]
		marked = marked || len(node.Single) > 0
		if node.Message != "" && (node.Outcome != v1alpha1.LatencyPassed || node.Freshness != v1alpha1.LatencyFresh) {
			b.WriteString(paragraph(node.Node+": "+node.Message, columns))
		}
		for _, sentence := range view.Isolation(node.Measured) {
			b.WriteString(paragraph(node.Node+": "+sentence, columns))
		}
		if node.Change != nil && node.Change.Trend != qualification.TrendSame {
			b.WriteString(paragraph(node.Node+": "+node.Change.Message, columns))
		}
	}
	if marked {
		b.WriteString(paragraph(single+" equals the longest interruption: one event decides this percentile, and another run may show another value", columns))
	}
	return b.String()
}

// paragraph is a sentence on as many lines as it takes.
func paragraph(sentence string, columns int) string {
	return strings.Join(wrap(sentence, "", columns), "\n") + "\n"
}

// LatencyChanges are nodes with the figures of two measurements, one below the other.
func LatencyChanges(test *view.LatencyTest, palette Palette, columns int) string {
	var b strings.Builder
	for i := range test.Nodes {
		node := &test.Nodes[i]
		if i > 0 {
			b.WriteString("\n")
		}
		title := palette.Title(comparedName(node))
		if node.Measured == nil || node.Previous == nil {
			b.WriteString(paragraph(title+": there are no two measurements of it", columns))
			continue
		}
		fmt.Fprintf(&b, "%s: %s\n", title, trendWords(node.Change, palette))
		b.WriteString(Table([]string{"", "BEFORE", "AFTER"}, changeRows(node.Previous, node.Measured), palette, columns))
		b.WriteString(paragraph(node.Change.Message, columns))
	}
	if len(test.Nodes) == 0 {
		return "no node was measured\n"
	}
	return b.String()
}

// comparedName is the name of a node, with its test where there are several, and with whose measurement stands before where that is another node's.
func comparedName(node *view.LatencyNode) string {
	name := node.Node
	if node.Test != "" {
		name = node.Test + " on " + name
	}
	if node.ComparedWith != "" {
		name += ", compared with " + node.ComparedWith
	}
	return name
}

// longestWords is the longest interruption or latency; "-" where no message had an answer.
func longestWords(m *v1alpha1.LatencyMeasurement) string {
	longest, known := view.Longest(m)
	if !known {
		return notCarried
	}
	return latency.Length(longest)
}

// changeRows are the figures of two measurements, and after them what of the node, and of that of the server, differs.
func changeRows(before, after *v1alpha1.LatencyMeasurement) [][]string {
	const form = "2006-01-02 15:04:05Z"
	rows := [][]string{
		{"measured", before.CompletedTime.UTC().Format(form), after.CompletedTime.UTC().Format(form)},
		{"CPUs", before.CPUs, after.CPUs},
		{"longest", longestWords(before), longestWords(after)},
		{"repetitions", repetitionWords(before), repetitionWords(after)},
	}
	switch {
	case before.Network != nil && after.Network != nil:
		rows = append(rows, networkChangeRows(before.Network, after.Network)...)
	case before.Network == nil && after.Network == nil:
		rows = append(rows, jitterChangeRows(before, after)...)
	}
	for _, part := range qualification.MeasurementChanges(before, after) {
		rows = append(rows, []string{part.Name, part.Then, part.Now})
	}
	return rows
}

// repetitionWords are the figures by which repetitions are compared.
func repetitionWords(m *v1alpha1.LatencyMeasurement) string {
	r := qualification.Repetitions(m)
	return repeatedWords(&r)
}

func jitterChangeRows(before, after *v1alpha1.LatencyMeasurement) [][]string {
	rows := append(make([][]string, 0, 2+len(qualification.Percentiles())),
		[]string{"stolen", fmt.Sprintf("%d ppm", before.StolenPartsPerMillion), fmt.Sprintf("%d ppm", after.StolenPartsPerMillion)},
		[]string{"interruptions", strconv.FormatInt(before.Interruptions, 10), strconv.FormatInt(after.Interruptions, 10)})
	length := func(m *v1alpha1.LatencyMeasurement, name v1alpha1.PercentileName) string {
		if value, found := qualification.PercentileOf(m.Percentiles, name); found {
			return latency.Length(value)
		}
		return "-"
	}
	for _, name := range qualification.Percentiles() {
		rows = append(rows, []string{qualification.Words(name), length(before, name), length(after, name)})
	}
	return rows
}

// LatencyProgress is how far a test is on a node, on one line.
func LatencyProgress(node *view.LatencyNode) string {
	line := node.Node + "  " + string(node.Activity)
	if node.Outcome != "" {
		line += "  " + string(node.Outcome)
		if node.Freshness != "" && node.Freshness != v1alpha1.LatencyFresh {
			line += " (" + strings.ToLower(string(node.Freshness)) + ")"
		}
	}
	if node.Message != "" {
		line += "  " + node.Message
	}
	return line
}
