// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import (
	"fmt"
	"slices"
)

func faultsOfMemory() []fault {
	return slices.Concat(faultsOfPages(), faultsOfSwap(), faultsOfTransparentHugepages(), faultsOfHugepages())
}

func faultsOfPages() []fault {
	return []fault{
		{
			name: "automatic NUMA balancing is on", on: x86(),
			harm: func(n *node) { n.write("/proc/sys/kernel/numa_balancing", "1") },
			want: "memory.numa-balancing",
		},
		{
			name: "same-page merging runs",
			harm: func(n *node) { n.write("/sys/kernel/mm/ksm/run", "1") },
			want: "memory.ksm",
		},
		{
			name: "pages that were merged stay merged",
			harm: func(n *node) {
				n.write("/sys/kernel/mm/ksm/run", "0")
				n.write("/sys/kernel/mm/ksm/pages_shared", "120")
			},
			want: "memory.ksm", says: []string{"stay so"},
		},
		{
			name: "statistics of memory are collected every second",
			harm: func(n *node) { n.write("/proc/sys/vm/stat_interval", "1") },
			want: "memory.vmstat", says: []string{"is 1, not 10"},
		},
		{
			name: "memory is compacted in advance",
			harm: func(n *node) { n.write("/proc/sys/vm/compaction_proactiveness", "20") },
			want: "memory.compaction",
		},
		{
			name: "dirty pages pile up",
			harm: func(n *node) { n.write("/proc/sys/vm/dirty_ratio", "40") },
			want: "memory.dirty-pages",
		},
		{
			name: "memory of the own NUMA node is reclaimed first", on: x86(),
			harm: func(n *node) { n.write("/proc/sys/vm/zone_reclaim_mode", "1") },
			want: "memory.zone-reclaim",
		},
	}
}

// swaps is /proc/swaps with one area, sizes in KiB.
func swaps(area string, used int) string {
	return fmt.Sprintf("Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n%-40spartition\t8388604\t\t%d\t\t-2\n", area, used)
}

func faultsOfSwap() []fault {
	return []fault{
		{
			name: "swap is in use and the kernel likes to",
			harm: func(n *node) {
				n.put("/proc/swaps", swaps("/dev/sda3", 4096))
				n.write("/proc/sys/vm/swappiness", "60")
			},
			want: "memory.swap", says: []string{"4 MiB", "swapped out to /dev/sda3"},
		},
		{
			name: "swap is in use with the planned swappiness",
			harm: func(n *node) { n.put("/proc/swaps", swaps("/dev/sda3", 4096)) },
			want: "memory.swap", says: []string{"4 MiB", "swapped out to /dev/sda3"},
		},
		{
			name: "swap is in use with no swappiness",
			harm: func(n *node) {
				n.put("/proc/swaps", swaps("/dev/sda3", 4096))
				n.write("/proc/sys/vm/swappiness", "0")
			},
			want: "memory.swap", says: []string{"4 MiB", "swapped out to /dev/sda3"},
		},
		{
			name: "memory is swapped to compressed memory",
			harm: func(n *node) { n.put("/proc/swaps", swaps("/dev/zram0", 3<<20)) },
			want: "memory.swap", says: []string{"3 GiB", "/dev/zram0"},
		},
		{
			name: "swap was switched on and the kernel likes to",
			harm: func(n *node) {
				n.put("/proc/swaps", swaps("/swapfile", 0))
				n.write("/proc/sys/vm/swappiness", "60")
			},
			want: "memory.swap", says: []string{"can swap to /swapfile", "60"},
		},
	}
}

const transparent = "/sys/kernel/mm/transparent_hugepage/"

func faultsOfTransparentHugepages() []fault {
	newer := []string{xeon612, epyc612}
	return []fault{
		{
			name: "transparent hugepages are on",
			harm: func(n *node) { n.write(transparent+"enabled", "always") },
			want: "memory.transparent-hugepages", says: []string{"always"},
		},
		{
			name: "transparent hugepages are given to who asks",
			harm: func(n *node) { n.write(transparent+"enabled", "madvise") },
			want: "memory.transparent-hugepages", says: []string{"[madvise]"},
		},
		{
			name: "transparent hugepages of one size are on", on: newer,
			harm: func(n *node) { n.write(transparent+"hugepages-64kB/enabled", "always") },
			want: "memory.transparent-hugepages", says: []string{"hugepages-64kB/enabled", "[always]"},
		},
		{
			name: "transparent hugepages of one size are given to who asks", on: newer,
			harm: func(n *node) { n.write(transparent+"hugepages-2048kB/enabled", "madvise") },
			want: "memory.transparent-hugepages", says: []string{"hugepages-2048kB/enabled", "[madvise]"},
		},
		{
			name: "transparent hugepages of shared memory are on",
			harm: func(n *node) { n.write(transparent+"shmem_enabled", "always") },
			want: "memory.transparent-hugepages", says: []string{"shmem_enabled"},
		},
		{
			name: "transparent hugepages of one size of shared memory are on", on: newer,
			harm: func(n *node) { n.write(transparent+"hugepages-128kB/shmem_enabled", "within_size") },
			want: "memory.transparent-hugepages", says: []string{"hugepages-128kB/shmem_enabled"},
		},
	}
}

// pages is the path of the number of hugepages of a NUMA node.
func pages(node, kibibytes int) string {
	return fmt.Sprintf("/sys/devices/system/node/node%d/hugepages/hugepages-%dkB/nr_hugepages", node, kibibytes)
}

