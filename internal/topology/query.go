// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package topology

import (
	"slices"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// CoresOf returns the cores of a NUMA node in ascending order of their first CPU.
func (t *Topology) CoresOf(numaNode int) []Core {
	var cores []Core
	for _, core := range t.Cores {
		if core.NUMANode == numaNode {
			cores = append(cores, core)
		}
	}
	return cores
}

// CoreSets returns the CPUs of each core in ascending order of their first CPU.
func (t *Topology) CoreSets() []cpus.Set {
	sets := make([]cpus.Set, 0, len(t.Cores))
	for _, core := range t.Cores {
		sets = append(sets, core.CPUs)
	}
	return sets
}

// CoreOf returns the core that holds the CPU. Online CPUs whose core the host does not report are in none.
func (t *Topology) CoreOf(cpu int) (Core, bool) {
	at := slices.IndexFunc(t.Cores, func(c Core) bool { return c.CPUs.Contains(cpu) })
	if at < 0 {
		return Core{NUMANode: -1, Package: -1, L3: -1}, false
	}
	return t.Cores[at], true
}

// SiblingsOf returns the CPUs of the core that holds the CPU, itself included; the empty set when the
// host does not report the core.
func (t *Topology) SiblingsOf(cpu int) cpus.Set {
	core, _ := t.CoreOf(cpu)
	return core.CPUs
}

// NUMANodeOf returns the number of the NUMA node of a CPU, or -1 when it is unknown. An offline CPU is
// in the NUMA node of its core.
func (t *Topology) NUMANodeOf(cpu int) int {
	for _, node := range t.NUMANodes {
		if node.CPUs.Contains(cpu) {
			return node.ID
		}
	}
	core, _ := t.CoreOf(cpu)
	return core.NUMANode
}

// L3Of returns the online CPUs that share a cache of level 3 with the CPU, itself included; the empty
// set when there is none or it is unknown.
func (t *Topology) L3Of(cpu int) cpus.Set {
	if at := indexOf(t.L3Domains, cpu); at >= 0 {
		return t.L3Domains[at]
	}
	return cpus.Set{}
}

// NUMANode returns the NUMA node with the number.
func (t *Topology) NUMANode(id int) (*NUMANode, bool) {
	at := slices.IndexFunc(t.NUMANodes, func(n NUMANode) bool { return n.ID == id })
	if at < 0 {
		return nil, false
	}
	return &t.NUMANodes[at], true
}

// NUMANodesWithCPUs returns the NUMA nodes that have online CPUs.
func (t *Topology) NUMANodesWithCPUs() []NUMANode {
	return slices.DeleteFunc(slices.Clone(t.NUMANodes), func(n NUMANode) bool { return n.CPUs.IsEmpty() })
}

// HasNUMA reports whether the host has more than one NUMA node, memory-only ones included, so that it
// matters where things are.
func (t *Topology) HasNUMA() bool { return len(t.NUMANodes) > 1 }

// WithoutCore returns the online CPUs whose core the host does not report.
func (t *Topology) WithoutCore() cpus.Set {
	return t.Online.Difference(cpus.Set{}.Union(t.threads()...))
}

// threads returns the CPUs of each core.
func (t *Topology) threads() []cpus.Set {
	return each(t.Cores, func(core Core) cpus.Set { return core.CPUs })
}

// PhysicalNICs returns the NICs that are not virtual functions.
func (t *Topology) PhysicalNICs() []NIC {
	return slices.DeleteFunc(slices.Clone(t.NICs), NIC.IsVirtualFunction)
}

// IsVirtualFunction reports whether the NIC is a virtual function of another.
func (n NIC) IsVirtualFunction() bool { return n.PhysicalFunction != "" }
