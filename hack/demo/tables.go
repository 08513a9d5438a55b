// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"fmt"
	"strings"

	"github.com/fatih/color"
	"github.com/jedib0t/go-pretty/v6/table"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// profileTable is what `kubectl get llnp` and `kubectl get lln` show, in one picture.
func profileTable(profile *v1alpha1.LowLatencyNodeProfile, nodes []nodeRow) string {
	return profileLine(profile) + "\n\n" + nodeTable(nodes) + "\n"
}

func profileLine(profile *v1alpha1.LowLatencyNodeProfile) string {
	counts := profile.Status.Nodes
	if counts == nil {
		counts = &v1alpha1.NodeCounts{}
	}
	writer := newTable()
	writer.AppendHeader(table.Row{"profile", "ready", "reason", "nodes", "planned", "applied", "de-jittered", "NUMA-aligned"})
	ready := meta.FindStatusCondition(profile.Status.Conditions, v1alpha1.ConditionReady)
	reason := ""
	if ready != nil {
		reason = ready.Reason
	}
	writer.AppendRow(table.Row{
		profile.Name, status(ready), reason, counts.Matched, counts.Planned, counts.Applied, counts.DeJittered, counts.NUMAAligned,
	})
	return writer.Render()
}

// nodeRow is one node as the demo shows it.
type nodeRow struct {
	name, machine, pool, platform string
	reboots                       int
	node                          *v1alpha1.LowLatencyNode
}

func nodeTable(rows []nodeRow) string {
	writer := newTable()
	writer.AppendHeader(table.Row{"node", "machine", "pool", "platform", "reboots", "applied", "de-jittered", "NUMA-aligned", "passed", "failed", "unknown"})
	for _, row := range rows {
		checks := v1alpha1.CheckCounts{}
		var conditions []metav1.Condition
		if row.node != nil {
			conditions = row.node.Status.Conditions
			if row.node.Status.Checks != nil {
				checks = *row.node.Status.Checks
			}
		}
		writer.AppendRow(table.Row{
			row.name, row.machine, row.pool, row.platform, row.reboots,
			status(meta.FindStatusCondition(conditions, v1alpha1.ConditionApplied)),
			status(meta.FindStatusCondition(conditions, v1alpha1.ConditionDeJittered)),
			status(meta.FindStatusCondition(conditions, v1alpha1.ConditionNUMAAligned)),
			checks.Passed, checks.Failed, checks.Unknown,
		})
	}
	return writer.Render()
}

func newTable() table.Writer {
	writer := table.NewWriter()
	writer.SetStyle(table.StyleLight)
	writer.Style().Options.SeparateRows = false
	writer.Style().Options.DrawBorder = false
	return writer
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

// findingText shows a finding as a person reads it.
func findingText(finding v1alpha1.ProfileFinding) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s\n", color.RedString(string(finding.Severity)), finding.Node, finding.Check)
	fmt.Fprintf(&b, "%s", finding.Message)
	return b.String()
}
