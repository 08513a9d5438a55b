// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// oneNode makes a host of one NUMA node.
func oneNode(f fixture) {
	f.facts.NUMANodes = f.facts.NUMANodes[:1]
	f.facts.NUMANodes[0].CPUs = known(list("0-7"))
}

func numaCases() map[v1alpha1.CheckID]checkCases {
	return map[v1alpha1.CheckID]checkCases{
		"numa.nodes":            numaNodesCases(),
		"memory.hugepages-numa": hugepageCases(),
		"memory.hugepages-unplanned": {
			"as planned":   {want: passes},
			"none planned": {change: func(f fixture) { f.plan.Hugepages = nil }, want: doesNotApply},
			"fewer":        {change: func(f fixture) { f.facts.Hugepages[0].Total = known(int64(1)) }, want: passes},
			"a hundred times as many": {
				change: func(f fixture) { f.facts.Hugepages[1].Total = known(int64(200)) },
				want:   fails, wantMessage: "the host holds 200 hugepages of 1Gi, planned are 2: 198 GiB of memory is taken unplanned",
			},
			"of another size": {
				change: func(f fixture) { f.plan.Hugepages = f.plan.Hugepages[:1] },
				want:   fails, wantMessage: "the host holds 8 hugepages of 2Mi, planned are 0: 16 MiB of memory is taken unplanned",
			},
			"only on loan": {
				change: func(f fixture) {
					f.facts.Hugepages[0].Total, f.facts.Hugepages[0].Surplus = known(int64(12)), known(int64(4))
				},
				want: passes,
			},
			"not told": {
				change: func(f fixture) { f.facts.Hugepages[1].Total = absent[int64]("nr_hugepages") }, want: isUnknown, wantMessage: "nr_hugepages",
			},
			"no pool is listed": {change: func(f fixture) { f.facts.Hugepages = nil }, want: isUnknown, wantMessage: "/sys/kernel/mm/hugepages"},
		},
	}
}

func numaNodesCases() checkCases {
	return checkCases{
		"as planned": {want: passes},
		"one node as planned": {
			change: func(f fixture) { oneNode(f); f.plan.Verification = plan.VerificationPlan{} }, want: passes,
		},
		"a kernel without NUMA": {
			change: func(f fixture) { f.facts.NUMANodes, f.plan.Verification.MultipleNUMANodes = nil, false }, want: passes,
		},
		"a node of memory does not count": {
			change: func(f fixture) {
				f.facts.NUMANodes[1].CPUs = known(cpus.Set{})
				f.plan.Verification.MultipleNUMANodes = false
			},
			want: passes,
		},
		"fewer": {
			change: oneNode, want: fails,
			wantMessage: "the host has one NUMA node with CPUs, the plan was made for several NUMA nodes with CPUs",
		},
		"other CPUs": {
			change: func(f fixture) {
				f.facts.NUMANodes[0].CPUs, f.facts.NUMANodes[1].CPUs = known(list("0-1,4-5")), known(list("2-3,6-7"))
			},
			want:        fails,
			wantMessage: "CPUs 2-3 are on NUMA node 1, planned is NUMA node 0; CPUs 4-5 are on NUMA node 0, planned is NUMA node 1",
		},
		"more nodes": {
			change: func(f fixture) {
				f.facts.NUMANodes[1].CPUs = known(list("4-6"))
				f.facts.NUMANodes = append(f.facts.NUMANodes, host.NUMANode{ID: 2, CPUs: known(list("7"))})
			},
			want: fails, wantMessage: "CPU 7 is on NUMA node 2, planned is NUMA node 1",
		},
		"other numbers": {
			change: func(f fixture) { f.facts.NUMANodes[1].ID = 2 },
			want:   fails, wantMessage: "CPUs 4-7 are on NUMA node 2, planned is NUMA node 1",
		},
		"an offline CPU is another check's": {
			change: func(f fixture) {
				f.facts.CPUs.Online, f.facts.NUMANodes[1].CPUs = known(list("0-6")), known(list("4-6"))
			},
			want: passes,
		},
		"a node lost its memory": {
			change: func(f fixture) { f.facts.NUMANodes[1].MemoryTotalBytes = known(int64(0)) },
			want:   fails, wantMessage: "NUMA node 1 has no memory, and had some when the plan was made",
		},
		"a node never had memory": {
			change: func(f fixture) {
				f.facts.NUMANodes[1].MemoryTotalBytes = known(int64(0))
				f.plan.Verification.NUMANodes[1].Memoryless = true
			},
			want: passes,
		},
		"a plan of an earlier release": {
			change: func(f fixture) {
				f.plan.Verification.NUMANodes = nil
				f.facts.NUMANodes[0].CPUs, f.facts.NUMANodes[1].CPUs = known(list("0-1,4-5")), known(list("2-3,6-7"))
			},
			want: passes,
		},
		"none is listed": {
			change: func(f fixture) { f.facts.NUMANodes = nil }, want: isUnknown, wantMessage: "/sys/devices/system/node",
		},
		"CPUs are not told": {
			change: func(f fixture) {
				f.facts.NUMANodes[1].CPUs = absent[cpus.Set]("/sys/devices/system/node/node1/cpulist")
			},
			want: isUnknown, wantMessage: "/sys/devices/system/node/node1/cpulist",
		},
	}
}

