// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// role is what a plan does with a set of CPUs.
type role struct {
	// letter on the map, word in the legend.
	letter, word string
	set          cpus.Set
	paint        Paint
}

// rolesOf are the roles that a plan gives to CPUs. No CPU has two.
func rolesOf(p *plan.NodePlan, palette Palette) []role {
	all := []role{
		{"H", "housekeeping", p.CPUs.Housekeeping.Difference(p.CPUs.Shared), palette.Housekeeping},
		{"S", "shared", p.CPUs.Shared, palette.Shared},
		{"I", "isolated", p.CPUs.Isolated.Difference(p.CPUs.DataPlane), palette.Isolated},
		{"D", "dataplane", p.CPUs.DataPlane, palette.DataPlane},
	}
	return slices.DeleteFunc(all, func(r role) bool { return r.set.IsEmpty() })
}

// cpuMap draws which CPU gets which role, in the frame of the machine.
func cpuMap(p *plan.NodePlan, t *topology.Topology, palette Palette, columns int) []string {
	m := newMachine(t, palette, columns)
	roles := rolesOf(p, palette)
	roleOf := func(cpu int) (role, bool) {
		i := slices.IndexFunc(roles, func(r role) bool { return r.set.Contains(cpu) })
		if i < 0 {
			return role{}, false
		}
		return roles[i], true
	}
	m.mark = func(cpu int) string {
		if r, ok := roleOf(cpu); ok {
			return r.paint(strconv.Itoa(cpu))
		}
		return palette.Faint(fmt.Sprintf("(%d)", cpu))
	}
	m.note = func(core topology.Core) string {
		var letters []string
		for _, cpu := range core.CPUs.IDs() {
			if r, ok := roleOf(cpu); ok && !slices.Contains(letters, r.paint(r.letter)) {
				letters = append(letters, r.paint(r.letter))
			}
		}
		if len(letters) == 0 {
			letters = []string{palette.Faint("o")}
		}
		return strings.Join(letters, "/") + " "
	}
	m.pages = func(node topology.NUMANode) string { return plannedPages(p, node) }
	working := p.CPUs.Housekeeping.Union(p.CPUs.Isolated)
	near := map[string]bool{}
	for _, nic := range p.BypassNICs {
		near[nic.PCIAddress] = true
	}
	m.nicMark = func(nic topology.NIC) string {
		if near[nic.PCIAddress] {
			return " " + palette.Title("N")
		}
		return ""
	}
	lines := m.boxes()
	return append(lines, mapLegend(roles, p.CPUs.Offline, !m.inCores().IsSubsetOf(working), len(near) > 0, palette)...)
}

// plannedPages lists the hugepages that are planned for a NUMA node.
func plannedPages(p *plan.NodePlan, node topology.NUMANode) string {
	var parts []string
	for _, pages := range p.Hugepages {
		text := fmt.Sprintf("%d × %s", pages.Count, pages.Size)
		switch {
		case pages.NUMANode == nil && (node.MemoryBytes == nil || *node.MemoryBytes > 0):
			parts = append(parts, "a share of "+text)
		case pages.NUMANode != nil && *pages.NUMANode == node.ID:
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, ", ")
}

// mapLegend explains the letters, with the CPU list of each.
func mapLegend(roles []role, offline cpus.Set, threadsOff, near bool, palette Palette) []string {
	var rows [][]string
	for _, r := range roles {
		rows = append(rows, []string{r.paint(r.letter), r.word, r.set.String()})
	}
	if !offline.IsEmpty() {
		rows = append(rows, []string{palette.Faint("o"), "offline", offline.String()})
	}
	lines := align(rows)
	if threadsOff {
		lines = append(lines, palette.Faint("(n)")+" a CPU that is offline")
	}
	if near {
		lines = append(lines, palette.Title("N")+"  bypass NIC: the CPUs of its NUMA node are near it")
	}
	return lines
}

// CPUMap draws which CPU of a machine gets which role in a plan, at most columns wide.
func CPUMap(p *plan.NodePlan, t *topology.Topology, palette Palette, columns int) string {
	return strings.Join(cpuMap(p, t, palette, columns), "\n")
}
