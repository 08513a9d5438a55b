// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hosttree

import (
	"fmt"
	"slices"
)

const gibibyte = int64(1) << 30

// Xeon is a two-socket server with 2 x 16 cores and SMT: 64 CPUs, 2 NUMA nodes, one L3 cache per socket,
// a two-port Solarflare X2522 on NUMA node 1 and a two-port Intel X710 on NUMA node 0.
func Xeon() Machine {
	return Machine{
		Hostname:               "xeon",
		Architecture:           "amd64",
		Vendor:                 "Intel",
		Model:                  "Intel(R) Xeon(R) Gold 6346 CPU @ 3.10GHz",
		Family:                 6,
		ModelNumber:            106,
		Microcode:              "0xd0003f5",
		Flags:                  []string{"fpu", "tsc", "msr", "mce", "apic", "ht", "pdpe1gb", "lm", "constant_tsc", "nonstop_tsc", "aperfmperf", "monitor", "tsc_deadline_timer", "cat_l3", "mba", "arat", "hwp", "hwp_epp"},
		Packages:               2,
		NUMANodesPerPackage:    1,
		CoresPerNUMANode:       16,
		ThreadsPerCore:         2,
		Numbering:              NumberingBlocks,
		CoresPerL3:             16,
		L3KiB:                  36864,
		MemoryBytesPerNUMANode: 128 * gibibyte,
		Distances:              [][]int{{10, 20}, {20, 10}},
		MinimumFrequency:       800_000,
		MaximumFrequency:       3_600_000,
		NativeIdleStates:       []IdleState{{"C1", 1}, {"C1E", 4}, {"C6", 170}},
		FirmwareIdleStates:     []IdleState{{"C1", 1}, {"C2", 41}},
		NICs: append(
			ports(NIC{Name: "eno%d", PCIAddress: "0000:18:00.%d", Vendor: "0x8086", Device: "0x1572", Driver: "i40e", Queues: 8, SpeedMegabits: 10000, MaximumVirtualFunctions: 64}, 2, 1),
			ports(NIC{Name: "ens2f%[1]dnp%[1]d", PCIAddress: "0000:af:00.%d", Vendor: "0x1924", Device: "0x0b03", Driver: "sfc", NUMANode: 1, Queues: 8, SpeedMegabits: 25000, MaximumVirtualFunctions: 16}, 2, 0)...,
		),
		Disks:         []Disk{{Name: "nvme0", PCIAddress: "0000:65:00.0", NUMANode: 0, Queues: 2}},
		DefaultRoute:  "eno1",
		KernelRelease: "5.14.0-570.49.1.el9_6.x86_64",
		Firmware:      Firmware{Vendor: "Dell Inc.", Product: "PowerEdge R750", BIOSVersion: "1.15.2"},
	}
}

// EPYC is a two-socket server with four NUMA nodes per socket (NPS4), 8 cores with SMT and two L3 caches
// per NUMA node: 128 CPUs. A two-port Solarflare X2522 is on NUMA node 3, a Mellanox ConnectX-5 on 0.
func EPYC() Machine {
	const nodes = 8
	return Machine{
		Hostname:               "epyc",
		Architecture:           "amd64",
		Vendor:                 "AMD",
		Model:                  "AMD EPYC 7543 32-Core Processor",
		Family:                 25,
		ModelNumber:            1,
		Microcode:              "0xa0011d5",
		Flags:                  []string{"fpu", "tsc", "msr", "mce", "apic", "ht", "pdpe1gb", "lm", "constant_tsc", "nonstop_tsc", "aperfmperf", "monitor", "cat_l3", "mba", "arat", "cppc"},
		Packages:               2,
		NUMANodesPerPackage:    nodes / 2,
		CoresPerNUMANode:       8,
		ThreadsPerCore:         2,
		Numbering:              NumberingBlocks,
		CoresPerL3:             4,
		L3KiB:                  32768,
		MemoryBytesPerNUMANode: 64 * gibibyte,
		Distances:              distances(nodes, nodes/2, 12, 32),
		MinimumFrequency:       1_500_000,
		MaximumFrequency:       3_737_000,
		NominalFrequency:       2_800_000,
		FirmwareIdleStates:     []IdleState{{"C1", 1}, {"C2", 800}},
		NICs: append(
			ports(NIC{Name: "ens3f%[1]dnp%[1]d", PCIAddress: "0000:21:00.%d", Vendor: "0x15b3", Device: "0x1017", Driver: "mlx5_core", Queues: 16, SpeedMegabits: 100000, MaximumVirtualFunctions: 8}, 1, 0),
			ports(NIC{Name: "ens1f%[1]dnp%[1]d", PCIAddress: "0000:81:00.%d", Vendor: "0x1924", Device: "0x0b03", Driver: "sfc", NUMANode: 3, Queues: 8, SpeedMegabits: 25000, MaximumVirtualFunctions: 16}, 2, 0)...,
		),
		Disks:         []Disk{{Name: "nvme0", PCIAddress: "0000:43:00.0", NUMANode: 1, Queues: nodes}},
		DefaultRoute:  "ens3f0np0",
		KernelRelease: "5.14.0-570.49.1.el9_6.x86_64",
		Firmware:      Firmware{Vendor: "Dell Inc.", Product: "PowerEdge R7525", BIOSVersion: "2.14.1"},
	}
}