func hugepageCases() checkCases {
	return checkCases{
		"as planned":   {want: passes},
		"none planned": {change: func(f fixture) { f.plan.Hugepages = nil }, want: doesNotApply},
		"too few on the host": {
			change: func(f fixture) { f.facts.Hugepages[1].Total = known(int64(1)) },
			want:   fails, wantMessage: "the host holds 1 hugepages of 1Gi, planned are 2",
		},
		"on the wrong node": {
			change: func(f fixture) {
				f.facts.NUMANodes[0].Hugepages[0].Total = known(int64(8))
				f.facts.NUMANodes[1].Hugepages[0].Total = known(int64(0))
			},
			want: fails, wantMessage: "NUMA node 1 holds 0 hugepages of 2Mi, planned are 8",
		},
		"only on loan": {
			change: func(f fixture) { f.facts.NUMANodes[1].Hugepages[0].Surplus = known(int64(3)) },
			want:   fails, wantMessage: "NUMA node 1 holds 5 hugepages of 2Mi, planned are 8",
		},
		"spread and placed pages add up": {
			change: func(f fixture) {
				f.plan.Hugepages = append(f.plan.Hugepages, plan.HugepagePlan{Size: "2Mi", SizeKibibytes: 2 << 10, Count: 4})
			},
			want: fails, wantMessage: "the host holds 8 hugepages of 2Mi, planned are 12",
		},
		"used pages": {
			change: func(f fixture) { f.facts.NUMANodes[1].Hugepages[0].Free = absent[int64]("free_hugepages") }, want: passes,
		},
		"more than planned": {
			change: func(f fixture) {
				f.facts.NUMANodes[1].Hugepages[0].Total, f.facts.NUMANodes[1].Hugepages[0].Free = known(int64(24)), known(int64(12))
			},
			want: passes,
		},
		"no such size": {
			change: func(f fixture) { f.facts.NUMANodes[1].Hugepages = f.facts.NUMANodes[1].Hugepages[1:] },
			want:   fails, wantMessage: "the running kernel has no hugepages of 2Mi, only of 1Gi",
		},
		"no size is listed": {
			change: func(f fixture) { f.facts.NUMANodes[1].Hugepages = nil },
			want:   isUnknown, wantMessage: "/sys/devices/system/node/node1/hugepages/hugepages-2048kB",
		},
		"spread pages on one node": {
			change: func(f fixture) {
				f.facts.NUMANodes[0].Hugepages[1].Total, f.facts.NUMANodes[1].Hugepages[1].Total = known(int64(2)), known(int64(0))
			},
			want: fails, wantMessage: "NUMA node 1 holds 0 hugepages of 1Gi, and its share of the 2 planned is 1",
		},
		"spread pages that do not divide": {
			change: func(f fixture) {
				f.plan.Hugepages[0].Count = 3
				f.facts.Hugepages[1].Total, f.facts.NUMANodes[0].Hugepages[1].Total = known(int64(3)), known(int64(2))
			},
			want: passes,
		},
		"spread pages beside a node without memory": {
			change: func(f fixture) {
				f.facts.NUMANodes[0].Hugepages[1].Total, f.facts.NUMANodes[0].MemoryTotalBytes = known(int64(2)), known(int64(1<<40))
				f.facts.NUMANodes[1].Hugepages[1].Total, f.facts.NUMANodes[1].MemoryTotalBytes = known(int64(0)), known(int64(0))
			},
			want: passes,
		},
		"spread pages of a node are not told": {
			change: func(f fixture) { f.facts.NUMANodes[1].Hugepages[1].Total = absent[int64]("node1/nr_hugepages") },
			want:   isUnknown, wantMessage: "node1/nr_hugepages",
		},
		"no such node": {
			change: oneNode, want: isUnknown, wantMessage: "/sys/devices/system/node/node1/hugepages cannot be read: no such NUMA node",
		},
		"not told": {
			change: func(f fixture) { f.facts.Hugepages[1].Total = absent[int64]("nr_hugepages") }, want: isUnknown, wantMessage: "nr_hugepages",
		},
	}
}

