// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package layout

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// Separator stands between parts of a line.
const Separator = " · "

// Join puts the non-empty parts side by side, a dot between them.
func Join(parts ...string) string { return strings.Join(Known(parts), Separator) }

// Known leaves empty texts out.
func Known(texts []string) []string {
	return slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return text == "" })
}

// Bytes writes an amount of memory with at most one decimal: "187.5 GiB", "512 MiB".
func Bytes(amount int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	value, unit := float64(amount), 0
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", value), ".0") + " " + units[unit]
}

// Plural counts things: "1 core", "20 cores".
func Plural(count int, thing string) string {
	if count == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", count, thing)
}

// Headline says what a machine is, in two lines of parts: its processor and kernel, and how much there is of what.
func Headline(t *topology.Topology) [][]string {
	processor := t.Model
	if processor == "" {
		processor = t.Vendor
	}
	kernel := t.KernelRelease
	if t.KernelRealTime != nil && *t.KernelRealTime {
		kernel += " (real-time)"
	}
	online := Plural(t.Online.Len(), "CPU") + " online"
	if !t.Offline.IsEmpty() {
		online += fmt.Sprintf(", %d offline", t.Offline.Len())
	}
	return [][]string{
		Known([]string{processor, t.Architecture, prefix("virtual machine: ", t.Hypervisor), prefix("kernel ", kernel)}),
		Known([]string{
			Plural(len(t.Packages), "package"), Plural(len(t.Cores), "core"), online, Plural(len(t.NUMANodes), "NUMA node"), memory(t),
		}),
	}
}

func prefix(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// memory adds up the NUMA nodes; "" when one of them does not say.
func memory(t *topology.Topology) string {
	var total int64
	for _, node := range t.NUMANodes {
		if node.MemoryBytes == nil {
			return ""
		}
		total += *node.MemoryBytes
	}
	if len(t.NUMANodes) == 0 {
		return ""
	}
	return Bytes(total)
}

// FrameTitle is the title of the frame around several NUMA nodes of a package.
func FrameTitle(t *topology.Topology, frame Package) string {
	count := 0
	for _, core := range t.Cores {
		if core.CPUs.Overlaps(t.Packages[frame.ID]) {
			count++
		}
	}
	return Join(packageName(frame), Plural(count, "core"))
}

func packageName(frame Package) string {
	if frame.ID == Unknown {
		return ""
	}
	return fmt.Sprintf("package %d", frame.ID)
}

// NodeTitle is the title of a NUMA node's box. It names the package, too, when that has no frame of its own.
func NodeTitle(t *topology.Topology, frame Package, node *topology.NUMANode) string {
	cores := t.CoresOf(node.ID)
	name := ""
	if len(frame.Nodes) == 1 {
		name = packageName(frame)
	}
	size := "memory unknown"
	if node.MemoryBytes != nil {
		size = Bytes(*node.MemoryBytes)
	}
	count := Plural(len(cores), "core")
	if node.CPUs.IsEmpty() {
		count = "no CPUs"
	}
	return Join(name, fmt.Sprintf("NUMA node %d", node.ID), count, caches(cores), size)
}

// caches counts the L3 caches of some cores.
func caches(cores []topology.Core) string {
	count := 0
	for _, group := range ByL3(cores) {
		if group.ID != Unknown {
			count++
		}
	}
	if count == 0 {
		return ""
	}
	return Plural(count, "L3 cache")
}
