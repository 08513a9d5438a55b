// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package hosttree builds trees of /proc, /sys and /etc that describe real classes of machines, for
// tests, demonstrations and benchmarks: what internal/host reads of a host, in the kernel's own notation.
//
// Write gives the tree of a machine as a distribution leaves it untuned. Boot rewrites it as a kernel
// with other arguments would. Both are a simulation of the kernel, not a kernel: they know the
// arguments that Boot names, and each rule says which source or document of Linux it follows.
package hosttree

import (
	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// Numbering says how the kernel numbers cores over NUMA nodes; the firmware's order decides.
type Numbering string

const (
	// NumberingBlocks numbers all cores of NUMA node 0, then those of NUMA node 1.
	NumberingBlocks Numbering = "Blocks"
	// NumberingInterleaved deals cores out to the NUMA nodes in turn, as many two-socket servers do.
	NumberingInterleaved Numbering = "Interleaved"
)

// Machine describes hardware and the distribution on it. CPU numbers follow Linux on x86: the first
// threads of all cores come first, their siblings after them in the same order.
type Machine struct {
	Hostname string `json:"hostname"`
	// Architecture is amd64 or arm64.
	Architecture string `json:"architecture"`
	// Vendor is Intel, AMD or ARM; Model, Microcode and Flags are what /proc/cpuinfo says.
	Vendor string `json:"vendor"`
	Model  string `json:"model"`
	// Family and ModelNumber are the numbers of the generation of an x86 processor.
	Family      int      `json:"family,omitempty"`
	ModelNumber int      `json:"modelNumber,omitempty"`
	Microcode   string   `json:"microcode,omitempty"`
	Flags       []string `json:"flags"`

	Packages            int       `json:"packages"`
	NUMANodesPerPackage int       `json:"numaNodesPerPackage"`
	CoresPerNUMANode    int       `json:"coresPerNUMANode"`
	ThreadsPerCore      int       `json:"threadsPerCore"`
	Numbering           Numbering `json:"numbering"`
	// EfficiencyCores is how many of the last cores are slower than the others, on Intel and arm64; 0 when all are alike.
	EfficiencyCores int `json:"efficiencyCores,omitempty"`
	// CoresPerL3 is the number of cores that share a cache of level 3; 0 when the firmware shows none.
	CoresPerL3 int `json:"coresPerL3,omitempty"`
	// L3KiB is the size of one such cache in KiB.
	L3KiB int `json:"l3KiB,omitempty"`
	// MemoryBytesPerNUMANode is the memory of each NUMA node in bytes.
	MemoryBytesPerNUMANode int64 `json:"memoryBytesPerNUMANode"`
	// Distances are the rows of the SLIT, one per NUMA node.
	Distances [][]int `json:"distances"`

	// MinimumFrequency and MaximumFrequency of the hardware in kHz.
	MinimumFrequency int64 `json:"minimumFrequency"`
	MaximumFrequency int64 `json:"maximumFrequency"`
	// NominalFrequency is the highest in the table of acpi-cpufreq, in kHz, where the rest up to MaximumFrequency is turbo; 0
	// where that driver has no table.
	NominalFrequency int64 `json:"nominalFrequency,omitempty"`
	// NativeIdleStates are those of a driver made for the processor (intel_idle); empty when there is none.
	NativeIdleStates []IdleState `json:"nativeIdleStates,omitempty"`
	// FirmwareIdleStates are those that ACPI offers, the one of latency first.
	FirmwareIdleStates []IdleState `json:"firmwareIdleStates"`

	NICs  []NIC  `json:"nics"`
	Disks []Disk `json:"disks,omitempty"`
	// DefaultRoute is the interface of the default route; "" for a host without one.
	DefaultRoute string `json:"defaultRoute,omitempty"`
	// Onload is what the machine has of Onload.
	Onload Onload `json:"onload,omitzero"`

	// WorkloadPartitioning gives the node the files of a cluster that was installed with CPU partitioning.
	WorkloadPartitioning bool `json:"workloadPartitioning,omitempty"`

	// KernelRelease is uname -r of the distribution's default kernel.
	KernelRelease string   `json:"kernelRelease"`
	Firmware      Firmware `json:"firmware"`
}

// IdleState is an idle state of the processor.
type IdleState struct {
	Name string `json:"name"`
	// LatencyMicros is the time to leave it in microseconds.
	LatencyMicros int `json:"latencyMicros"`
}

// NIC is a network card's function.
type NIC struct {
	// Name of the network interface.
	Name string `json:"name"`
	// PCIAddress such as 0000:af:00.0.
	PCIAddress string `json:"pciAddress"`
	// Vendor and Device such as 0x1924 and 0x0b03.
	Vendor string `json:"vendor"`
	Device string `json:"device"`
	Driver string `json:"driver"`
	// NUMANode is -1 when the firmware does not say.
	NUMANode int `json:"numaNode"`
	// Queues is the number of combined queues, each with an interrupt of its own.
	Queues int `json:"queues"`
	// SpeedMegabits of the link in Mbit/s; 0 when the link is down.
	SpeedMegabits int `json:"speedMegabits"`
	// MaximumVirtualFunctions is sriov_totalvfs; VirtualFunctions of them are enabled.
	MaximumVirtualFunctions int `json:"maximumVirtualFunctions,omitempty"`
	VirtualFunctions        int `json:"virtualFunctions,omitempty"`
	// IOMMUGroup of the function; 0 for one without. Virtual functions get groups of their own.
	IOMMUGroup int `json:"iommuGroup,omitempty"`
}

// Disk is an NVMe controller: its queues have managed interrupts, which user space cannot move.
type Disk struct {
	Name       string `json:"name"`
	PCIAddress string `json:"pciAddress"`
	NUMANode   int    `json:"numaNode"`
	Queues     int    `json:"queues"`
}

// Firmware is what DMI says.
type Firmware struct {
	Vendor      string `json:"vendor"`
	Product     string `json:"product"`
	BIOSVersion string `json:"biosVersion"`
}

// BootOptions say what the machine boots with.
type BootOptions struct {
	// CommandLine is the whole kernel command line, for example BaseCommandLine and the arguments of a plan.
	CommandLine string `json:"commandLine"`
	// KernelType is the flavour of the kernel; "" means Default.
	KernelType v1alpha1.KernelType `json:"kernelType,omitempty"`
	// PageSize is the base page of the kernel; "" means 4Ki. 64Ki exists on arm64.
	PageSize v1alpha1.PageSize `json:"pageSize,omitempty"`
	// Offline are CPUs that a unit of the host takes offline right after boot, in kernel list format.
	Offline string `json:"offline,omitempty"`
}

// numaNodes is the number of NUMA nodes.
func (m Machine) numaNodes() int { return m.Packages * m.NUMANodesPerPackage }

// cores is the number of cores.
func (m Machine) cores() int { return m.numaNodes() * m.CoresPerNUMANode }

// BaseCommandLine is the kernel command line of the distribution: where the kernel and its root file
// system are, as RHEL CoreOS has it, and nothing that tunes.
func (m Machine) BaseCommandLine() string {
	const image = "4f2c6f4d2a3c9e8b7a6d5c4b3a29180716253443526170819aabbccddeeff001"
	return "BOOT_IMAGE=(hd0,gpt3)/boot/ostree/rhcos-" + image + "/vmlinuz-" + m.KernelRelease +
		" rw ostree=/ostree/boot.0/rhcos/" + image + "/0 ignition.platform.id=metal" +
		" root=UUID=3c6f2b61-9d1e-4e0f-8d6c-0b1f6a5d4c3e rootflags=prjquota boot=UUID=7a1d0f52-1c3b-4a5e-9f60-2b4c6d8e0a1f" +
		" systemd.unified_cgroup_hierarchy=1 cgroup_no_v1=all psi=0"
}