func nicCases() map[v1alpha1.CheckID]checkCases {
	unplaced := func(f fixture) { f.facts.NICs[0].NUMANode = host.Absent[int]("numa_node", "the firmware reports -1") }
	without := func(f fixture) { f.plan.BypassNICs = nil }
	gone := func(f fixture) { f.facts.NICs = nil }
	return map[v1alpha1.CheckID]checkCases{
		"numa.nic-locality": {
			"as planned": {want: passes},
			"no NICs":    {change: without, want: doesNotApply},
			"one node":   {change: func(f fixture) { oneNode(f); unplaced(f) }, want: doesNotApply},
			"elsewhere": {
				change: func(f fixture) { f.facts.NICs[0].NUMANode = known(1) },
				want:   fails, wantMessage: "NIC ens2f0 (0000:3b:00.0) is on NUMA node 1, planned is 0",
			},
			"not told by the firmware": {change: unplaced, want: isUnknown, wantMessage: "numa_node cannot be read: the firmware reports -1"},
			"gone":                     {change: gone, want: isUnknown, wantMessage: "/sys/bus/pci/devices/0000:3b:00.0"},
		},
		"numa.near-cpus": {
			"as planned": {want: passes},
			"no NICs":    {change: without, want: doesNotApply},
			"none": {
				change: func(f fixture) {
					f.facts.NICs[0].LocalCPUs, f.facts.NICs[0].Name = known(list("0-1")), absent[string]("net")
				},
				want: fails, wantMessage: "no isolated CPU is near NIC 0000:3b:00.0, whose local CPUs are 0-1",
			},
			"one node": {change: func(f fixture) { oneNode(f); unplaced(f) }, want: passes},
			"every CPU, because nobody knows": {
				change: func(f fixture) { unplaced(f); f.facts.NICs[0].LocalCPUs = known(list("0-7")) },
				want:   isUnknown, wantMessage: "the firmware reports -1",
			},
			"not told": {
				change: func(f fixture) { f.facts.NICs[0].LocalCPUs = absent[cpus.Set]("local_cpulist") },
				want:   isUnknown, wantMessage: "local_cpulist",
			},
		},
		"numa.virtual-functions": virtualFunctionCases(unplaced),
		"numa.nic-interrupts":    nicInterruptCases(),
		"nic.pcie-link":          nicPcieLinkCases(),
	}
}