func faultsOfHugepages() []fault {
	const gigantic, huge = 1 << 20, 2 << 10
	return []fault{
		{
			name: "hugepages went away from a NUMA node", on: x86(),
			harm: func(n *node) { n.write(pages(0, gigantic), "0") },
			want: "memory.hugepages-numa", says: []string{"hugepages of 1Gi, planned are 16"},
		},
		{
			name: "hugepages that were to be spread are all on one NUMA node",
			harm: func(n *node) {
				for node := range n.hardware.Packages * n.hardware.NUMANodesPerPackage {
					n.write(pages(node, gigantic), "0")
				}
				n.write(pages(1, gigantic), "16")
			},
			want: "memory.hugepages-numa", says: []string{"NUMA node 0 holds 0 hugepages of 1Gi, and its share of the 16 planned is"},
		},
		{
			name: "hugepages beside the NIC are on another NUMA node",
			harm: func(n *node) {
				near := *n.plan.BypassNICs[0].NUMANode
				n.write(pages(near, huge), "0")
				n.write(pages((near+1)%2, huge), "400")
			},
			want: "memory.hugepages-numa", says: []string{"holds 0 hugepages of 2Mi, planned are 400"},
		},
		{
			name: "hugepages of 512Mi went away", on: []string{arm64k},
			harm: func(n *node) { n.write(pages(1, 512<<10), "0") },
			want: "memory.hugepages-numa", says: []string{"hugepages of 512Mi"},
		},
		{
			name: "the kernel does not offer the planned size", on: x86(),
			harm: func(n *node) {
				n.remove("/sys/kernel/mm/hugepages/hugepages-1048576kB", "/sys/devices/system/node/node*/hugepages/hugepages-1048576kB")
			},
			want: "memory.hugepages-numa", says: []string{"no hugepages of 1Gi, only of 2Mi"},
		},
		{
			name: "a hundred times the planned hugepages",
			harm: func(n *node) { n.write(pages(0, huge), "20000") },
			want: "memory.hugepages-unplanned", says: []string{"hugepages of 2Mi, planned are 400"},
		},
		{
			name: "hugepages of a size that the plan does without", on: []string{arm},
			harm: func(n *node) { n.write(pages(0, 32<<10), "64") },
			want: "memory.hugepages-unplanned", says: []string{"64 hugepages of 32Mi, planned are 0: 2 GiB"},
		},
	}
}

func variationsOfMemory() []variation {
	return slices.Concat(variationsOfBuild(), variationsOfSwap(), variationsOfPages())
}

// variationsOfBuild are kernels without features, which have no files of them either.
func variationsOfBuild() []variation {
	without := func(name string, on []string, paths ...string) variation {
		return variation{name: "the kernel was built without " + name, on: on, change: func(n *node) { n.remove(paths...) }}
	}
	return []variation{
		without("same-page merging", nil, "/sys/kernel/mm/ksm"),
		without("compaction", nil, "/proc/sys/vm/compaction_proactiveness"),
		without("NUMA balancing", x86(), "/proc/sys/kernel/numa_balancing"),
		without("transparent hugepages", []string{xeon, xeon612, epyc, arm}, "/sys/kernel/mm/transparent_hugepage"),
		without("transparent hugepages of shared memory", nil, transparent+"shmem_enabled"),
		without("swap", nil, "/proc/swaps"),
		without("reclaim of the own NUMA node", nil, "/proc/sys/vm/zone_reclaim_mode"),
	}
}

func variationsOfSwap() []variation {
	return []variation{
		{name: "there is swap that nothing was written to", change: func(n *node) { n.put("/proc/swaps", swaps("/dev/sda3", 0)) }},
		{
			name:   "a swap file has a blank in its name",
			change: func(n *node) { n.put("/proc/swaps", swaps(`/var/swap\040file`, 0)) },
		},
	}
}

func variationsOfPages() []variation {
	newer := []string{xeon612, epyc612}
	return []variation{
		{
			name: "a program uses hugepages", on: x86(),
			change: func(n *node) {
				n.put("/sys/devices/system/node/node0/hugepages/hugepages-1048576kB/free_hugepages", "0\n")
			},
		},
		{
			name: "a program has hugepages on loan",
			change: func(n *node) {
				const host = "/sys/kernel/mm/hugepages/hugepages-2048kB/"
				n.put(host+"nr_hugepages", "416\n")
				n.put(host+"surplus_hugepages", "16\n")
			},
		},
		{name: "merging is stopped and nothing was merged", change: func(n *node) { n.write("/sys/kernel/mm/ksm/run", "0") }},
		{name: "one size of transparent hugepages does what all do", on: newer, change: func(n *node) { n.write(transparent+"hugepages-64kB/enabled", "inherit") }},
		{name: "no size of transparent hugepages is on", on: newer, change: func(n *node) { n.write(transparent+"hugepages-2048kB/enabled", "never") }},
		{name: "transparent hugepages are denied to shared memory", change: func(n *node) { n.write(transparent+"shmem_enabled", "deny") }},
		{
			name: "pages are merged by nobody but counted", change: func(n *node) { n.write("/sys/kernel/mm/ksm/pages_shared", "7") },
		},
		{
			name: "a NUMA node of memory alone was added", on: []string{xeon},
			change: func(n *node) {
				const folder = "/sys/devices/system/node/node9"
				n.put(folder+"/cpulist", "\n")
				n.put(folder+"/meminfo", "Node 9 MemTotal:       0 kB\n")
			},
		},
	}
}
