// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	prettytext "github.com/jedib0t/go-pretty/v6/text"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/layout"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/nodereport"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// Node draws one machine with all that is known about it. Ages are counted up to now.
func Node(v *view.Node, now time.Time, palette Palette, columns int) string {
	d := newNodeDrawing(v, palette, columns)
	var b strings.Builder
	b.WriteString(strings.Join(d.headline(v.Node), "\n"))
	b.WriteString(nodeVerdict(v, now, palette, columns))
	b.WriteString(nodeConditions(v.Conditions, now, palette, columns) + "\n")
	b.WriteString(d.drawn() + "\n")
	b.WriteString(nodeContainers(v.Containers, palette, columns))
	b.WriteString("\n" + numaTable(v.NUMANodes, palette, columns) + kubeletTable(v.Kubelet, palette, columns))
	for _, pool := range v.Pools {
		b.WriteString("\n" + poolHead(pool, palette) + poolTable(pool, palette, columns))
		for _, node := range pool.Nodes {
			b.WriteString(poolReasons(node, palette, columns))
		}
	}
	findings := v.AllFindings()
	b.WriteString(failures(findings, nothingMore, palette, columns))
	b.WriteString(others(findings, palette, columns))
	b.WriteString(planFindings("findings about the plan", []NodePlan{{View: view.Plan{Node: v.Node, Findings: v.PlanFindings}}}, palette, columns))
	b.WriteString(nodeTransitions(v.Transitions, palette, columns))
	b.WriteString(nodeDrift(v.Drift, palette, columns))
	b.WriteString(nodeDifferences(v.Differences, palette, columns))
	if v.Jitter != nil {
		b.WriteString("\n" + palette.Title("jitter") + "\n" + Jitter(v.Jitter, palette, columns))
	}
	return b.String()
}

// NodeMap is the drawing of a machine alone: its boxes with roles, users and findings, and the key.
func NodeMap(v *view.Node, palette Palette, columns int) string {
	return newNodeDrawing(v, palette, columns).drawn()
}

func (d *nodeDrawing) drawn() string {
	return strings.Join(slices.Concat(d.boxes(), d.leftovers(), d.wide(), d.key()), "\n")
}

