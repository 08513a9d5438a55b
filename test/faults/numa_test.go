// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import (
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// byTheAgent leaves a fault to the agent, which holds the node against the plan that it was given: who plans the node as it
// is now finds nothing.
func byTheAgent(*node, *verify.Input) {}

func faultsOfNUMA() []fault {
	return []fault{
		{
			name: "the PCIe link of a bypass NIC lost lanes",
			harm: func(n *node) { n.must(hosttree.TrainLink(n.host.Dir, n.bypassNIC(), "8.0 GT/s PCIe", 4)) },
			want: "nic.pcie-link", says: []string{"has width 4 of 8"},
		},
		{
			name: "the PCIe link of a bypass NIC is slower than its slow slot",
			harm: func(n *node) {
				n.writeEach("/sys/devices/pci*/*/max_link_speed", "5.0 GT/s PCIe")
				n.must(hosttree.TrainLink(n.host.Dir, n.bypassNIC(), "2.5 GT/s PCIe", 8))
			},
			want: "nic.pcie-link", says: []string{"has speed 2.5 GT/s PCIe of 5.0 GT/s PCIe"},
		},
		{
			name: "the firmware gives its CPUs to other NUMA nodes",
			harm: func(n *node) {
				const first, second = "/sys/devices/system/node/node0/cpulist", "/sys/devices/system/node/node1/cpulist"
				one, other := n.text(first), n.text(second)
				n.put(first, other)
				n.put(second, one)
			},
			want: "numa.nodes", says: []string{"on NUMA node 1, planned is NUMA node 0"}, more: byTheAgent,
		},
		{
			name: "the memory of a NUMA node has failed",
			harm: func(n *node) { n.put("/sys/devices/system/node/node1/meminfo", "Node 1 MemTotal:       0 kB\n") },
			want: "numa.nodes", says: []string{"NUMA node 1 has no memory"}, more: byTheAgent,
		},
	}
}

func variationsOfNUMA() []variation {
	return []variation{
		{
			name: "a bypass NIC is in a slower slot",
			change: func(n *node) {
				n.writeEach("/sys/devices/pci*/*/max_link_speed", "5.0 GT/s PCIe")
				n.must(hosttree.TrainLink(n.host.Dir, n.bypassNIC(), "5.0 GT/s PCIe", 8))
			},
		},
		{
			name: "a bypass NIC is in a narrower slot",
			change: func(n *node) {
				n.writeEach("/sys/devices/pci*/*/max_link_width", "4")
				n.must(hosttree.TrainLink(n.host.Dir, n.bypassNIC(), "8.0 GT/s PCIe", 4))
			},
		},
		{name: "the cable of a bypass NIC is out", change: func(n *node) { n.must(hosttree.SetCarrier(n.host.Dir, n.bypassNIC(), false)) }},
	}
}
