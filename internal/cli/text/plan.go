// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// NodePlan is one node and its plan.
type NodePlan struct {
	View     view.Plan
	Topology *topology.Topology
	// Plan is nil when a finding is Critical.
	Plan *plan.NodePlan
}

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
	b.WriteString(planFindings(nodes, palette, columns))
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
		row := []string{node.View.Node, palette.Bad("no plan"), "-", "-", "-"}
		if node.Plan != nil {
			row = []string{
				node.View.Node, *node.View.PlanHash, node.Plan.CPUs.Housekeeping.String(), node.Plan.CPUs.Isolated.String(),
				paintReboot(node.View.Reboot, palette),
			}
		}
		rows = append(rows, append(row, severities(node.View.Findings, palette)))
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

// drawShape draws one plan with its CPU map.
func drawShape(nodes []NodePlan, palette Palette, columns int) string {
	first := nodes[0]
	names := make([]string, 0, len(nodes))
	for _, node := range nodes {
		names = append(names, node.View.Node)
	}
	title := fmt.Sprintf("shape %s: %s", *first.View.PlanHash, plural(len(nodes), "node"))
	lines := append(wrap(palette.Title(title)+" "+strings.Join(names, ", "), "  ", columns),
		cpuMap(first.Plan, first.Topology, palette, columns)...)
	return strings.Join(lines, "\n") + "\n\n" + values(first.Plan, palette, columns)
}

// values is the table of what the plan sets, with where each value comes from.
func values(p *plan.NodePlan, palette Palette, columns int) string {
	sections := []struct {
		title string
		rows  [][]string
	}{
		{"CPUs", cpuRows(p)},
		{"kernel", kernelRows(p)},
		{"hugepages", hugepageRows(p)},
		{"interrupts, power, network", modeRows(p)},
		{"kernel parameters", settingRows(p.Sysctls)},
		{"sysfs", settingRows(p.Sysfs)},
		{"kubelet", kubeletRows(p.Kubelet)},
		{"files and units", fileRows(p)},
		{"services stopped, modules unloaded", append(settingRows(p.StopServices), settingRows(p.UnloadModules)...)},
	}
	const indent = "  "
	var rows [][]string
	for _, section := range sections {
		if len(section.rows) > 0 {
			rows = append(rows, []string{palette.Title(section.title), ""})
		}
		for _, row := range section.rows {
			value := fold(row[0], columns*6/10)
			rows = append(rows, []string{indent + strings.Join(value, "\n"+indent+indent), palette.Faint(row[1])})
		}
	}
	return Table([]string{"VALUE", "FROM"}, rows, palette, columns)
}

// row is a value and its origin.
func row(origin plan.Origin, format string, args ...any) []string {
	return []string{fmt.Sprintf(format, args...), from(origin)}
}

// from writes an origin: a field by its path, others with what they are.
func from(origin plan.Origin) string {
	switch origin.Source {
	case plan.FromField:
		return origin.Detail
	case plan.FromPreset:
		return "preset " + strings.TrimPrefix(origin.Detail, "preset ")
	case plan.FromTopology:
		return "topology: " + origin.Detail
	default:
		return "default: " + origin.Detail
	}
}

func cpuRows(p *plan.NodePlan) [][]string {
	c := p.CPUs
	rows := [][]string{
		row(c.Origin, "housekeeping %s", c.Housekeeping),
		row(c.Origin, "isolated %s", c.Isolated),
	}
	if !c.Offline.IsEmpty() {
		rows = append(rows, row(c.Origin, "offline %s", c.Offline))
	}
	return append(rows, row(c.Origin, "sibling threads %s, isolation %s, tick %s", c.SMT, c.Isolation, c.Tick))
}

func kernelRows(p *plan.NodePlan) [][]string {
	rows := [][]string{row(p.Kernel.Origin, "kernel type %s, pages of %s", p.Kernel.Type, p.Kernel.PageSize)}
	for _, argument := range p.KernelArguments {
		rows = append(rows, row(argument.Origin, "%s", argument.Text))
	}
	return rows
}

func hugepageRows(p *plan.NodePlan) [][]string {
	rows := make([][]string, 0, len(p.Hugepages))
	for _, pages := range p.Hugepages {
		where := "spread over the NUMA nodes"
		if pages.NUMANode != nil {
			where = fmt.Sprintf("on NUMA node %d", *pages.NUMANode)
		}
		how := "by kernel argument"
		if pages.Method == plan.ByUnit {
			how = "by a unit before the kubelet"
		}
		rows = append(rows, row(pages.Origin, "%d × %s %s, %s", pages.Count, pages.Size, where, how))
	}
	return rows
}

func modeRows(p *plan.NodePlan) [][]string {
	i, w, n := p.Interrupts, p.Power, p.Network
	irq := fmt.Sprintf("interrupts %s: default affinity %s, irqbalance %s", i.Placement, i.DefaultAffinity, i.Balancer)
	if !i.Banned.IsEmpty() {
		irq += " with CPUs " + i.Banned.String() + " banned"
	}
	rows := [][]string{
		{irq, from(i.Origin)},
		row(w.Origin, "idle states %s, frequency driver %s, governor %s, turbo %s", w.IdleStates, w.FrequencyDriver, w.Governor, w.Turbo),
	}
	if w.IsolatedMaximum > 0 {
		rows = append(rows, row(w.Origin, "maximum frequency: isolated %d kHz, housekeeping %d kHz", w.IsolatedMaximum, w.HousekeepingMaximum))
	}
	queues := "left alone"
	if n.Queues > 0 {
		queues = fmt.Sprint(n.Queues)
	}
	return append(rows, row(n.Origin, "NIC queues %s, receive packet steering %s", queues, n.Steering))
}

