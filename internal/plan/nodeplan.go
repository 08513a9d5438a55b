// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package plan computes, from a LowLatencyNodeProfile and the topology of one host, everything that
// the host is to become: CPU sets, kernel command line, hugepages, interrupt routing, kernel
// parameters, kubelet settings, files and units, each value with where it came from. It is pure.
package plan

import (
	"fmt"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// Source says what kind of thing a planned value came from.
type Source string

const (
	// FromField is a field of the profile that the user set.
	FromField Source = "Field"
	// FromPreset is a preset that the user named.
	FromPreset Source = "Preset"
	// FromDefault is a choice of the operator where the user has no opinion.
	FromDefault Source = "Default"
	// FromTopology is the hardware of the host.
	FromTopology Source = "Topology"
	// FromPool is a field of a BypassNICPool.
	FromPool Source = "BypassNICPool"
)

// Origin says where a planned value came from.
type Origin struct {
	Source Source `json:"source"`
	// Detail is the field path (spec.cpus.tick), the preset, or the piece of hardware that decided.
	Detail string `json:"detail"`
}

// NodePlan is what one host is to become. Hosts with equal plans share a shape, so nothing in it names
// the node. It is stored as JSON; the field names are part of the command line's documented output.
type NodePlan struct {
	// Profile is the name of the profile.
	Profile string `json:"profile"`
	// Architecture, Vendor: what the vendor-dependent parts were chosen for.
	Architecture string `json:"architecture"`
	Vendor       string `json:"vendor,omitempty"`

	CPUs CPUPlan `json:"cpus"`
	// Kernel is the kernel flavour and base page size.
	Kernel KernelPlan `json:"kernel"`
	// KernelArguments in canonical order: a reorder in the profile changes nothing, except among
	// additionalArguments, which keep their order at the end.
	KernelArguments []Argument     `json:"kernelArguments"`
	Hugepages       []HugepagePlan `json:"hugepages,omitempty"`
	Interrupts      InterruptPlan  `json:"interrupts"`
	Power           PowerPlan      `json:"power"`
	// KernelThreads are the kernel's own threads of each CPU that run with a real-time priority, by name.
	KernelThreads []KernelThreadPlan `json:"kernelThreads,omitempty"`
	// Sysctls by name, ascending.
	Sysctls []Setting `json:"sysctls,omitempty"`
	// Sysfs are files below /sys and their values, ascending by path.
	Sysfs   []Setting   `json:"sysfs,omitempty"`
	Network NetworkPlan `json:"network"`
	Kubelet KubeletPlan `json:"kubelet"`
	// ContainerRuntime is what the container runtime does; the platform writes it in the runtime's own words.
	ContainerRuntime ContainerRuntimePlan `json:"containerRuntime"`
	// Files and Units are put on the host, ascending by path and name.
	Files []File `json:"files,omitempty"`
	Units []Unit `json:"units,omitempty"`
	// StopServices are stopped and masked; UnloadModules unloaded and kept from loading. Units and Files
	// hold what does so at boot; these lists are for those who do it now.
	StopServices  []Setting `json:"stopServices,omitempty"`
	UnloadModules []Setting `json:"unloadModules,omitempty"`
	// BypassNICs are the NICs that BypassNICLocal and keepNearBypassNICs spoke of, those of pools included.
	BypassNICs []NICPlan `json:"bypassNICs,omitempty"`
	// BypassPools are the BypassNICPools with NICs on the host, ascending by name. Their hugepages are among
	// Hugepages.
	BypassPools []PoolPlan `json:"bypassPools,omitempty"`
	// Verification is what the agent needs besides the above.
	Verification VerificationPlan `json:"verification"`
}

// CPUPlan divides the CPUs. Housekeeping and Isolated are disjoint and cover all CPUs that stay online;
// Shared is a subset of Housekeeping; DataPlane is a subset of Isolated that the kubelet gives to no pod.
type CPUPlan struct {
	Housekeeping cpus.Set `json:"housekeeping"`
	Isolated     cpus.Set `json:"isolated"`
	Offline      cpus.Set `json:"offline"`
	Shared       cpus.Set `json:"shared"`
	DataPlane    cpus.Set `json:"dataPlane"`
	// SMT, Isolation and Tick are the effective modes.
	SMT       v1alpha1.SMTMode      `json:"simultaneousMultithreading"`
	Isolation v1alpha1.CPUIsolation `json:"isolation"`
	Tick      v1alpha1.TickMode     `json:"tick"`
	// DataPlaneBalancing is the effective spec.cpus.explicit.dataPlaneLoadBalancing; "" without dataPlane.
	DataPlaneBalancing v1alpha1.CPULoadBalancing `json:"dataPlaneLoadBalancing,omitempty"`
	// SharedCaches is Allowed where housekeeping and isolated CPUs may share caches of level 3, or do so by this plan, else "".
	SharedCaches v1alpha1.CacheSharing `json:"sharedCaches,omitempty"`
	// Derivation is how a derived partition came about; nil for an explicit one.
	Derivation *Derivation `json:"derivation,omitempty"`
	Origin     Origin      `json:"origin"`
}

// Derivation counts the cores of a derived partition. As an origin, it says how a plan came about and is no part of its
// identity.
type Derivation struct {
	// Asked are the cores that the profile, or its default, asks for: on all NUMA nodes together.
	Asked int `json:"asked"`
	// Housekeeping and Isolated are the cores that the plan gives.
	Housekeeping int `json:"housekeeping"`
	Isolated     int `json:"isolated"`
	// Reason says why Housekeeping is what it is.
	Reason v1alpha1.PartitionReason `json:"reason"`
}

// KernelPlan is the kernel flavour and base page size.
type KernelPlan struct {
	Type     v1alpha1.KernelType `json:"type"`
	PageSize v1alpha1.PageSize   `json:"pageSize"`
	// BootFallback is ByHandAccepted where a kernel that does not come up may stay until somebody comes, else "".
	BootFallback v1alpha1.BootFallback `json:"bootFallback,omitempty"`
	Origin       Origin                `json:"origin"`
}

// Argument is one argument of the kernel command line.
type Argument struct {
	// Text as on the command line: "nohz=on".
	Text   string `json:"text"`
	Origin Origin `json:"origin"`
}

// HugepageMethod says how hugepages are reserved.
type HugepageMethod string

const (
	// ByKernelArgument reserves at boot: hugepages=N, spread by the kernel over the NUMA nodes.
	ByKernelArgument HugepageMethod = "KernelArgument"
	// ByUnit reserves on one NUMA node with a unit that runs before the kubelet and stops it on failure.
	ByUnit HugepageMethod = "Unit"
)

// HugepagePlan is a number of hugepages of one size in one place.
type HugepagePlan struct {
	Size          v1alpha1.HugepageSize `json:"size"`
	SizeKibibytes int64                 `json:"sizeKibibytes"`
	Count         int64                 `json:"count"`
	// NUMANode is nil when the kernel spreads the pages.
	NUMANode *int           `json:"numaNode,omitempty"`
	Method   HugepageMethod `json:"method"`
	Origin   Origin         `json:"origin"`
}

// UnitName is the unit of pages that are reserved by one.
func (h *HugepagePlan) UnitName() string {
	return fmt.Sprintf("lowlatency-hugepages-%dkB-numa%d.service", h.SizeKibibytes, *h.NUMANode)
}

// InterruptPlan says where device interrupts are handled.
type InterruptPlan struct {
	Placement v1alpha1.InterruptPlacement `json:"placement"`
	// DefaultAffinity is where new interrupts go; all online CPUs with placement PerPod.
	DefaultAffinity cpus.Set                   `json:"defaultAffinity"`
	Balancer        v1alpha1.InterruptBalancer `json:"balancer"`
	// Banned are the CPUs that irqbalance must not use.
	Banned cpus.Set `json:"banned"`
	Origin Origin   `json:"origin"`
}

// PowerPlan is the frequency and idle behaviour, as far as the host can have it: what it cannot have is
// Kept, with a finding.
type PowerPlan struct {
	IdleStates      v1alpha1.IdleStates          `json:"idleStates"`
	FrequencyDriver v1alpha1.FrequencyDriverMode `json:"frequencyDriver"`
	Governor        v1alpha1.FrequencyGovernor   `json:"governor"`
	Turbo           v1alpha1.TurboMode           `json:"turbo"`
	// IsolatedMaximum and HousekeepingMaximum frequency in kHz; 0 when there is no cap.
	IsolatedMaximum     int32  `json:"isolatedMaximumFrequencyKilohertz,omitempty"`
	HousekeepingMaximum int32  `json:"housekeepingMaximumFrequencyKilohertz,omitempty"`
	Origin              Origin `json:"origin"`
}

// KernelThreadPlan is the priority of a thread that the kernel has on each CPU.
type KernelThreadPlan struct {
	// Name is that of the thread without the number of its CPU, such as ksoftirqd.
	Name string `json:"name"`
	// Priority of the scheduling policy SCHED_FIFO, 1 to 99.
	Priority int    `json:"priority"`
	Origin   Origin `json:"origin"`
}

// Setting is one name and its value: a sysctl, a file below /sys, a unit or a module (with no value).
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value,omitempty"`
	Origin Origin `json:"origin"`
}

