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
	xeonNoSMT  = "xeon-nosmt"
	epyc       = "epyc"
	epyc612    = "epyc-6.12"
	epycRT     = "epyc-rt"
	arm        = "arm"
	arm64k     = "arm-64k"
	arm612RT   = "arm-6.12-rt"
	edge       = "edge"
)

// Kernels beside the 5.14 of RHEL 9.
const (
	kernel66  = "6.6.0-28.el9.x86_64"
	kernel612 = "6.12.0-124.8.1.el10_1.x86_64"
)

// machines are all simulated machines by name. They have few cores, which makes them fast, in the layout of the real ones.
func machines() map[string]machine {
	return map[string]machine{
		xeon:    {hardware: tunedhost.Small(hosttree.Xeon()), profile: trading()},
		xeonRT:  {hardware: tunedhost.Small(hosttree.Xeon()), profile: trading(realTime)},
		xeon66:  {hardware: withKernel(tunedhost.Small(hosttree.Xeon()), kernel66), profile: trading()},
		xeon612: {hardware: withKernel(tunedhost.Small(hosttree.Xeon()), kernel612), profile: trading()},
		// Interrupts and isolation follow the pods.
		xeonPerPod: {hardware: tunedhost.Small(hosttree.Xeon()), profile: trading(perPod)},
		// A BypassNICPool has the Solarflare NICs.
		xeonPool:  {hardware: withOnload(tunedhost.Small(hosttree.Xeon())), profile: trading(), pools: []*v1alpha1.BypassNICPool{onloadPool()}},
		xeonNoSMT: {hardware: tunedhost.Small(hosttree.Xeon()), profile: trading(noSMT)},
		epyc:      {hardware: tunedhost.Small(hosttree.EPYC()), profile: trading()},
		epyc612:   {hardware: withKernel(tunedhost.Small(hosttree.EPYC()), kernel612), profile: trading()},
		epycRT:    {hardware: tunedhost.Small(hosttree.EPYC()), profile: trading(realTime)},
		arm:       {hardware: tunedhost.Small(hosttree.Arm()), profile: trading()},
		arm64k:    {hardware: tunedhost.Small(hosttree.Arm()), profile: trading(largePages)},
		arm612RT:  {hardware: withKernel(tunedhost.Small(hosttree.Arm()), "6.12.0-124.8.1.el10_1.aarch64"), profile: trading(realTime)},
		edge:      {hardware: singleSocket(), profile: trading()},
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

func withOnload(hardware hosttree.Machine) hosttree.Machine {
	hardware.Onload = hosttree.NewOnload()
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
	hardware.Packages, hardware.CoresPerNUMANode, hardware.CoresPerL3 = 1, 8, 8
	hardware.Distances = [][]int{{10}}
	for i := range hardware.NICs {
		hardware.NICs[i].NUMANode = 0
	}
	return hardware
}
