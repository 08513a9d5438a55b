// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"fmt"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/layout"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// NodePlan is one node and its plan.
type NodePlan struct {
	View     view.Plan
	Topology *topology.Topology
	// Plan is nil when a finding is Critical, and when the node is returned.
	Plan *plan.NodePlan
	// Returned tells that the profile is gone, so that the node is given back.
	Returned bool
}

// isCompared reports whether it is known what changes on the node.
func (n *NodePlan) isCompared() bool { return n.Plan != nil || n.Returned }

// Plans draws the plans of several nodes: a table of the nodes, then each shape once, then the
// findings. Against says what the plans are compared with; "" leaves the differences out.
func Plans(nodes []NodePlan, against string, palette Palette, columns int) string {
	var b strings.Builder
	b.WriteString(nodeTable(nodes, palette, columns))
	for _, shape := range shapes(nodes) {
		b.WriteString("\n" + drawShape(shape, palette, columns))
	}
	if against != "" {
		b.WriteString(differences(nodes, against, palette, columns))
	}
	b.WriteString(planFindings("findings", nodes, palette, columns))
	return b.String()
}

// shapes groups the nodes that have a plan by equal plans, in the order in which they come.
func shapes(nodes []NodePlan) [][]NodePlan {
	index := map[string]int{}
	var groups [][]NodePlan
	for _, node := range nodes {
		if node.Plan == nil {
			continue
		}
		hash := *node.View.PlanHash
		if _, seen := index[hash]; !seen {
			index[hash] = len(groups)
			groups = append(groups, nil)
		}
		groups[index[hash]] = append(groups[index[hash]], node)
	}
	return groups
}

// nodeTable has one line for each node.
func nodeTable(nodes []NodePlan, palette Palette, columns int) string {
	rows := make([][]string, 0, len(nodes))
	for _, node := range nodes {
		plan, housekeeping, isolated, reboot := palette.Bad("no plan"), "-", "-", "-"
		switch {
		case node.Returned:
			plan, reboot = "given back", paintReboot(node.View.Reboot, palette)
		case node.Plan != nil:
			plan, reboot = *node.View.PlanHash, paintReboot(node.View.Reboot, palette)
			housekeeping, isolated = node.View.Housekeeping.String(), node.View.Isolated.String()
		}
		rows = append(rows, []string{
			node.View.Node, plan, housekeeping, isolated, reboot, severities(node.View.Findings, palette),
		})
	}
	return Table([]string{"NODE", "PLAN", "HOUSEKEEPING", "ISOLATED", "REBOOT", "FINDINGS"}, rows, palette, columns)
}

func paintReboot(reboot v1alpha1.RebootRequirement, palette Palette) string {
	switch reboot {
	case v1alpha1.RebootRequired:
		return palette.Warn(string(reboot))
	case v1alpha1.RebootNotRequired:
		return palette.Good(string(reboot))
	default:
		return string(reboot)
	}
}

// severities counts findings: "1 Critical, 2 Low".
func severities(findings []plan.Finding, palette Palette) string {
	count := map[v1alpha1.Severity]int{}
	for _, finding := range findings {
		count[finding.Severity]++
	}
	var parts []string
	for _, severity := range severityOrder() {
		if count[severity] > 0 {
			parts = append(parts, paintSeverity(severity, palette)(fmt.Sprintf("%d %s", count[severity], severity)))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// drawShape draws one plan with its CPU map.
func drawShape(nodes []NodePlan, palette Palette, columns int) string {
	first := nodes[0]
	names := make([]string, 0, len(nodes))
	for _, node := range nodes {
		names = append(names, node.View.Node)
	}
	title := fmt.Sprintf("shape %s: %s", *first.View.PlanHash, layout.Plural(len(nodes), "node"))
	lines := append(wrap(palette.Title(title)+" ("+strings.Join(names, ", ")+")", "  ", columns),
		cpuMap(first.Plan, first.Topology, palette, columns)...)
	return strings.Join(lines, "\n") + "\n\n" + values(first.View, palette, columns)
}