// NetworkPlan is what is set on NICs.
type NetworkPlan struct {
	// Queues is the number of combined queues; 0 leaves them.
	Queues int `json:"queues,omitempty"`
	// NICs are the selectors of the NICs whose queues are set; empty means every physical NIC. None names a NUMA node, and
	// one of virtual functions names addresses.
	NICs     []v1alpha1.NICSelector  `json:"nics,omitempty"`
	Steering v1alpha1.PacketSteering `json:"receivePacketSteering"`
	Origin   Origin                  `json:"origin"`
}

// KubeletPlan are kubelet settings under KubeletConfiguration's own field names.
type KubeletPlan struct {
	CPUManagerPolicy             string            `json:"cpuManagerPolicy,omitempty"`
	CPUManagerPolicyOptions      map[string]string `json:"cpuManagerPolicyOptions,omitempty"`
	CPUManagerReconcilePeriod    string            `json:"cpuManagerReconcilePeriod,omitempty"`
	TopologyManagerPolicy        string            `json:"topologyManagerPolicy,omitempty"`
	TopologyManagerPolicyOptions map[string]string `json:"topologyManagerPolicyOptions,omitempty"`
	TopologyManagerScope         string            `json:"topologyManagerScope,omitempty"`
	MemoryManagerPolicy          string            `json:"memoryManagerPolicy,omitempty"`
	ReservedSystemCPUs           string            `json:"reservedSystemCPUs,omitempty"`
	// ReservedMemory adds up, over all NUMA nodes, to kubeReserved + systemReserved + evictionHard for
	// memory, as the kubelet's memory manager demands (pkg/kubelet/cm/memorymanager, validateReservedMemory).
	ReservedMemory []MemoryReservation `json:"reservedMemory,omitempty"`
	SystemReserved map[string]string   `json:"systemReserved,omitempty"`
	KubeReserved   map[string]string   `json:"kubeReserved,omitempty"`
	EvictionHard   map[string]string   `json:"evictionHard,omitempty"`
	// Additional are further fields of KubeletConfiguration as JSON; nil when there are none.
	Additional map[string]any `json:"additional,omitempty"`
	Origin     Origin         `json:"origin"`
}

