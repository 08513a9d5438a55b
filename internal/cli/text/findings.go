// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/layout"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// sameFinding are nodes with the same finding.
type sameFinding struct {
	finding plan.Finding
	names   []string
}

// planFindings draws what cannot be met, or is doubtful, on some node: the most severe first, equal
// findings once.
func planFindings(title string, nodes []NodePlan, palette Palette, columns int) string {
	groups := groupFindings(nodes)
	if len(groups) == 0 {
		return ""
	}
	rank := func(g *sameFinding) int { return slices.Index(severityOrder(), g.finding.Severity) }
	slices.SortStableFunc(groups, func(a, b *sameFinding) int { return rank(a) - rank(b) })
	var b strings.Builder
	b.WriteString("\n" + palette.Title(title) + "\n")
	for _, g := range groups {
		f := g.finding
		b.WriteString(block(
			layout.Join(paintSeverity(f.Severity, palette)(string(f.Severity)), palette.Title(f.Rule), f.Field, strings.Join(g.names, ", ")),
			[][]string{{"", f.Message}, {"fix", f.Remedy}}, palette, columns))
	}
	return b.String()
}

// groupFindings puts equal findings of different nodes together.
func groupFindings(nodes []NodePlan) []*sameFinding {
	var groups []*sameFinding
	for _, node := range nodes {
		for _, finding := range node.View.Findings {
			i := slices.IndexFunc(groups, func(g *sameFinding) bool { return g.finding.Key() == finding.Key() })
			if i < 0 {
				groups, i = append(groups, &sameFinding{finding: finding}), len(groups)
			}
			groups[i].names = append(groups[i].names, node.View.Node)
		}
	}
	return groups
}

func severityOrder() []v1alpha1.Severity {
	return []v1alpha1.Severity{
		v1alpha1.SeverityCritical, v1alpha1.SeverityHigh, v1alpha1.SeverityMedium, v1alpha1.SeverityLow,
	}
}

func paintSeverity(severity v1alpha1.Severity, palette Palette) Paint {
	switch severity {
	case v1alpha1.SeverityCritical:
		return palette.Bad
	case v1alpha1.SeverityHigh:
		return palette.Warn
	default:
		return func(text string) string { return text }
	}
}
