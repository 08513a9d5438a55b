// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package topology turns what a host says (host.Facts, or the Inventory that an agent reported) into
// the values that plans are made of: cores, packages, L3 domains, NUMA nodes and NICs. It is pure.
package topology

import (
	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// Topology is the hardware of one host and the kernel that runs on it. An unknown number is nil or an
// empty string, never zero.
type Topology struct {
	// Architecture is amd64 or arm64.
	Architecture string
	// Vendor is Intel, AMD, ARM or the processor's own word; "" when unknown.
	Vendor string
	// Model is the processor's name.
	Model string
	// Family and ModelNumber tell the generation of an x86 processor; 0 when unknown.
	Family, ModelNumber int
	// Hypervisor names the virtual machine monitor; "" on hardware.
	Hypervisor string
	// TimestampCounter says whether that of an amd64 processor is stable; "" when unknown.
	TimestampCounter v1alpha1.TimestampCounter
	// WorkloadPartitioning says whether the container runtime tells the pods of the platform from others; "" when not.
	WorkloadPartitioning v1alpha1.WorkloadPartitioning
	// KernelRelease is uname -r of the running kernel.
	KernelRelease string
	// KernelRealTime reports whether the running kernel is PREEMPT_RT; nil when unknown.
	KernelRealTime *bool
	// CommandLine of the running kernel; "" when unknown.
	CommandLine string
	// Online, Offline and Present CPUs.
	Online, Offline, Present cpus.Set
	// Cores in ascending order of their first CPU. CPUs whose core is unknown are in none: offline ones on
	// most kernels, and online ones of hosts without topology folders (see WithoutCore).
	Cores []Core
	// Efficiency are the CPUs of the slower cores of a hybrid processor; the empty set where all cores are alike.
	Efficiency cpus.Set
	// Packages in ascending order of their first CPU, with offline CPUs where the host names their package.
	Packages []cpus.Set
	// L3Domains are the sets of online CPUs that share a cache of level 3, in ascending order of their
	// first CPU; empty when the host has or tells none.
	L3Domains []cpus.Set
	// NUMANodes in ascending order, memory-only ones included. A host without NUMA has one node 0 with all
	// CPUs and the whole memory.
	NUMANodes []NUMANode
	// NICs in ascending order of PCI address.
	NICs []NIC
	// MinimumFrequency and MaximumFrequency of the hardware in kHz; 0 when unknown.
	MinimumFrequency, MaximumFrequency int64
}

// Core is a physical core.
type Core struct {
	// CPUs are the threads of the core, offline siblings included where the host names them.
	CPUs cpus.Set
	// NUMANode, Package and L3 are indices by number (NUMA node number, index into Packages and L3Domains);
	// -1 when unknown.
	NUMANode, Package, L3 int
}

// NUMANode is a NUMA node.
type NUMANode struct {
	ID int
	// CPUs are the online CPUs; the empty set for memory-only NUMA nodes.
	CPUs cpus.Set
	// MemoryBytes is nil when the host does not say.
	MemoryBytes *int64
	// Distances to the NUMA nodes in ascending order of their numbers; empty when unknown.
	Distances []int
	// HugepageSizes that the kernel offers, in KiB, ascending.
	HugepageSizes []int64
	// Hugepages are the pools as the host has them now; nil in a topology made from an Inventory.
	Hugepages []HugepagePool
}

// HugepagePool is the number of hugepages of one size on one NUMA node.
type HugepagePool struct {
	SizeKibibytes, Total, Free int64
}

// NIC is a network device on PCI.
type NIC struct {
	PCIAddress string
	// Name of the interface; "" when there is none.
	Name string
	// Vendor and Device are PCI identifiers as selectors write them, such as 1924.
	Vendor, Device string
	Driver         string
	// NUMANode is nil when the firmware does not say.
	NUMANode *int
	// LocalCPUs as the kernel says; empty when unknown.
	LocalCPUs cpus.Set
	// PhysicalFunction is the PCI address of the physical function of a virtual one; "" otherwise.
	PhysicalFunction string
	// MaximumVirtualFunctions is how many virtual functions the NIC can have; 0 when none or unknown.
	MaximumVirtualFunctions int
	// Management says which traffic of the node the NIC carries, such as "the default route"; "" when none.
	// Such a NIC is never given away or bound to another driver.
	Management string
}
