// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package picture draws a node in SVG: NUMA nodes as boxes, CPUs with their roles, hugepages, NICs, and findings beside
// what they name. A picture refers to nothing outside of it, and is readable on a light ground and on a dark one. It is
// pure.
package picture

import (
	"fmt"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/layout"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// The measures of a picture, in pixels.
const (
	total  = 1240.0
	margin = 16.0
	gap    = 12.0
	// line is the height of a line of small text.
	line = 17.0
)

// SVG draws a node as a document of its own, with what the node is and how its checks came out above the machine.
func SVG(v *view.Node) string { return document(v, true) }

// Machine draws the machine alone, to stand in a page that says the rest.
func Machine(v *view.Node) string { return document(v, false) }

func document(v *view.Node, titled bool) string {
	d := &drawing{view: v, machine: v.Topology()}
	y := margin
	if titled {
		y = d.title(y)
	}
	y = d.frames(y)
	y = d.wide(d.leftovers(y))
	y = d.legend(y)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" class="ll" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">`+"\n",
		total, y, total, y, escape("CPUs, memory and NICs of node "+v.Node))
	b.WriteString(style)
	if titled {
		b.WriteString(`<rect class="bg" width="100%" height="100%"/>` + "\n")
	}
	b.WriteString(d.String())
	b.WriteString("</svg>\n")
	return b.String()
}

// drawing is the picture of one node.
type drawing struct {
	canvas
	view    *view.Node
	machine *topology.Topology
}

// title says what the node is; it returns where to go on.
func (d *drawing) title(y float64) float64 {
	y += 16
	d.text("h1", point{margin, y}, cut(d.view.Node, (total-2*margin)*0.6))
	for _, parts := range layout.Headline(d.machine) {
		y += line
		d.text("f", point{margin, y}, cut(strings.Join(parts, layout.Separator), total-2*margin))
	}
	y += line
	d.text("t", point{margin, y}, cut(verdict(d.view), total-2*margin))
	x := margin
	y += line
	for _, condition := range d.view.Conditions {
		class := map[bool]string{true: "good", false: "bad"}[condition.Status == "True"]
		d.tspans(point{x, y}, "f", condition.Type+" ", class, string(condition.Status))
		x += long(condition.Type+" "+string(condition.Status)) + 2*gap
	}
	return y + gap
}

// verdict says against what the node was held and how the checks came out.
func verdict(v *view.Node) string {
	if v.IsHardware() {
		return ""
	}
	if v.IsMisfit() {
		return "the profile " + v.Profile + " does not fit this host"
	}
	against := "profile " + v.Profile
	if v.PlanHash != nil {
		against += ", plan " + *v.PlanHash
	}
	if c := v.Counts; c != nil {
		return layout.Join(against, fmt.Sprintf("%d checks passed", c.Passed), fmt.Sprintf("%d failed", c.Failed),
			fmt.Sprintf("%d unknown", c.Unknown), fmt.Sprintf("%d waived", c.Waived))
	}
	return against
}

// frames draws the packages and NUMA nodes: packages with several NUMA nodes below each other, with two NUMA nodes side by
// side in each, others two by two.
func (d *drawing) frames(y float64) float64 {
	var single []layout.Package
	flush := func() {
		y = d.pairs(single, margin, y, total-2*margin)
		single = nil
	}
	for _, frame := range layout.Packages(d.machine) {
		if len(frame.Nodes) == 1 {
			single = append(single, frame)
			continue
		}
		flush()
		y = d.frame(frame, y)
	}
	flush()
	return y
}

// frame draws a package around its NUMA nodes.
func (d *drawing) frame(frame layout.Package, y float64) float64 {
	const head = 24.0
	begin := d.Len()
	boxes := make([]layout.Package, 0, len(frame.Nodes))
	for _, node := range frame.Nodes {
		boxes = append(boxes, layout.Package{ID: frame.ID, Nodes: []topology.NUMANode{node}})
	}
	end := d.pairs(boxes, margin+gap, y+head, total-2*margin-2*gap)
	inner := d.cutFrom(begin)
	d.rect("pkg", point{margin, y}, size{total - 2*margin, end - y}, 8)
	d.text("h2", point{margin + gap, y + 17}, layout.FrameTitle(d.machine, frame))
	d.WriteString(inner)
	return end + gap
}

// cutFrom takes back what was drawn since, to be drawn above what comes next.
func (d *drawing) cutFrom(begin int) string {
	all := d.String()
	d.Reset()
	d.WriteString(all[:begin])
	return all[begin:]
}

// pairs draws boxes two by two, those beside each other of one height.
func (d *drawing) pairs(boxes []layout.Package, x, y, width float64) float64 {
	if len(boxes) > 1 {
		width = (width - gap) / 2
	}
	for len(boxes) > 0 {
		row := boxes[:min(2, len(boxes))]
		boxes = boxes[len(row):]
		contents := make([]string, 0, len(row))
		height := 0.0
		for i, box := range row {
			begin := d.Len()
			end := d.nodeBox(box, point{x + float64(i)*(width+gap), y}, width)
			contents = append(contents, d.cutFrom(begin))
			height = max(height, end-y)
		}
		for i, content := range contents {
			d.rect("box", point{x + float64(i)*(width+gap), y}, size{width, height}, 6)
			d.WriteString(content)
		}
		y += height + gap
	}
	return y
}

// nodeBox draws what is in the box of a NUMA node, and returns where it ends.
func (d *drawing) nodeBox(box layout.Package, at point, width float64) float64 {
	const head = 22.0
	node := &box.Nodes[0]
	inner := width - 2*gap
	x, y := at.x+gap, at.y+head
	title := layout.NodeTitle(d.machine, box, node)
	if len(d.view.Topology().NUMANodes) > 1 && box.ID != layout.Unknown && d.nodesOf(box.ID) > 1 {
		title = layout.NodeTitle(d.machine, layout.Package{ID: layout.Unknown, Nodes: box.Nodes}, node)
	}
	d.text("h2", point{x, at.y + 16}, cut(title, inner*0.9))
	y = d.cores(d.machine.CoresOf(node.ID), x, y, inner)
	for _, pages := range d.view.HugepagesAt(node.ID) {
		y = d.bar(pages, x, y, inner)
	}
	for _, nic := range layout.PhysicalNICs(d.machine, &node.ID) {
		y = d.nic(nic, x, y, inner)
	}
	return d.findings(node, x, y, inner) + gap/2
}

// nodesOf is the number of NUMA nodes in a package.
func (d *drawing) nodesOf(id int) int {
	for _, frame := range layout.Packages(d.machine) {
		if frame.ID == id {
			return len(frame.Nodes)
		}
	}
	return 0
}

// wide lists the failed checks that are about no NUMA node in particular.
func (d *drawing) wide(y float64) float64 {
	for _, wide := range d.view.WideFindings() {
		d.warning(point{margin, y}, 11)
		at := point{margin + 18, y + 10}
		d.text("bad", at, wide.What)
		at.x += 160
		for _, check := range wide.Checks {
			if need := long(string(check)); at.x+need > total-margin {
				at = point{margin + 178, at.y + line}
			}
			d.text("b", at, string(check))
			at.x += long(string(check)) + gap
		}
		y = at.y + gap/2
	}
	if len(d.view.WideFindings()) > 0 {
		y += gap / 2
	}
	return y
}

// leftovers are NICs and CPUs that belong to no box.
func (d *drawing) leftovers(y float64) float64 {
	if lost := layout.PhysicalNICs(d.machine, nil); len(lost) > 0 {
		y += line
		d.text("h2", point{margin, y}, "NICs whose NUMA node the firmware does not report")
		y += gap / 2
		for _, nic := range lost {
			y = d.nic(nic, margin, y, total-2*margin)
		}
		y += gap / 2
	}
	rest := d.machine.Offline
	for _, core := range d.machine.Cores {
		rest = rest.Difference(core.CPUs)
	}
	rest = rest.Union(d.machine.WithoutCore())
	if !rest.IsEmpty() {
		y += line
		d.text("f", point{margin, y}, cut("CPUs whose core the host does not report: "+rest.String(), total-2*margin))
		y += gap / 2
	}
	return y
}