func nicPcieLinkCases() checkCases {
	return checkCases{
		"full": {want: passes},
		"a virtual function": {
			change: func(f fixture) {
				f.facts.NICs[0].PhysicalFunction = known("0000:3b:00.1")
				f.facts.NICs[0].LinkSpeed = absent[string]("current_link_speed")
			},
			want: doesNotApply,
		},
		"narrow": {
			change: func(f fixture) { f.facts.NICs[0].LinkWidth = known(4) },
			want:   fails, wantMessage: "the PCIe link of NIC ens2f0 (0000:3b:00.0) has width 4 of 8",
		},
		"slow": {
			change: func(f fixture) { f.facts.NICs[0].LinkSpeed = known("8.0 GT/s PCIe") },
			want:   fails, wantMessage: "the PCIe link of NIC ens2f0 (0000:3b:00.0) has speed 8.0 GT/s PCIe of 16.0 GT/s PCIe",
		},
		"a slower slot": {
			change: func(f fixture) {
				f.facts.NICs[0].LinkSpeed, f.facts.NICs[0].PortLinkSpeed = known("8.0 GT/s PCIe"), known("8.0 GT/s PCIe")
			},
			want: passes,
		},
		"a slower slot of an older kernel": {
			change: func(f fixture) {
				f.facts.NICs[0].LinkSpeed, f.facts.NICs[0].PortLinkSpeed = known("8.0 GT/s PCIe"), known("8 GT/s")
			},
			want: passes,
		},
		"a narrower slot": {
			change: func(f fixture) {
				f.facts.NICs[0].LinkWidth, f.facts.NICs[0].PortLinkWidth = known(4), known(4)
			},
			want: passes,
		},
		"slower than its slower slot": {
			change: func(f fixture) {
				f.facts.NICs[0].LinkSpeed, f.facts.NICs[0].PortLinkSpeed = known("2.5 GT/s PCIe"), known("8.0 GT/s PCIe")
			},
			want: fails, wantMessage: "the PCIe link of NIC ens2f0 (0000:3b:00.0) has speed 2.5 GT/s PCIe of 8.0 GT/s PCIe",
		},
		"on the root bus": {
			change: func(f fixture) {
				f.facts.NICs[0].LinkSpeed, f.facts.NICs[0].PortLinkSpeed = known("8.0 GT/s PCIe"), known("")
			},
			want: passes,
		},
		"without a link": {
			change: func(f fixture) {
				f.facts.NICs[0].LinkSpeed, f.facts.NICs[0].MaximumLinkSpeed = known("Unknown"), known("Unknown")
				f.facts.NICs[0].LinkWidth, f.facts.NICs[0].MaximumLinkWidth = known(0), known(255)
			},
			want: doesNotApply,
		},
		"the slot is not told": {
			change: func(f fixture) {
				f.facts.NICs[0].LinkSpeed, f.facts.NICs[0].PortLinkSpeed = known("8.0 GT/s PCIe"), absent[string]("max_link_speed")
			},
			want: isUnknown, wantMessage: "max_link_speed",
		},
		"not told": {
			change: func(f fixture) { f.facts.NICs[0].LinkWidth = absent[int]("current_link_width") },
			want:   isUnknown, wantMessage: "current_link_width",
		},
	}
}

func virtualFunctionCases(unplaced func(fixture)) checkCases {
	add := func(f fixture, node host.Fact[int]) {
		f.facts.NICs[0].VirtualFunctions = []string{"0000:3b:02.0", "0000:3b:02.1"}
		f.facts.NICs = append(f.facts.NICs, host.NIC{PCIAddress: "0000:3b:02.0", NUMANode: node})
	}
	return checkCases{
		"none":       {want: doesNotApply},
		"as planned": {change: func(f fixture) { add(f, known(0)) }, want: passes},
		"elsewhere": {
			change: func(f fixture) { add(f, known(1)) },
			want:   fails, wantMessage: "virtual function 0000:3b:02.0 is on NUMA node 1, its NIC ens2f0 (0000:3b:00.0) on 0",
		},
		"not told": {change: func(f fixture) { add(f, absent[int]("numa_node")) }, want: isUnknown, wantMessage: "numa_node"},
		"not told of the physical function": {
			change: func(f fixture) { add(f, known(0)); unplaced(f) }, want: isUnknown, wantMessage: "the firmware reports -1",
		},
	}
}

func nicInterruptCases() checkCases {
	return checkCases{
		"near":    {want: passes},
		"per pod": {change: roam, want: doesNotApply},
		"no housekeeping CPU is near": {
			change: func(f fixture) { f.facts.NICs[0].LocalCPUs = known(list("2-3")) }, want: doesNotApply,
		},
		"remote": {
			change: func(f fixture) { f.facts.Interrupts.Routes[2].EffectiveAffinity = known(list("4")) },
			want:   fails, wantMessage: "IRQ 142 (sfc-ens2f0-3) of NIC ens2f0 (0000:3b:00.0) is delivered to remote CPU 4; wanted 0-1",
		},
		"the pool decides": {
			change: func(f fixture) {
				inPool(f, nil)
				f.facts.Interrupts.Routes[2].EffectiveAffinity = known(list("4"))
			},
			want: doesNotApply,
		},
		"isolated CPUs are another check's": {
			change: func(f fixture) { f.facts.Interrupts.Routes[2].EffectiveAffinity = known(list("6")) }, want: passes,
		},
		"not told": {
			change: func(f fixture) {
				f.facts.Interrupts.Routes[2].EffectiveAffinity = absent[cpus.Set]("effective_affinity_list")
			},
			want: isUnknown, wantMessage: "effective_affinity_list",
		},
	}
}
