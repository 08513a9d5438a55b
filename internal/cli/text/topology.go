// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/layout"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/pciname"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// minimumWidth is the narrowest drawing; below, boxes have no room for cores.
const minimumWidth = 60

// machine draws one topology.
type machine struct {
	*topology.Topology
	palette Palette
	columns int
	// cell is the width of the widest core.
	cell int
	// brackets reports whether cores were put into brackets.
	brackets bool
	// mark decorates a CPU; the default marks offline ones.
	mark func(cpu int) string
	// note comes before a core, "" for none.
	note func(core topology.Core) string
	// pages says what hugepages a NUMA node has, in lines of at most so many columns.
	pages func(node topology.NUMANode, columns int) []string
	// nicMark comes before a NIC, nicNote behind it.
	nicMark, nicNote func(nic topology.NIC) string
	// notes are lines below the NICs of a NUMA node.
	notes func(node topology.NUMANode, columns int) []string
	// letter stands for a CPU where there is no room for numbers; nil draws the numbers.
	letter func(cpu int) string
}

// Topology draws the machine: a box for each package and NUMA node, with its cores, memory and NICs.
func Topology(name string, t *topology.Topology, palette Palette, columns int) string {
	m := newMachine(t, palette, columns)
	lines := append(m.headline(name), m.boxes()...)
	lines = append(lines, m.leftovers()...)
	lines = append(lines, m.distances()...)
	lines = append(lines, m.products()...)
	if legend := m.legend(); legend != "" {
		lines = append(lines, "", palette.Faint(legend))
	}
	return strings.Join(lines, "\n") + "\n"
}

func newMachine(t *topology.Topology, palette Palette, columns int) *machine {
	m := &machine{Topology: t, palette: palette, columns: max(columns, minimumWidth)}
	m.mark = func(cpu int) string {
		if t.Offline.Contains(cpu) {
			return palette.Faint(fmt.Sprintf("(%d)", cpu))
		}
		return strconv.Itoa(cpu)
	}
	m.note = func(topology.Core) string { return "" }
	m.pages = func(node topology.NUMANode, columns int) []string { return hugepageLine(hugepages(node), columns) }
	m.nicMark = func(topology.NIC) string { return "" }
	m.nicNote = m.nicMark
	m.notes = func(topology.NUMANode, int) []string { return nil }
	return m
}

// headline says what the machine is.
func (m *machine) headline(name string) []string {
	lines := []string{m.palette.Title(name)}
	for _, parts := range layout.Headline(m.Topology) {
		lines = append(lines, flow(parts, layout.Separator, m.columns)...)
	}
	return append(lines, "")
}

// boxes draws the packages with their NUMA nodes inside. Where a NUMA node spans packages, as on hosts
// without NUMA, it is the other way round.
func (m *machine) boxes() []string {
	var lines []string
	for _, frame := range layout.Packages(m.Topology) {
		if len(frame.Nodes) == 1 {
			lines = append(lines, m.nodeBox(frame, frame.Nodes[0], m.columns)...)
			continue
		}
		var inner []string
		for _, node := range frame.Nodes {
			inner = append(inner, m.nodeBox(frame, node, m.columns-4)...)
		}
		lines = append(lines, box(layout.FrameTitle(m.Topology, frame), inner, m.columns, m.palette)...)
	}
	return lines
}

// nodeBox draws one NUMA node.
func (m *machine) nodeBox(frame layout.Package, node topology.NUMANode, columns int) []string {
	inner := columns - 4
	cores := m.CoresOf(node.ID)
	lines := m.packagesOf(cores, inner)
	lines = append(lines, m.pages(node, inner)...)
	lines = append(lines, m.nics(&node.ID)...)
	lines = append(lines, m.notes(node, inner)...)
	return box(layout.NodeTitle(m.Topology, frame, &node), lines, columns, m.palette)
}

// packagesOf draws cores by package when they belong to several, as on hosts without NUMA.
func (m *machine) packagesOf(cores []topology.Core, columns int) []string {
	groups := layout.ByPackage(cores)
	if len(groups) <= 1 {
		return m.coreRows(cores, columns)
	}
	var lines []string
	for _, group := range groups {
		title := fmt.Sprintf("package %d", group.ID)
		if group.ID == layout.Unknown {
			title = "package unknown"
		}
		lines = append(lines, box(title, m.coreRows(group.Cores, columns-4), columns, m.palette)...)
	}
	return lines
}

// coreRows draws cores in rows, those that share an L3 cache in brackets.
func (m *machine) coreRows(cores []topology.Core, columns int) []string {
	groups := layout.ByL3(cores)
	if m.letter != nil {
		return m.letterRows(groups, columns)
	}
	var pieces []string
	if len(groups) == 1 {
		return flow(m.corePieces(groups[0]), "  ", columns)
	}
	m.brackets = true
	for _, group := range groups {
		open, shut := "[ ", " ]"
		if group.ID == layout.Unknown {
			open, shut = "  ", "  "
		}
		for i, line := range flow(m.corePieces(group), "  ", columns-4) {
			if i > 0 {
				line = "  " + line
			} else {
				line = m.palette.Faint(open) + line
			}
			pieces = append(pieces, line)
		}
		pieces[len(pieces)-1] += m.palette.Faint(shut)
	}
	return flow(pieces, " ", columns)
}