// Arm is a one-socket arm64 server with 80 cores without SMT in two NUMA nodes and no L3 cache that the
// firmware shows. A two-port Solarflare X2522 is on NUMA node 1, a Mellanox ConnectX-5 on 0.
func Arm() Machine {
	return Machine{
		Hostname:               "arm",
		Architecture:           "arm64",
		Vendor:                 "ARM",
		Model:                  "Neoverse-N1",
		Flags:                  []string{"fp", "asimd", "evtstrm", "aes", "pmull", "sha1", "sha2", "crc32", "atomics", "fphp", "asimdhp", "cpuid", "asimdrdm", "lrcpc", "dcpop", "asimddp", "ssbs"},
		Packages:               1,
		NUMANodesPerPackage:    2,
		CoresPerNUMANode:       40,
		ThreadsPerCore:         1,
		Numbering:              NumberingBlocks,
		MemoryBytesPerNUMANode: 128 * gibibyte,
		Distances:              [][]int{{10, 11}, {11, 10}},
		MinimumFrequency:       1_000_000,
		MaximumFrequency:       3_000_000,
		FirmwareIdleStates:     []IdleState{{"LPI-0", 1}, {"LPI-1", 35}},
		NICs: append(
			ports(NIC{Name: "enp1s0f%[1]dnp%[1]d", PCIAddress: "0000:01:00.%d", Vendor: "0x15b3", Device: "0x1017", Driver: "mlx5_core", Queues: 16, SpeedMegabits: 100000, MaximumVirtualFunctions: 8}, 1, 0),
			ports(NIC{Name: "enP4p3s0f%[1]dnp%[1]d", PCIAddress: "0004:03:00.%d", Vendor: "0x1924", Device: "0x0b03", Driver: "sfc", NUMANode: 1, Queues: 8, SpeedMegabits: 25000, MaximumVirtualFunctions: 16}, 2, 0)...,
		),
		Disks:         []Disk{{Name: "nvme0", PCIAddress: "0005:01:00.0", NUMANode: 0, Queues: 2}},
		DefaultRoute:  "enp1s0f0np0",
		KernelRelease: "5.14.0-570.49.1.el9_6.aarch64",
		Firmware:      Firmware{Vendor: "HPE", Product: "ProLiant RL300 Gen11", BIOSVersion: "1.70"},
	}
}

// ports returns the functions of a card. Name and PCIAddress of the card are formats for the number of
// the port; names count from first.
func ports(card NIC, count, first int) []NIC {
	functions := make([]NIC, count)
	for i := range functions {
		functions[i] = card
		functions[i].Name = fmt.Sprintf(card.Name, i+first)
		functions[i].PCIAddress = fmt.Sprintf(card.PCIAddress, i)
	}
	return functions
}

// distances returns a SLIT with one distance between NUMA nodes of a package and one between packages.
func distances(nodes, perPackage, near, far int) [][]int {
	rows := make([][]int, nodes)
	for from := range rows {
		for to := range nodes {
			distance := far
			switch {
			case from == to:
				distance = 10
			case from/perPackage == to/perPackage:
				distance = near
			}
			rows[from] = append(rows[from], distance)
		}
	}
	return rows
}

// Small is the machine made small, so that its tree is quickly written and read: two NUMA nodes of four cores, with Onload. NICs
// of other NUMA nodes go to the last one; NICs and disks have two queues.
func (m Machine) Small() Machine {
	m.Packages, m.NUMANodesPerPackage, m.CoresPerNUMANode, m.CoresPerL3 = 2, 1, 4, 4
	m.Distances = [][]int{{10, 20}, {20, 10}}
	m.Onload = NewOnload()
	m.NICs, m.Disks = slices.Clone(m.NICs), slices.Clone(m.Disks)
	for i := range m.NICs {
		nic := &m.NICs[i]
		nic.NUMANode, nic.Queues = min(nic.NUMANode, 1), 2
	}
	for i := range m.Disks {
		m.Disks[i].Queues = 2
	}
	return m
}
