// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package view holds what the command line prints for programs. The names of the JSON fields are a
// contract, written down in docs/cli.md: they may be added to and never change their meaning. CPU lists are
// in kernel list format. An unknown value is null, never 0 or an empty text. It is pure.
package view

import (
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/pciname"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// Topology is the hardware of one host.
type Topology struct {
	Name         string     `json:"name"`
	Architecture *string    `json:"architecture"`
	Vendor       *string    `json:"vendor"`
	Model        *string    `json:"model"`
	Hypervisor   *string    `json:"hypervisor"`
	Kernel       Kernel     `json:"kernel"`
	CPUs         CPUs       `json:"cpus"`
	Packages     []CPUGroup `json:"packages"`
	L3Domains    []CPUGroup `json:"l3Domains"`
	NUMANodes    []NUMANode `json:"numaNodes"`
	Cores        []Core     `json:"cores"`
	NICs         []NIC      `json:"nics"`
	Frequency    Frequency  `json:"frequencyKilohertz"`
	Signature    string     `json:"signature"`
}

// Kernel is the running kernel.
type Kernel struct {
	Release     *string `json:"release"`
	RealTime    *bool   `json:"realTime"`
	CommandLine *string `json:"commandLine"`
}

// CPUs are the logical CPUs of a host.
type CPUs struct {
	Online  cpus.Set `json:"online"`
	Offline cpus.Set `json:"offline"`
	Present cpus.Set `json:"present"`
}

// CPUGroup is a package or an L3 domain. Its ID is what cores refer to.
type CPUGroup struct {
	ID   int      `json:"id"`
	CPUs cpus.Set `json:"cpus"`
}

// NUMANode is a NUMA node.
type NUMANode struct {
	ID          int            `json:"id"`
	CPUs        cpus.Set       `json:"cpus"`
	MemoryBytes *int64         `json:"memoryBytes"`
	Distances   []int          `json:"distances"`
	Hugepages   []HugepagePool `json:"hugepages"`
}

// HugepagePool is the pool of hugepages of one size on one NUMA node.
type HugepagePool struct {
	SizeKibibytes int64  `json:"sizeKibibytes"`
	Total         *int64 `json:"total"`
	Free          *int64 `json:"free"`
}

// Core is a physical core.
type Core struct {
	CPUs     cpus.Set `json:"cpus"`
	NUMANode *int     `json:"numaNode"`
	Package  *int     `json:"package"`
	L3       *int     `json:"l3"`
}

// NIC is a network device on PCI.
type NIC struct {
	Name             *string   `json:"name"`
	PCIAddress       string    `json:"pciAddress"`
	Vendor           *string   `json:"vendor"`
	Device           *string   `json:"device"`
	Product          *string   `json:"product"`
	Driver           *string   `json:"driver"`
	NUMANode         *int      `json:"numaNode"`
	LocalCPUs        *cpus.Set `json:"localCPUs"`
	PhysicalFunction *string   `json:"physicalFunction"`
}

// Frequency is the range of the hardware in kHz.
type Frequency struct {
	Minimum *int64 `json:"minimum"`
	Maximum *int64 `json:"maximum"`
}

// OfTopology is the view of a topology.
func OfTopology(name string, t *topology.Topology) Topology {
	return Topology{
		Name:         name,
		Architecture: known(t.Architecture),
		Vendor:       known(t.Vendor),
		Model:        known(t.Model),
		Hypervisor:   known(t.Hypervisor),
		Kernel: Kernel{
			Release: known(t.KernelRelease), RealTime: t.KernelRealTime, CommandLine: known(t.CommandLine),
		},
		CPUs:      CPUs{Online: t.Online, Offline: t.Offline, Present: t.Present},
		Packages:  groups(t.Packages),
		L3Domains: groups(t.L3Domains),
		NUMANodes: each(t.NUMANodes, numaNode),
		Cores:     each(t.Cores, core),
		NICs:      each(t.NICs, nic),
		Frequency: Frequency{Minimum: known(t.MinimumFrequency), Maximum: known(t.MaximumFrequency)},
		Signature: t.Signature(),
	}
}

func groups(sets []cpus.Set) []CPUGroup {
	all := make([]CPUGroup, 0, len(sets))
	for i, set := range sets {
		all = append(all, CPUGroup{ID: i, CPUs: set})
	}
	return all
}

func numaNode(node topology.NUMANode) NUMANode {
	view := NUMANode{
		ID: node.ID, CPUs: node.CPUs, MemoryBytes: node.MemoryBytes, Distances: node.Distances,
		Hugepages: []HugepagePool{},
	}
	for _, pool := range node.Hugepages {
		view.Hugepages = append(view.Hugepages, HugepagePool{
			SizeKibibytes: pool.SizeKibibytes, Total: &pool.Total, Free: &pool.Free,
		})
	}
	if len(node.Hugepages) > 0 {
		return view
	}
	for _, size := range node.HugepageSizes {
		view.Hugepages = append(view.Hugepages, HugepagePool{SizeKibibytes: size})
	}
	return view
}

func core(core topology.Core) Core {
	return Core{
		CPUs: core.CPUs, NUMANode: natural(core.NUMANode), Package: natural(core.Package), L3: natural(core.L3),
	}
}

func nic(nic topology.NIC) NIC {
	view := NIC{
		Name: known(nic.Name), PCIAddress: nic.PCIAddress, Vendor: known(nic.Vendor), Device: known(nic.Device),
		Product: known(pciname.Of(nic.Vendor, nic.Device)), Driver: known(nic.Driver), NUMANode: nic.NUMANode, PhysicalFunction: known(nic.PhysicalFunction),
	}
	if !nic.LocalCPUs.IsEmpty() {
		view.LocalCPUs = &nic.LocalCPUs
	}
	return view
}

// each converts a list; the result is never nil, so that JSON has [] and not null.
func each[From, To any](from []From, convert func(From) To) []To {
	to := make([]To, 0, len(from))
	for _, item := range from {
		to = append(to, convert(item))
	}
	return to
}

// known is nil for a value that its type's owner uses for "unknown": 0 or an empty text.
func known[T comparable](value T) *T {
	var unknown T
	if value == unknown {
		return nil
	}
	return &value
}

// natural is nil for a negative number, which stands for unknown.
func natural(number int) *int {
	if number < 0 {
		return nil
	}
	return &number
}
