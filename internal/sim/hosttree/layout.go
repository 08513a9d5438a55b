// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hosttree

import (
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// place is where a CPU is.
type place struct {
	cpu, thread int
	// core counts over the machine; it is the number of the core's first CPU.
	core int
	// coreID is the core's number within its package.
	coreID int
	// l3 counts over the machine; -1 when there is none.
	l3, numaNode, pkg int
}

// places lists the CPUs in ascending order.
func (m Machine) places() []place {
	places := make([]place, 0, m.cores()*m.ThreadsPerCore)
	for cpu := range m.cores() * m.ThreadsPerCore {
		core := cpu % m.cores()
		node, inNode := core/m.CoresPerNUMANode, core%m.CoresPerNUMANode
		if m.Numbering == NumberingInterleaved {
			node, inNode = core%m.numaNodes(), core/m.numaNodes()
		}
		p := place{
			cpu: cpu, thread: cpu / m.cores(), core: core, numaNode: node, pkg: node / m.NUMANodesPerPackage, l3: -1,
			coreID: node%m.NUMANodesPerPackage*m.CoresPerNUMANode + inNode,
		}
		if m.CoresPerL3 > 0 {
			perNode := (m.CoresPerNUMANode + m.CoresPerL3 - 1) / m.CoresPerL3
			p.l3 = node*perNode + inNode/m.CoresPerL3
		}
		places = append(places, p)
	}
	return places
}

// possible are all CPUs of the machine.
func (m Machine) possible() cpus.Set { return m.where(func(place) bool { return true }) }

// where returns the CPUs whose place satisfies the condition.
func (m Machine) where(keep func(place) bool) cpus.Set {
	var ids []int
	for _, p := range m.places() {
		if keep(p) {
			ids = append(ids, p.cpu)
		}
	}
	return cpus.Of(ids...)
}

// onNode returns the CPUs of a NUMA node; the empty set for -1.
func (m Machine) onNode(node int) cpus.Set {
	return m.where(func(p place) bool { return p.numaNode == node })
}

// groups writes, for each number that key gives, the CPUs of the set that have it.
func (m Machine) groups(within cpus.Set, key func(place) int) map[int]notation {
	members := map[int][]int{}
	for _, p := range m.places() {
		if within.Contains(p.cpu) {
			members[key(p)] = append(members[key(p)], p.cpu)
		}
	}
	groups := map[int]notation{}
	for number, ids := range members {
		groups[number] = notationOf(cpus.Of(ids...))
	}
	return groups
}
