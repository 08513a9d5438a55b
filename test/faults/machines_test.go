// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/tunedhost"
)

// machine is hardware with a distribution on it, and what is asked of it.
type machine struct {
	hardware hosttree.Machine
	profile  *v1alpha1.LowLatencyNodeProfile
	pools    []*v1alpha1.BypassNICPool
}

// The names of machines.
const (
	xeon       = "xeon"
	xeonRT     = "xeon-rt"
	xeon66     = "xeon-6.6"
	xeon612    = "xeon-6.12"
	xeonPerPod = "xeon-perpod"
	xeonPool   = "xeon-pool"
	// The cluster was installed with CPU partitioning.
	xeonPartitioned = "xeon-partitioned"
	xeonNoSMT       = "xeon-nosmt"
	epyc            = "epyc"
	epyc612         = "epyc-6.12"
	epycRT          = "epyc-rt"
	arm             = "arm"
	arm64k          = "arm-64k"
	arm612RT        = "arm-6.12-rt"
	edge            = "edge"
	// The partition is written down, so that planning anew gives the same.
	xeonExplicit = "xeon-explicit"
	epycExplicit = "epyc-explicit"
	// Much that the usual profile leaves alone is set: idle states, turbo, caps of frequencies, queues, parameters.
	xeonSettings = "xeon-settings"
	xeonQueues   = "xeon-queues"
	// A BypassNICPool hands out virtual functions, or the NICs themselves, to user space.
	xeonFunctions = "xeon-functions"
	epycVFIO      = "epyc-vfio"
	// The kernel can preempt lazily, as none before 6.13 can.
	xeon618      = "xeon-6.18"
	epycSettings = "epyc-settings"
	armSettings  = "arm-settings"
	// TuneD keeps idle states shallow by the limit of latency that it holds.
	xeonLimit = "xeon-limit"
	armLimit  = "arm-limit"
)

// Kernels beside the 5.14 of RHEL 9.
const (
	kernel66  = "6.6.0-28.el9.x86_64"
	kernel612 = "6.12.0-124.8.1.el10_1.x86_64"
	kernel618 = "6.18.0-55.el10.x86_64"
)

// machines are all simulated machines by name. They have few cores, which makes them fast, in the layout of the real ones.
func machines() map[string]machine {
	return map[string]machine{
		xeon:    {hardware: small(hosttree.Xeon()), profile: trading()},
		xeonRT:  {hardware: small(hosttree.Xeon()), profile: trading(realTime)},
		xeon66:  {hardware: withKernel(small(hosttree.Xeon()), kernel66), profile: trading()},
		xeon612: {hardware: withKernel(small(hosttree.Xeon()), kernel612), profile: trading()},
		// Interrupts and isolation follow the pods.
		xeonPerPod: {hardware: small(hosttree.Xeon()), profile: trading(perPod)},
		// A BypassNICPool has the Solarflare NICs.
		xeonPool:        {hardware: withOnload(small(hosttree.Xeon())), profile: trading(), pools: []*v1alpha1.BypassNICPool{onloadPool()}},
		xeonPartitioned: {hardware: partitioned(small(hosttree.Xeon())), profile: trading()},
		xeonFunctions: {
			hardware: withIOMMU(small(hosttree.Xeon())), profile: trading(),
			pools: []*v1alpha1.BypassNICPool{vfioPool(&v1alpha1.VirtualFunctionsSpec{CountPerNIC: 2})},
		},
		epycVFIO:  {hardware: withIOMMU(small(hosttree.EPYC())), profile: trading(), pools: []*v1alpha1.BypassNICPool{vfioPool(nil)}},
		xeon618:   {hardware: withKernel(small(hosttree.Xeon()), kernel618), profile: trading()},
		xeonNoSMT: {hardware: small(hosttree.Xeon()), profile: trading(noSMT)},
		epyc:      {hardware: small(hosttree.EPYC()), profile: trading()},
		epyc612:   {hardware: withKernel(small(hosttree.EPYC()), kernel612), profile: trading()},
		epycRT:    {hardware: small(hosttree.EPYC()), profile: trading(realTime)},
		arm:       {hardware: small(hosttree.Arm()), profile: trading()},
		arm64k:    {hardware: small(hosttree.Arm()), profile: trading(largePages)},
		arm612RT:  {hardware: withKernel(small(hosttree.Arm()), "6.12.0-124.8.1.el10_1.aarch64"), profile: trading(realTime)},
		edge:      {hardware: singleSocket(), profile: trading()},

		xeonExplicit: {hardware: small(hosttree.Xeon()), profile: trading(partition("0,4", "1-3,5-7"))},
		epycExplicit: {hardware: wideCaches(), profile: trading(partition("0-1,16-17", "2-15,18-31"))},
		xeonQueues:   {hardware: small(hosttree.Xeon()), profile: trading(queues)},
		xeonSettings: {hardware: small(hosttree.Xeon()), profile: trading(settings)},
		epycSettings: {hardware: small(hosttree.EPYC()), profile: trading(settings)},
		armSettings:  {hardware: small(hosttree.Arm()), profile: trading(settings)},
		xeonLimit:    {hardware: small(hosttree.Xeon()), profile: trading(limitedLatency)},
		armLimit:     {hardware: small(hosttree.Arm()), profile: trading(limitedLatency)},
	}
}

