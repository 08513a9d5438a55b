// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"slices"
	"strconv"

	"github.com/fatih/color"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// column is one of a table.
type column[T any] struct {
	title string
	cell  func(T) string
	// drop is when the column is left out for lack of room: 1 first, 0 never.
	drop int
}

// grid draws a table that is no wider than width as far as its columns can be left out.
func grid[T any](width int, columns []column[T], rows []T) string {
	for drop := 0; ; drop++ {
		columns = slices.DeleteFunc(slices.Clone(columns), func(c column[T]) bool { return c.drop != 0 && c.drop == drop })
		drawn := render(columns, rows)
		more := slices.ContainsFunc(columns, func(c column[T]) bool { return c.drop > drop })
		if !more || text.LongestLineLen(drawn) <= width {
			return drawn
		}
	}
}

// render draws all columns.
func render[T any](columns []column[T], rows []T) string {
	writer := table.NewWriter()
	writer.SetStyle(plain())
	header := make(table.Row, 0, len(columns))
	for _, c := range columns {
		header = append(header, c.title)
	}
	writer.AppendHeader(header)
	for _, row := range rows {
		cells := make(table.Row, 0, len(columns))
		for _, c := range columns {
			cells = append(cells, c.cell(row))
		}
		writer.AppendRow(cells)
	}
	return writer.Render()
}

// plain is the style of kubectl's tables: no lines, two spaces between columns.
func plain() table.Style {
	style := table.StyleDefault
	style.Box = table.BoxStyle{PaddingRight: "  "}
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatUpper
	return style
}

// number is a cell.
func number[N int | int32 | int64](n N) string { return strconv.FormatInt(int64(n), 10) }

// profileTable is what `kubectl get llnp` and `kubectl get lln` show, in one picture.
func profileTable(v view, width int) string {
	return grid(width, profileColumns(), []*v1alpha1.LowLatencyNodeProfile{&v.profile}) + "\n\n" + grid(width, nodeColumns(v.third), v.rows)
}

func profileColumns() []column[*v1alpha1.LowLatencyNodeProfile] {
	type profile = *v1alpha1.LowLatencyNodeProfile
	return []column[profile]{
		{title: "profile", cell: func(p profile) string { return p.Name }},
		{title: "ready", cell: func(p profile) string { return status(condition(p.Status.Conditions, v1alpha1.ConditionReady)) }},
		{title: "reason", cell: func(p profile) string { return reason(condition(p.Status.Conditions, v1alpha1.ConditionReady)) }},
		{title: "nodes", cell: func(p profile) string { return number(counts(p).Matched) }},
		{title: "planned", drop: 1, cell: func(p profile) string { return number(counts(p).Planned) }},
		{title: "applied", cell: func(p profile) string { return number(counts(p).Applied) }},
		{title: "de-jittered", cell: func(p profile) string { return number(counts(p).DeJittered) }},
		{title: "NUMA-aligned", cell: func(p profile) string { return number(counts(p).NUMAAligned) }},
	}
}

// counts are the nodes of a profile, zero before they are counted.
func counts(profile *v1alpha1.LowLatencyNodeProfile) v1alpha1.NodeCounts {
	if profile.Status.Nodes == nil {
		return v1alpha1.NodeCounts{}
	}
	return *profile.Status.Nodes
}

// nodeRow is one node as the demo shows it.
type nodeRow struct {
	name, machine, third, platform string
	reboots                        int
	node                           *v1alpha1.LowLatencyNode
}

func (r nodeRow) condition(kind string) *metav1.Condition {
	if r.node == nil {
		return nil
	}
	return condition(r.node.Status.Conditions, kind)
}

func (r nodeRow) checks() v1alpha1.CheckCounts {
	if r.node == nil || r.node.Status.Checks == nil {
		return v1alpha1.CheckCounts{}
	}
	return *r.node.Status.Checks
}

func nodeColumns(third string) []column[nodeRow] {
	return []column[nodeRow]{
		{title: "node", cell: func(r nodeRow) string { return r.name }},
		{title: "machine", drop: 1, cell: func(r nodeRow) string { return r.machine }},
		{title: third, drop: 3, cell: func(r nodeRow) string { return r.third }},
		{title: "platform", cell: func(r nodeRow) string { return r.platform }},
		{title: "reboots", cell: func(r nodeRow) string { return number(r.reboots) }},
		{title: "applied", cell: func(r nodeRow) string { return status(r.condition(v1alpha1.ConditionApplied)) }},
		{title: "de-jittered", cell: func(r nodeRow) string { return status(r.condition(v1alpha1.ConditionDeJittered)) }},
		{title: "NUMA-aligned", cell: func(r nodeRow) string { return status(r.condition(v1alpha1.ConditionNUMAAligned)) }},
		{title: "passed", drop: 2, cell: func(r nodeRow) string { return number(r.checks().Passed) }},
		{title: "failed", cell: func(r nodeRow) string { return failed(r.checks().Failed) }},
		{title: "unknown", drop: 2, cell: func(r nodeRow) string { return number(r.checks().Unknown) }},
	}
}

// failed is red where something failed.
func failed(count int32) string {
	if count == 0 {
		return "0"
	}
	return color.RedString("%d", count)
}

func condition(conditions []metav1.Condition, kind string) *metav1.Condition {
	return meta.FindStatusCondition(conditions, kind)
}

func reason(condition *metav1.Condition) string {
	if condition == nil {
		return "·"
	}
	return condition.Reason
}

// status colours the status of a condition; a condition that is not there yet is a dot.
func status(condition *metav1.Condition) string {
	if condition == nil {
		return "·"
	}
	switch condition.Status {
	case metav1.ConditionTrue:
		return color.GreenString("True")
	case metav1.ConditionFalse:
		return color.RedString("False")
	default:
		return color.YellowString("Unknown")
	}
}

// findingText is the head of a finding, as a person reads it; its message is a paragraph.
func findingText(finding v1alpha1.ProfileFinding) string {
	return color.RedString(string(finding.Severity)) + "  " + finding.Node + "  " + finding.Check
}