func settingRows(settings []plan.Setting) [][]string {
	rows := make([][]string, 0, len(settings))
	for _, setting := range settings {
		text := setting.Name
		if setting.Value != "" {
			text += " = " + setting.Value
		}
		rows = append(rows, row(setting.Origin, "%s", text))
	}
	return rows
}

// kubeletRows lists fields of KubeletConfiguration in alphabetical order.
func kubeletRows(p plan.KubeletPlan) [][]string {
	fields, err := view.Kubelet(p)
	if err != nil {
		return [][]string{{err.Error(), ""}}
	}
	rows := make([][]string, 0, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		rows = append(rows, row(p.Origin, "%s: %s", name, inline(fields[name])))
	}
	return rows
}

func fileRows(p *plan.NodePlan) [][]string {
	rows := make([][]string, 0, len(p.Files)+len(p.Units))
	for _, file := range p.Files {
		rows = append(rows, row(file.Origin, "%s (mode %04o, %d bytes)", file.Path, file.Mode, len(file.Content)))
	}
	for _, unit := range p.Units {
		state := ""
		switch {
		case unit.Masked:
			state = " (masked)"
		case unit.Enabled:
			state = " (enabled)"
		case unit.Content == "":
			state = " (drop-in)"
		}
		rows = append(rows, row(unit.Origin, "%s%s", unit.Name, state))
	}
	return rows
}

// inline writes a JSON value in one line, as YAML's flow style does.
func inline(value any) string {
	switch v := value.(type) {
	case map[string]any:
		parts := make([]string, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, key+": "+inline(v[key]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		parts := make([]string, 0, len(v))
		for _, item := range v {
			parts = append(parts, inline(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	default:
		return fmt.Sprint(v)
	}
}

// differences draws the changes, once for nodes with the same ones.
func differences(nodes []NodePlan, against string, palette Palette, columns int) string {
	type group struct {
		names   []string
		changes []plan.Change
	}
	var groups []*group
	for _, node := range nodes {
		if node.Plan == nil {
			continue
		}
		i := slices.IndexFunc(groups, func(g *group) bool { return slices.Equal(g.changes, node.View.Changes) })
		if i < 0 {
			groups, i = append(groups, &group{changes: node.View.Changes}), len(groups)
		}
		groups[i].names = append(groups[i].names, node.View.Node)
	}
	var b strings.Builder
	for _, g := range groups {
		title := fmt.Sprintf("change from %s to this plan on %s", against, strings.Join(g.names, ", "))
		if against == "running" {
			title = fmt.Sprintf("change from what runs now to this plan on %s", strings.Join(g.names, ", "))
		}
		b.WriteString("\n" + strings.Join(wrap(palette.Title(title), "  ", columns), "\n") + "\n")
		if len(g.changes) == 0 {
			b.WriteString("nothing changes\n")
			continue
		}
		b.WriteString(changeTable(g.changes, palette, columns))
	}
	return b.String()
}

func changeTable(changes []plan.Change, palette Palette, columns int) string {
	rows := make([][]string, 0, len(changes))
	for _, change := range changes {
		half := columns / 4
		rows = append(rows, []string{
			strings.Join(wrap(change.What, "  ", half), "\n"),
			palette.Bad(strings.Join(fold(orDash(change.From), half), "\n")),
			palette.Good(strings.Join(fold(orDash(change.To), half), "\n")),
			join(paintReboot(change.Reboot, palette), change.Why),
		})
	}
	return Table([]string{"WHAT", "FROM", "TO", "REBOOT"}, rows, palette, columns)
}

// planFindings draws what cannot be met, or is doubtful, on some node; equal findings once.
func planFindings(nodes []NodePlan, palette Palette, columns int) string {
	type group struct {
		finding plan.Finding
		names   []string
	}
	var groups []*group
	for _, node := range nodes {
		for _, finding := range node.View.Findings {
			finding.Node = ""
			i := slices.IndexFunc(groups, func(g *group) bool { return g.finding == finding })
			if i < 0 {
				groups, i = append(groups, &group{finding: finding}), len(groups)
			}
			groups[i].names = append(groups[i].names, node.View.Node)
		}
	}
	if len(groups) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n" + palette.Title("findings") + "\n")
	for _, severity := range severityOrder() {
		for _, g := range groups {
			if g.finding.Severity != severity {
				continue
			}
			b.WriteString(block(
				join(paintSeverity(severity, palette)(string(severity)), strings.Join(g.names, ", "), g.finding.Field, palette.Faint(g.finding.Rule)),
				[][]string{{"", g.finding.Message}, {"fix", g.finding.Remedy}}, palette, columns))
		}
	}
	return b.String()
}
