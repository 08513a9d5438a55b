// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	prettytext "github.com/jedib0t/go-pretty/v6/text"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/layout"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
)

// Checks draws how hosts compare with their plans.
func Checks(checks []view.Check, palette Palette, columns int) string {
	drawn := make([]string, 0, len(checks))
	for _, check := range checks {
		drawn = append(drawn, drawCheck(check, palette, columns))
	}
	return strings.Join(drawn, "\n")
}

func drawCheck(check view.Check, palette Palette, columns int) string {
	node := []NodePlan{{View: view.Plan{Node: check.Node, Findings: check.PlanFindings}}}
	if check.PlanHash == nil {
		return palette.Title(check.Node) + ": " + palette.Bad("the profile "+check.Profile+" does not fit this host") + "\n" +
			planFindings("findings", node, palette, columns)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s against profile %s, plan %s\n", palette.Title(check.Node), check.Profile, *check.PlanHash)
	b.WriteString(counts(check.Counts, new(len(check.Skipped)), check.WindowSeconds, palette) + "\n")
	b.WriteString(conditions(check.Conditions, palette, columns))
	b.WriteString("\n" + numaTable(check.NUMANodes, palette, columns))
	b.WriteString(kubeletTable(check.Kubelet, palette, columns))
	b.WriteString(failures(check.Findings, documented, palette, columns))
	b.WriteString(others(check.Findings, palette, columns))
	b.WriteString(planFindings("findings about the plan", node, palette, columns))
	return b.String()
}

// documented names the place that explains the check of a finding.
func documented(f finding.Finding) [][]string {
	return [][]string{{"more", "docs/checks.md#" + string(f.Check)}}
}

// nothingMore adds nothing to a finding.
func nothingMore(finding.Finding) [][]string { return nil }

// failures draws the failed checks at length, and what more there is to say about each.
func failures(findings []finding.Finding, more func(finding.Finding) [][]string, palette Palette, columns int) string {
	var b strings.Builder
	for _, f := range findings {
		if f.Outcome != v1alpha1.OutcomeFailed {
			continue
		}
		b.WriteString("\n" + block(
			layout.Join(paintOutcome(f, palette)(string(f.Outcome)), string(f.Severity), palette.Title(string(f.Check))),
			append([][]string{
				{"", f.Message},
				{"about", f.Objects.Beside()},
				{"observed", f.Observed},
				{"expected", f.Expected},
				{"fix", f.Fix + rebootNote(f.Reboot)},
				{"decides", strings.Join(f.Decides, ", ")},
			}, more(f)...), palette, columns))
	}
	return b.String()
}

// others lists the checks that did not pass and did not fail.
func others(findings []finding.Finding, palette Palette, columns int) string {
	var rows [][]string
	for _, f := range findings {
		if f.Outcome != v1alpha1.OutcomeFailed {
			rows = append(rows, []string{string(f.Outcome), string(f.Severity), string(f.Check), f.Message})
		}
	}
	if len(rows) == 0 {
		return ""
	}
	return "\n" + Table([]string{"OUTCOME", "SEVERITY", "CHECK", "MESSAGE"}, rows, palette, columns)
}

func rebootNote(reboot v1alpha1.RebootRequirement) string {
	if reboot == v1alpha1.RebootRequired {
		return " (takes effect after a reboot)"
	}
	return ""
}

func paintOutcome(f finding.Finding, palette Palette) Paint {
	if f.MakesFalse() {
		return palette.Bad
	}
	if f.Outcome == v1alpha1.OutcomeFailed {
		return palette.Warn
	}
	return palette.Faint
}

// counts says how many checks had which outcome; skipped is nil where it is not known.
func counts(c v1alpha1.CheckCounts, skipped *int, window *float64, palette Palette) string {
	parts := []string{
		palette.Good(fmt.Sprintf("%d passed", c.Passed)),
		palette.Bad(fmt.Sprintf("%d failed", c.Failed)),
		fmt.Sprintf("%d unknown", c.Unknown),
		fmt.Sprintf("%d waived", c.Waived),
	}
	if skipped != nil {
		parts = append(parts, palette.Faint(fmt.Sprintf("%d not evaluated", *skipped)))
	}
	if window != nil {
		parts = append(parts, fmt.Sprintf("counters over %g s", *window))
	}
	return layout.Join(parts...)
}

func conditions(all []view.Condition, palette Palette, columns int) string {
	rows := make([][]string, 0, len(all))
	for _, condition := range all {
		rows = append(rows, conditionRow(condition, palette, columns))
	}
	if len(rows) == 0 {
		return ""
	}
	return "\n" + Table([]string{"CONDITION", "STATUS", "REASON", "MESSAGE"}, rows, palette, columns)
}

func conditionRow(condition view.Condition, palette Palette, columns int) []string {
	paint := map[metav1.ConditionStatus]Paint{
		metav1.ConditionTrue: palette.Good, metav1.ConditionFalse: palette.Bad, metav1.ConditionUnknown: palette.Warn,
	}[condition.Status]
	return []string{
		condition.Type, paint(string(condition.Status)), condition.Reason, prettytext.Snip(condition.Message, columns, "…"),
	}
}

// numaTable says what each NUMA node offers, and, where that was compared, its interrupts and reserved memory.
func numaTable(nodes []view.CheckNUMANode, palette Palette, columns int) string {
	compared := slices.ContainsFunc(nodes, func(n view.CheckNUMANode) bool { return n.Vectors != nil || n.Reserved != nil })
	header := []string{"NUMA", "HOUSEKEEPING", "ISOLATED", "HUGEPAGES (planned/present/free)", "NICs"}
	if compared {
		header = append(header, "VECTORS (isolated)", "RESERVED")
	}
	rows := make([][]string, 0, len(nodes))
	for _, node := range nodes {
		row := []string{
			strconv.Itoa(node.ID), orDash(node.Housekeeping.String()), orDash(node.Isolated.String()),
			strings.Join(hugepageStates(node.Hugepages, palette), "\n"), orDash(strings.Join(node.NICs, ", ")),
		}
		if compared {
			row = append(row, vectors(node, palette), orDash(strings.Join(settingTexts(node.Reserved), "\n")))
		}
		rows = append(rows, row)
	}
	return Table(header, rows, palette, columns)
}

// kubeletTable says how the kubelet aligns pods; "" when that was not compared.
func kubeletTable(settings []view.SettingState, palette Palette, columns int) string {
	if len(settings) == 0 {
		return ""
	}
	rows := make([][]string, 0, len(settings))
	for _, setting := range settings {
		configured := "?"
		if setting.Configured != nil {
			configured = orDash(*setting.Configured)
		}
		if setting.Planned != "" && configured != setting.Planned {
			configured = palette.Warn(configured)
		}
		rows = append(rows, []string{setting.Name, orDash(setting.Planned), configured})
	}
	return "\n" + Table([]string{"KUBELET", "PLANNED", "CONFIGURED"}, rows, palette, columns)
}

// vectors counts the interrupts of a NUMA node, and how many of them isolated CPUs get.
func vectors(node view.CheckNUMANode, palette Palette) string {
	if node.Vectors == nil || node.IsolatedVectors == nil {
		return "?"
	}
	text := fmt.Sprintf("%d (%d)", *node.Vectors, *node.IsolatedVectors)
	if *node.IsolatedVectors > 0 {
		return palette.Warn(text)
	}
	return text
}

func settingTexts(settings []view.SettingState) []string {
	texts := make([]string, 0, len(settings))
	for _, setting := range settings {
		texts = append(texts, setting.Text)
	}
	return texts
}

func hugepageStates(states []view.HugepageState, palette Palette) []string {
	if len(states) == 0 {
		return []string{"-"}
	}
	lines := make([]string, 0, len(states))
	for _, state := range states {
		line := fmt.Sprintf("%s  %s/%s/%s", layout.Bytes(state.SizeKibibytes*1024),
			number(state.Promised, "spread"), number(state.Total, "?"), number(state.Free, "?"))
		if state.Promised != nil && state.Total != nil && *state.Total < *state.Promised {
			line = palette.Bad(line)
		}
		lines = append(lines, line)
	}
	return lines
}

func number(value *int64, unknown string) string {
	if value == nil {
		return unknown
	}
	return strconv.FormatInt(*value, 10)
}
