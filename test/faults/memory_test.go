// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

func faultsOfMemory() []fault {
	return []fault{
		{
			name: "automatic NUMA balancing is on", on: x86(),
			harm: func(n *node) { n.write("/proc/sys/kernel/numa_balancing", "1") },
			want: "memory.numa-balancing",
		},
		{
			name: "transparent hugepages are on",
			harm: func(n *node) { n.write("/sys/kernel/mm/transparent_hugepage/enabled", "always") },
			want: "memory.transparent-hugepages", says: []string{"always"},
		},
		{
			name: "same-page merging runs",
			harm: func(n *node) { n.write("/sys/kernel/mm/ksm/run", "1") },
			want: "memory.ksm",
		},
		{
			name: "swap is in use and the kernel likes to",
			harm: func(n *node) {
				n.put("/proc/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/sda3                               partition\t8388604\t4096\t-2\n")
				n.write("/proc/sys/vm/swappiness", "60")
			},
			want: "memory.swap", says: []string{"swaps"},
		},
		{
			name: "swap is in use with the planned swappiness",
			harm: func(n *node) {
				n.put("/proc/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/sda3                               partition\t8388604\t4096\t-2\n")
			},
			want: "memory.swap", says: []string{"swaps"},
		},
		{
			name: "hugepages went away from a NUMA node", on: x86(),
			harm: func(n *node) {
				n.write("/sys/devices/system/node/node0/hugepages/hugepages-1048576kB/nr_hugepages", "0")
			},
			want: "memory.hugepages-numa", says: []string{"hugepages of 1Gi, planned are 16"},
		},
	}
}

func variationsOfMemory() []variation {
	return []variation{
		{
			name: "a program uses hugepages", on: x86(),
			change: func(n *node) {
				n.put("/sys/devices/system/node/node0/hugepages/hugepages-1048576kB/free_hugepages", "0\n")
			},
		},
		{name: "the kernel was built without same-page merging", change: func(n *node) { n.remove("/sys/kernel/mm/ksm") }},
	}
}