// MemoryReservation is the memory that the kubelet reserves on one NUMA node.
type MemoryReservation struct {
	NUMANode int32             `json:"numaNode"`
	Limits   map[string]string `json:"limits"`
}

// File is a file that is put on the host.
type File struct {
	Path string `json:"path"`
	// Mode is the permission bits, such as 0o644.
	Mode    int    `json:"mode"`
	Content string `json:"content"`
	Origin  Origin `json:"origin"`
}

// Unit is a systemd unit or a drop-in of one.
type Unit struct {
	Name string `json:"name"`
	// Content of the unit; "" for a unit that only gets drop-ins or is masked.
	Content string `json:"content,omitempty"`
	// Enabled units are started at boot. It says nothing about a unit without content: whether the
	// distribution's own unit starts stays as it is.
	Enabled bool `json:"enabled"`
	Masked  bool `json:"masked,omitempty"`
	// DropIns by file name, such as 10-lowlatency.conf.
	DropIns map[string]string `json:"dropIns,omitempty"`
	Origin  Origin            `json:"origin"`
}

// NICPlan names a NIC of a shape: by where it is, not by its address in one node's PCI tree alone.
type NICPlan struct {
	PCIAddress string `json:"pciAddress"`
	Vendor     string `json:"vendor,omitempty"`
	Device     string `json:"device,omitempty"`
	// NUMANode is nil when the firmware does not say.
	NUMANode *int `json:"numaNode,omitempty"`
}

