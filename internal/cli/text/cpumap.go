// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
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
	all := drawn([]view.Role{
		{Role: view.RoleHousekeeping, CPUs: p.CPUs.Housekeeping.Difference(p.CPUs.Shared)},
		{Role: view.RoleShared, CPUs: p.CPUs.Shared},
		{Role: view.RoleIsolated, CPUs: p.CPUs.Isolated.Difference(p.CPUs.DataPlane)},
		{Role: view.RoleDataPlane, CPUs: p.CPUs.DataPlane},
	}, palette)
	return slices.DeleteFunc(all, func(r role) bool { return r.set.IsEmpty() })
}

// drawn gives each role its letter and colour.
func drawn(roles []view.Role, palette Palette) []role {
	paints := map[view.RoleName]Paint{
		view.RoleHousekeeping: palette.Housekeeping,
		view.RoleShared:       palette.Shared,
		view.RoleIsolated:     palette.Isolated,
		view.RoleDataPlane:    palette.DataPlane,
		view.RoleOwned:        palette.Owned,
		view.RoleOffline:      palette.Faint,
		view.RoleNone:         palette.Faint,
	}
	all := make([]role, 0, len(roles))
	for _, r := range roles {
		all = append(all, role{r.Role.Letter(), r.Role.Words(), r.CPUs, paints[r.Role]})
	}
	return all
}

// roleAt is the role of a CPU; the last one that holds it.
func roleAt(roles []role, cpu int) (role, bool) {
	for _, r := range slices.Backward(roles) {
		if r.set.Contains(cpu) {
			return r, true
		}
	}
	return role{}, false
}

// coreLetters are the letters of a core's CPUs, each once. That of an offline CPU is left out beside that of an online one.
func coreLetters(core topology.Core, roles []role, palette Palette) []string {
	var letters []string
	for _, cpu := range core.CPUs.IDs() {
		r, ok := roleAt(roles, cpu)
		if painted := r.letter; ok && r.letter != view.RoleOffline.Letter() {
			painted = r.paint(painted)
			if !slices.Contains(letters, painted) {
				letters = append(letters, painted)
			}
		}
	}
	if len(letters) == 0 {
		return []string{palette.Faint(view.RoleOffline.Letter())}
	}
	return letters
}

// cpuMap draws which CPU gets which role, in the frame of the machine.
func cpuMap(p *plan.NodePlan, t *topology.Topology, palette Palette, columns int) []string {
	m := newMachine(t, palette, columns)
	roles := rolesOf(p, palette)
	m.mark = func(cpu int) string {
		if r, ok := roleAt(roles, cpu); ok {
			return r.paint(strconv.Itoa(cpu))
		}
		return palette.Faint(fmt.Sprintf("(%d)", cpu))
	}
	m.note = func(core topology.Core) string { return strings.Join(coreLetters(core, roles, palette), "/") + " " }
	m.pages = func(node topology.NUMANode, columns int) []string {
		return hugepageLine(plannedPages(p, node), columns)
	}
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
		rows = append(rows, []string{palette.Faint(view.RoleOffline.Letter()), "offline", offline.String()})
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