// usualMachines are those on which a row runs that names none.
func usualMachines() []string { return []string{xeon, epyc, arm} }

// x86 are the usual ones of Intel and AMD.
func x86() []string { return []string{xeon, epyc} }

func allMachines() []string { return slices.Sorted(maps.Keys(machines())) }

// trading is the usual profile with changes.
func trading(changes ...func(*v1alpha1.LowLatencyNodeProfileSpec)) *v1alpha1.LowLatencyNodeProfile {
	profile := tunedhost.Profile()
	for _, change := range changes {
		change(&profile.Spec)
	}
	return profile
}

func realTime(spec *v1alpha1.LowLatencyNodeProfileSpec) {
	spec.Kernel.Type = v1alpha1.KernelRealTime
}

func perPod(spec *v1alpha1.LowLatencyNodeProfileSpec) {
	spec.Interrupts.Placement = v1alpha1.InterruptsPerPod
	spec.CPUs.Isolation = v1alpha1.IsolationPerPod
}

func noSMT(spec *v1alpha1.LowLatencyNodeProfileSpec) {
	spec.CPUs.SimultaneousMultithreading = v1alpha1.SMTDisabled
}

// partition writes the CPUs down.
func partition(housekeeping, isolated v1alpha1.CPUList) func(*v1alpha1.LowLatencyNodeProfileSpec) {
	return func(spec *v1alpha1.LowLatencyNodeProfileSpec) {
		spec.CPUs.Partition = v1alpha1.PartitionExplicit
		spec.CPUs.Explicit = &v1alpha1.ExplicitCPUs{Housekeeping: housekeeping, Isolated: isolated}
	}
}

// settings sets what the usual profile leaves alone.
func settings(spec *v1alpha1.LowLatencyNodeProfileSpec) {
	spec.Power.Preset = v1alpha1.PowerHighPerformance
	spec.Power.Turbo = v1alpha1.TurboDisabled
	spec.Power.IsolatedMaximumFrequencyKilohertz = 2_600_000
	spec.Power.HousekeepingMaximumFrequencyKilohertz = 2_000_000
	spec.Kernel.MachineChecks = v1alpha1.MachineChecksCorrectedErrorsIgnored
	spec.System.KernelParameters = []v1alpha1.KernelParameter{{Name: "net.core.busy_poll", Value: "50"}, {Name: "net.core.busy_read", Value: "50"}}
}

func limitedLatency(spec *v1alpha1.LowLatencyNodeProfileSpec) {
	spec.Power.Preset = v1alpha1.PowerLowLatency
}

func queues(spec *v1alpha1.LowLatencyNodeProfileSpec) {
	spec.Network.Queues = v1alpha1.QueuesHousekeepingCPUs
}