// nodeVerdict says against what the machine was held, how the checks came out, and what of it is not known.
func nodeVerdict(v *view.Node, now time.Time, palette Palette, columns int) string {
	line := "profile " + v.Profile
	switch {
	case v.PlanHash != nil:
		line += ", plan " + *v.PlanHash
	case v.IsMisfit():
		line = palette.Bad("the profile " + v.Profile + " does not fit this host")
	default:
		line += ", no plan"
	}
	lines := []string{line}
	if v.LastLook != nil {
		lines[0] += ", the agent has looked " + age(v.LastLook, now) + " ago"
	}
	if v.Counts != nil {
		var skipped *int
		if v.Skipped != nil {
			skipped = new(len(v.Skipped))
		}
		lines = append(lines, counts(*v.Counts, skipped, v.WindowSeconds, palette))
	}
	for _, problem := range v.Problems {
		for _, part := range wrap(problem, "", columns) {
			lines = append(lines, palette.Warn(part))
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// nodeConditions is the table of conditions, with their ages where they are known.
func nodeConditions(all []view.NodeCondition, now time.Time, palette Palette, columns int) string {
	if !slices.ContainsFunc(all, func(c view.NodeCondition) bool { return c.LastTransition != nil }) {
		plain := make([]view.Condition, 0, len(all))
		for _, c := range all {
			plain = append(plain, c.Condition)
		}
		return conditions(plain, palette, columns)
	}
	rows := make([][]string, 0, len(all))
	for _, c := range all {
		row := conditionRow(c.Condition, palette, columns)
		rows = append(rows, []string{row[0], row[1], age(c.LastTransition, now), row[2], row[3]})
	}
	return "\n" + Table([]string{"CONDITION", "STATUS", "SINCE", "REASON", "MESSAGE"}, rows, palette, columns)
}

// age is how long ago something was, in its largest unit.
func age(at *time.Time, now time.Time) string {
	if at == nil {
		return orDash("")
	}
	passed := max(0, now.Sub(*at))
	const day = 24 * time.Hour
	switch {
	case passed >= 2*day:
		return fmt.Sprintf("%dd", passed/day)
	case passed >= 2*time.Hour:
		return fmt.Sprintf("%dh", passed/time.Hour)
	case passed >= 2*time.Minute:
		return fmt.Sprintf("%dm", passed/time.Minute)
	default:
		return fmt.Sprintf("%ds", passed/time.Second)
	}
}

// nodeDrawing is a machine with roles, users and findings.
type nodeDrawing struct {
	*machine
	view  *view.Node
	roles []role
	// room is the width of the letters before a core.
	room int
}

func newNodeDrawing(v *view.Node, palette Palette, columns int) *nodeDrawing {
	d := &nodeDrawing{machine: newMachine(v.Topology(), palette, columns), view: v, roles: drawn(v.DrawnRoles(), palette)}
	d.mark, d.note, d.pages = d.number, d.letters, d.bars
	d.nicMark, d.nicNote, d.notes = d.nicSign, d.nicUse, d.findings
	if v.Topology().Online.Union(v.Topology().Offline).Len() >= crowd {
		d.letter = d.single
	}
	return d
}

func (d *nodeDrawing) number(cpu int) string {
	r, known := roleAt(d.roles, cpu)
	switch {
	case d.view.Names(cpu):
		return d.palette.Bad(strconv.Itoa(cpu))
	case known && r.letter == view.RoleOffline.Letter():
		return d.palette.Faint(fmt.Sprintf("(%d)", cpu))
	case known:
		return r.paint(strconv.Itoa(cpu))
	default:
		return strconv.Itoa(cpu)
	}
}

// warning is the sign of a finding, or as much room.
func (d *nodeDrawing) warning(hit bool) string {
	if hit {
		return d.palette.Bad("!")
	}
	return " "
}

// letters of a core are those of its roles, in the colour of what is wrong where a finding names one of its CPUs.
func (d *nodeDrawing) letters(core topology.Core) string {
	roles, hit := d.roles, slices.ContainsFunc(core.CPUs.IDs(), d.view.Names)
	if hit {
		roles = slices.Clone(roles)
		for i := range roles {
			roles[i].paint = d.palette.Bad
		}
	}
	return padRight(strings.Join(coreLetters(core, roles, d.palette), "/"), d.lettersWidth()) + d.warning(hit)
}

// lettersWidth is the room that the letters of any core need.
func (d *nodeDrawing) lettersWidth() int {
	if d.room == 0 {
		for _, core := range d.Cores {
			d.room = max(d.room, 2*len(coreLetters(core, d.roles, d.palette))-1)
		}
	}
	return d.room
}

// single is the letter of a CPU where there is no room for its number.
func (d *nodeDrawing) single(cpu int) string {
	r, _ := roleAt(d.roles, cpu)
	if r.paint == nil {
		return "? "
	}
	if d.view.Names(cpu) {
		return d.palette.Bad(r.letter) + d.warning(true)
	}
	return r.paint(r.letter) + d.warning(false)
}

func (d *nodeDrawing) nicSign(nic topology.NIC) string {
	return d.warning(d.view.NamesNIC(nic.PCIAddress))
}

// nicUse says which pool a NIC belongs to, and what the node itself does with it.
func (d *nodeDrawing) nicUse(nic topology.NIC) string {
	var uses []string
	for _, use := range d.view.UsesOf(nic.PCIAddress) {
		uses = append(uses, "pool "+use.Pool+": "+paintHealth(use.NIC.Health, d.palette)(string(use.NIC.Health))+use.Words())
	}
	if nic.Management != "" {
		uses = append(uses, "carries "+nic.Management)
	}
	return layout.Join(uses...)
}

// findings lists those that are to be shown at a NUMA node, each in one line.
func (d *nodeDrawing) findings(node topology.NUMANode, columns int) []string {
	const most = 12
	local := d.view.FindingsAt(&node)
	rows := make([][]string, 0, len(local))
	for _, finding := range local {
		rows = append(rows, []string{
			d.palette.Bad("!"), prettytext.Snip(d.view.LabelAt(&node, finding), columns/4, "…"),
			paintSeverity(finding.Severity, d.palette)(string(finding.Severity)), string(finding.Check), finding.Message,
		})
	}
	more := len(rows) - most
	lines := align(rows[:min(most, len(rows))])
	for i := range lines {
		lines[i] = prettytext.Snip(lines[i], columns, "…")
	}
	if more > 0 {
		lines = append(lines, d.palette.Bad("!")+fmt.Sprintf(" and %d more, see below", more))
	}
	return lines
}

// bars draws the hugepages of a NUMA node, a bar for each size.
func (d *nodeDrawing) bars(node topology.NUMANode, _ int) []string {
	pools := d.view.HugepagesAt(node.ID)
	rows := make([][]string, 0, len(pools))
	for _, state := range pools {
		rows = append(rows, []string{"hugepages", layout.Bytes(state.SizeKibibytes * 1024), d.bar(state), state.Words()})
	}
	return align(rows)
}

// bar has a block for pages in use, a shade for free ones, and a cross for those that are planned and not there.
func (d *nodeDrawing) bar(state view.HugepageState) string {
	const length = 24
	shares := state.Shares(length)
	return d.palette.Owned(strings.Repeat("█", shares.Used)) + d.palette.Isolated(strings.Repeat("░", shares.Free)) +
		d.palette.Bad(strings.Repeat("×", shares.Missing)) + d.palette.Faint(strings.Repeat("?", shares.Unknown))
}

// wide lists the failed checks that are about no NUMA node in particular.
func (d *nodeDrawing) wide() []string {
	var lines []string
	for _, wide := range d.view.WideFindings() {
		checks := make([]string, 0, len(wide.Checks))
		for _, check := range wide.Checks {
			checks = append(checks, string(check))
		}
		head := "! " + wide.What + ": "
		for i, line := range wrap(strings.Join(checks, ", "), "", d.columns-len(head)) {
			lead := strings.Repeat(" ", len(head))
			if i == 0 {
				lead = d.palette.Bad("!") + head[1:]
			}
			lines = append(lines, lead+line)
		}
	}
	return lines
}

// key explains letters and signs, with the CPU list of each role.
func (d *nodeDrawing) key() []string {
	rows := make([][]string, 0, len(d.roles))
	for _, r := range d.roles {
		rows = append(rows, []string{r.paint(r.letter), r.word, prettytext.Snip(r.set.String(), d.columns/2, "…")})
	}
	lines := align(rows)
	signs := []string{d.palette.Bad("!") + " a failed check names it"}
	if legend := d.legend(); legend != "" {
		signs = append(signs, legend)
	}
	if slices.ContainsFunc(d.view.NUMANodes, func(n view.CheckNUMANode) bool { return len(n.Hugepages) > 0 }) {
		signs = append(signs, "hugepages: █ in use, ░ free, × planned and not there")
	}
	return append(lines, flow(signs, layout.Separator, d.columns)...)
}

// nodeContainers lists the containers that own CPUs.
func nodeContainers(containers []nodereport.Container, palette Palette, columns int) string {
	rows := make([][]string, 0, len(containers))
	for _, container := range containers {
		nodes := make([]string, 0, len(container.NUMANodes))
		for _, node := range container.NUMANodes {
			nodes = append(nodes, strconv.Itoa(node))
		}
		where := orDash(strings.Join(nodes, ","))
		if len(nodes) > 1 {
			where = palette.Bad(where + " (split)")
		}
		rows = append(rows, []string{container.Name(), container.CPUs.String(), where})
	}
	if len(rows) == 0 {
		return ""
	}
	return "\n" + Table([]string{"CONTAINER", "CPUs", "NUMA"}, rows, palette, columns)
}

// nodeTransitions lists when conditions changed, and what decided.
func nodeTransitions(transitions []v1alpha1.NodeTransition, palette Palette, columns int) string {
	rows := make([][]string, 0, len(transitions))
	for _, t := range transitions {
		rows = append(rows, []string{
			t.Time.UTC().Format("2006-01-02 15:04:05 UTC"), t.Condition, string(t.From) + " → " + string(t.To), t.Reason,
			strings.TrimSpace(string(t.Check) + " " + t.Message),
		})
	}
	if len(rows) == 0 {
		return ""
	}
	return "\n" + Table([]string{"TRANSITION", "CONDITION", "STATUS", "REASON", "WHAT DECIDED"}, rows, palette, columns)
}

// nodeDrift lists what changed under an unchanged plan.
func nodeDrift(drift []v1alpha1.CheckDrift, palette Palette, columns int) string {
	rows := make([][]string, 0, len(drift))
	for _, d := range drift {
		rows = append(rows, []string{
			string(d.Check), strconv.FormatInt(d.Drifted, 10), strconv.FormatInt(d.Repaired, 10),
			strings.Join(append([]string{d.Message}, d.Unrepaired...), "\n"),
		})
	}
	if len(rows) == 0 {
		return ""
	}
	return "\n" + Table([]string{"DRIFT", "TIMES", "PUT BACK", "WHAT DRIFTED LAST"}, rows, palette, columns)
}

// nodeDifferences lists what others have changed on the host.
func nodeDifferences(differences []string, palette Palette, columns int) string {
	rows := make([][]string, 0, len(differences))
	for _, difference := range differences {
		rows = append(rows, []string{difference})
	}
	if len(rows) == 0 {
		return ""
	}
	return "\n" + Table([]string{"CHANGED BY OTHERS ON THE HOST"}, rows, palette, columns)
}