func (m *machine) corePieces(group layout.Group) []string {
	pieces := make([]string, 0, len(group.Cores))
	for _, core := range group.Cores {
		pieces = append(pieces, m.core(core))
	}
	return pieces
}

// core draws one core: its threads, aligned with all other cores.
func (m *machine) core(core topology.Core) string {
	return m.note(core) + padRight(m.threads(core), m.cellWidth())
}

func (m *machine) threads(core topology.Core) string {
	threads := make([]string, 0, core.CPUs.Len())
	for _, cpu := range core.CPUs.IDs() {
		threads = append(threads, m.mark(cpu))
	}
	return strings.Join(threads, ",")
}

func (m *machine) cellWidth() int {
	if m.cell == 0 {
		for _, core := range m.Cores {
			m.cell = max(m.cell, width(m.threads(core)))
		}
	}
	return m.cell
}

// hugepageLine is a line about hugepages, or none for "".
func hugepageLine(pages string, columns int) []string {
	if pages == "" {
		return nil
	}
	return wrap("hugepages  "+pages, "           ", columns)
}

// hugepages lists the pools that hold pages; the sizes alone where the numbers are unknown.
func hugepages(node topology.NUMANode) string {
	var pools []string
	for _, pool := range node.Hugepages {
		if pool.Total > 0 {
			pools = append(pools, fmt.Sprintf("%d × %s (%d free)", pool.Total, layout.Bytes(pool.SizeKibibytes*1024), pool.Free))
		}
	}
	if len(pools) == 0 && len(node.Hugepages) > 0 {
		return "none"
	}
	return strings.Join(pools, ", ")
}

// nics lists the physical NICs of a NUMA node, or those without one, with the number of their virtual functions.
func (m *machine) nics(numaNode *int) []string {
	found := layout.PhysicalNICs(m.Topology, numaNode)
	rows := make([][]string, 0, len(found))
	for _, nic := range found {
		functions := ""
		if count := layout.VirtualFunctions(m.Topology, nic.PCIAddress); count > 0 {
			functions = "+ " + layout.Plural(count, "virtual function")
		}
		rows = append(rows, []string{
			"NIC" + m.nicMark(nic), orDash(nic.Name), nic.PCIAddress,
			orDash(nic.Vendor) + ":" + orDash(nic.Device),
			orDash(nic.Driver), layout.Join(functions, m.nicNote(nic)),
		})
	}
	return align(rows)
}

// products are the names of the NICs' kinds, beside the ids by which selectors choose them.
func (m *machine) products() []string {
	lines := []string{""}
	for _, kind := range topology.NICKinds(slices.DeleteFunc(slices.Clone(m.NICs), topology.NIC.IsVirtualFunction)) {
		if product := pciname.Of(kind.Vendor, kind.Device); product != "" {
			lines = append(lines, wrap(kind.Vendor+":"+kind.Device+" "+product, "          ", m.columns)...)
		}
	}
	if len(lines) == 1 {
		return nil
	}
	return lines
}

// leftovers are what belongs to no box.
func (m *machine) leftovers() []string {
	var lines []string
	if lost := m.nics(nil); len(lost) > 0 {
		title := "NICs whose NUMA node the firmware does not report:"
		if len(m.NUMANodes) > 1 {
			title = m.palette.Warn(title)
		}
		lines = append(lines, "", title)
		for _, line := range lost {
			lines = append(lines, "  "+line)
		}
	}
	for _, lost := range []struct {
		title string
		cpus  cpus.Set
	}{
		{"offline CPUs whose core the host does not report: ", m.Offline},
		{"CPUs whose core the host does not report: ", m.Online},
	} {
		if rest := lost.cpus.Difference(m.inCores()); !rest.IsEmpty() {
			lines = append(lines, "", lost.title+rest.String())
		}
	}
	return lines
}

func (m *machine) inCores() cpus.Set {
	var all cpus.Set
	for _, core := range m.Cores {
		all = all.Union(core.CPUs)
	}
	return all
}

// distances draws the matrix of NUMA distances where there are several NUMA nodes and the host knows it.
func (m *machine) distances() []string {
	known := slices.ContainsFunc(m.NUMANodes, func(n topology.NUMANode) bool { return len(n.Distances) > 0 })
	if len(m.NUMANodes) < 2 || !known {
		return nil
	}
	header := []string{"NUMA distances"}
	rows := [][]string{}
	for _, node := range m.NUMANodes {
		header = append(header, strconv.Itoa(node.ID))
		row := []string{padLeft(fmt.Sprintf("node %d", node.ID), len(header[0]))}
		for _, distance := range node.Distances {
			row = append(row, strconv.Itoa(distance))
		}
		rows = append(rows, row)
	}
	return append([]string{""}, alignRight(append([][]string{header}, rows...))...)
}

func (m *machine) legend() string {
	var parts []string
	if slices.ContainsFunc(m.Cores, func(core topology.Core) bool { return core.CPUs.Len() > 1 }) {
		parts = append(parts, "a,b: threads of one core")
	}
	if m.brackets {
		parts = append(parts, "[ ]: cores that share an L3 cache")
	}
	if m.Offline.Overlaps(m.inCores()) {
		parts = append(parts, "(n): offline")
	}
	return layout.Join(parts...)
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