// small leaves as few cores and queues as the shape of a machine needs, which makes it fast to read.
func small(hardware hosttree.Machine) hosttree.Machine {
	hardware.CoresPerNUMANode = max(2, 4/(hardware.Packages*hardware.NUMANodesPerPackage))
	if hardware.ThreadsPerCore == 1 {
		hardware.CoresPerNUMANode = 4
	}
	hardware.CoresPerL3 = min(hardware.CoresPerL3, hardware.CoresPerNUMANode)
	return fewQueues(hardware)
}

func fewQueues(hardware hosttree.Machine) hosttree.Machine {
	for i := range hardware.NICs {
		hardware.NICs[i].Queues = 2
	}
	return hardware
}

// wideCaches is an EPYC whose NUMA nodes have two caches of level 3 with two cores each.
func wideCaches() hosttree.Machine {
	hardware := hosttree.EPYC()
	hardware.Packages, hardware.NUMANodesPerPackage, hardware.CoresPerNUMANode, hardware.CoresPerL3 = 1, 4, 4, 2
	hardware.Distances = hardware.Distances[:4]
	for i := range hardware.Distances {
		hardware.Distances[i] = hardware.Distances[i][:4]
	}
	return fewQueues(hardware)
}

// largePages asks for the kernel with pages of 64 KiB, whose hugepages have other sizes.
func largePages(spec *v1alpha1.LowLatencyNodeProfileSpec) {
	spec.Memory.KernelPageSize = v1alpha1.PageSize64Ki
	spec.Memory.DefaultHugepageSize = "512Mi"
	spec.Memory.Hugepages = []v1alpha1.HugepageReservation{
		{Size: "512Mi", Count: 16}, {Size: "2Mi", Count: 400, Placement: v1alpha1.HugepagesBypassNICLocal},
	}
}

func onloadPool() *v1alpha1.BypassNICPool {
	return &v1alpha1.BypassNICPool{
		ObjectMeta: metav1.ObjectMeta{Name: "onload", UID: "uid-onload", Generation: 1},
		Spec: v1alpha1.BypassNICPoolSpec{
			NICs:         []v1alpha1.NICSelector{{Vendor: "1924"}},
			ResourceName: v1alpha1.GroupName + "/onload",
			Stack:        v1alpha1.BypassStack{Type: v1alpha1.StackOnload, Onload: &v1alpha1.OnloadStack{}},
		},
	}
}

// vfioPool hands the Solarflare NICs, or virtual functions of them, to programs in user space.
func vfioPool(functions *v1alpha1.VirtualFunctionsSpec) *v1alpha1.BypassNICPool {
	pool := onloadPool()
	pool.Name, pool.UID, pool.Spec.ResourceName = "dpdk", "uid-dpdk", v1alpha1.GroupName+"/dpdk"
	pool.Spec.Stack = v1alpha1.BypassStack{Type: v1alpha1.StackVFIO, VFIO: &v1alpha1.VFIOStack{}}
	pool.Spec.VirtualFunctions = functions
	return pool
}

// withIOMMU puts each NIC into an IOMMU group of its own.
func withIOMMU(hardware hosttree.Machine) hosttree.Machine {
	for i := range hardware.NICs {
		hardware.NICs[i].IOMMUGroup = i + 1
	}
	return hardware
}

func withOnload(hardware hosttree.Machine) hosttree.Machine {
	hardware.Onload = hosttree.NewOnload()
	return hardware
}

func partitioned(hardware hosttree.Machine) hosttree.Machine {
	hardware.WorkloadPartitioning = true
	return hardware
}

func withKernel(hardware hosttree.Machine, release string) hosttree.Machine {
	hardware.KernelRelease = release
	return hardware
}

// singleSocket is a small server at the edge: one socket, one NUMA node.
func singleSocket() hosttree.Machine {
	hardware := hosttree.Xeon()
	hardware.Hostname = "edge"
	hardware.Packages, hardware.CoresPerNUMANode, hardware.CoresPerL3 = 1, 4, 4
	hardware.Distances = [][]int{{10}}
	for i := range hardware.NICs {
		hardware.NICs[i].NUMANode = 0
	}
	return fewQueues(hardware)
}