// PoolPlan is what becomes of the NICs of one BypassNICPool.
type PoolPlan struct {
	// Name of the BypassNICPool.
	Name string `json:"name"`
	// NICs in ascending order of their addresses. Those that the pool selects and must not have, such as one
	// that carries the node's own traffic, are not among them.
	NICs []PoolNICPlan `json:"nics"`
}

// PoolNICPlan is what becomes of one NIC of a pool.
type PoolNICPlan struct {
	PCIAddress string `json:"pciAddress"`
	// VirtualFunctions is how many virtual functions are created on the NIC; 0 leaves those that it has.
	VirtualFunctions int `json:"virtualFunctions,omitempty"`
	// Driver is what the virtual functions, or the NIC itself where none are created, are bound to; ""
	// leaves the kernel's choice.
	Driver string `json:"driver,omitempty"`
	// Interrupts is the effective placement of the interrupts of the NIC and of its virtual functions.
	Interrupts v1alpha1.NICInterruptPlacement `json:"interrupts"`
	// InterruptCPUs are the CPUs that handle them; the empty set where they are left alone.
	InterruptCPUs cpus.Set `json:"interruptCPUs"`
	Origin        Origin   `json:"origin"`
}

// VerificationPlan is what the agent needs besides the rest of the plan.
type VerificationPlan struct {
	Gate v1alpha1.VerificationGate `json:"gate"`
	// Repair is Runtime where the agent is to put back what has drifted, else "": a plan in which nothing is
	// repaired has the hash that it had before there was repair.
	Repair v1alpha1.RepairMode `json:"repair,omitempty"`
	// FailOn says which failed checks make conditions False; "" is FailOnImpact, so that a plan without another threshold
	// has the hash that it had before there was one.
	FailOn v1alpha1.FailureThreshold `json:"failOn,omitempty"`
	// Waived checks with the reason of each.
	Waived []v1alpha1.WaivedCheck `json:"waived,omitempty"`
	// MultipleNUMANodes reports whether the shape has several NUMA nodes with CPUs.
	MultipleNUMANodes bool `json:"multipleNUMANodes"`
	// NUMANodes are the NUMA nodes with CPUs, ascending, where there are several. Plans of earlier releases have none.
	NUMANodes []NUMANodePlan `json:"numaNodes,omitempty"`
}

// NUMANodePlan is a NUMA node of a shape.
type NUMANodePlan struct {
	ID int `json:"id"`
	// CPUs are those that a plan divides.
	CPUs cpus.Set `json:"cpus"`
	// Memoryless tells a NUMA node on which no memory was found.
	Memoryless bool `json:"memoryless,omitempty"`
}
