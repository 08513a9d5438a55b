// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package layout says what stands in which box of a drawing of a machine, so that the drawings in a terminal and in
// SVG agree. It is pure.
package layout

import (
	"slices"

	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// Unknown is the ID of a group of what the host does not put into any.
const Unknown = -1

// Package is a frame around NUMA nodes.
type Package struct {
	// ID is the index into topology.Packages; Unknown for a NUMA node that no package holds alone, as on hosts
	// without NUMA that have several packages, and for one without CPUs.
	ID int
	// Nodes in ascending order of their numbers; at least one.
	Nodes []topology.NUMANode
}

// Packages returns the frames of a machine: packages with the NUMA nodes whose CPUs all belong to them, then the other
// NUMA nodes, each in a frame of its own.
func Packages(t *topology.Topology) []Package {
	var frames []Package
	held := map[int]bool{}
	for id, pkg := range t.Packages {
		var nodes []topology.NUMANode
		for _, node := range t.NUMANodes {
			if !node.CPUs.IsEmpty() && node.CPUs.IsSubsetOf(pkg) {
				nodes = append(nodes, node)
				held[node.ID] = true
			}
		}
		if len(nodes) > 0 {
			frames = append(frames, Package{ID: id, Nodes: nodes})
		}
	}
	for _, node := range t.NUMANodes {
		if !held[node.ID] {
			frames = append(frames, Package{ID: Unknown, Nodes: []topology.NUMANode{node}})
		}
	}
	return frames
}

// Group are cores that have something in common.
type Group struct {
	// ID is that of the package or of the L3 domain; Unknown for cores of which the host does not report it.
	ID    int
	Cores []topology.Core
}

// ByPackage groups cores by their package, in ascending order, those without one first.
func ByPackage(cores []topology.Core) []Group {
	groups := group(cores, func(core topology.Core) int { return core.Package })
	slices.SortStableFunc(groups, func(a, b Group) int { return a.ID - b.ID })
	return groups
}

// ByL3 groups cores by their L3 domain, in the order of the cores.
func ByL3(cores []topology.Core) []Group {
	return group(cores, func(core topology.Core) int { return core.L3 })
}

func group(cores []topology.Core, of func(topology.Core) int) []Group {
	var groups []Group
	for _, core := range cores {
		i := slices.IndexFunc(groups, func(g Group) bool { return g.ID == of(core) })
		if i < 0 {
			i = len(groups)
			groups = append(groups, Group{ID: of(core)})
		}
		groups[i].Cores = append(groups[i].Cores, core)
	}
	return groups
}

// PhysicalNICs returns the NICs of a NUMA node, or those whose NUMA node is not known for nil, without virtual functions.
func PhysicalNICs(t *topology.Topology, numaNode *int) []topology.NIC {
	return slices.DeleteFunc(slices.Clone(t.NICs), func(nic topology.NIC) bool {
		return nic.PhysicalFunction != "" || (nic.NUMANode == nil) != (numaNode == nil) ||
			numaNode != nil && *nic.NUMANode != *numaNode
	})
}

// VirtualFunctions counts the virtual functions of the NIC with the PCI address.
func VirtualFunctions(t *topology.Topology, pciAddress string) int {
	count := 0
	for _, nic := range t.NICs {
		if nic.PhysicalFunction == pciAddress {
			count++
		}
	}
	return count
}
