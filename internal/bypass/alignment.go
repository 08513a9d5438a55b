// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// Container is what the kubelet gave to one container, as its PodResources service tells.
type Container struct {
	Namespace, Pod, Name string
	// Devices of device plugins, one entry for each resource and NUMA node.
	Devices []HeldDevices
	// Claimed are the devices of the ResourceClaims of the container.
	Claimed []ClaimedDevice
	// CPUs that no other pod may run on; the empty set for a container on the CPUs that all share.
	CPUs cpus.Set
	// Memory that the memory manager pinned to NUMA nodes; empty unless its policy is Static and the pod is
	// Guaranteed.
	Memory []MemoryBlock
}

// HeldDevices are devices of one resource.
type HeldDevices struct {
	// Resource such as lowlatency.dev/x2.
	Resource string
	// IDs as the device plugin registered them.
	IDs []string
	// NUMANodes as the device plugin registered them; empty when it did not say.
	NUMANodes []int
}

// ClaimedDevice is a device that a driver of Dynamic Resource Allocation prepared for a container.
type ClaimedDevice struct {
	// Driver such as x2.bypass.lowlatency.dev.
	Driver string
	// Device is its name in the driver's ResourceSlices.
	Device string
}

// MemoryBlock is memory of one type on NUMA nodes.
type MemoryBlock struct {
	// Type is memory or hugepages-SIZE, such as hugepages-2Mi.
	Type  string
	Bytes uint64
	// NUMANodes of which the memory is taken; several mean that it may be spread over them.
	NUMANodes []int
}

// Holder is a container that holds a unit of a NIC.
type Holder struct {
	// PCIAddress of the NIC.
	PCIAddress string
	Container  Container
	// Allocation is the way in which the container got the unit.
	Allocation v1alpha1.AllocationType
	Alignment  v1alpha1.Alignment
	// Message says what is where, or what is not known; "" for a container that is aligned.
	Message string
}

// String is "container NAMESPACE/POD/CONTAINER".
func (c Container) String() string {
	return fmt.Sprintf("container %s/%s/%s", c.Namespace, c.Pod, c.Name)
}

// Holders returns the containers that hold units of the pool's devices, by its resource or by a claim, in ascending
// order of PCI address, namespace, pod and container. A container that holds several units of one NIC is listed once
// for each.
func Holders(pool Pool, devices []Device, containers []Container, t *topology.Topology) []Holder {
	var holders []Holder
	for _, container := range containers {
		alignment, message := Alignment(container, t)
		for _, unit := range container.units(pool) {
			if slices.ContainsFunc(devices, func(d Device) bool { return d.NIC.PCIAddress == unit.nic }) {
				holders = append(holders, Holder{unit.nic, container, unit.way, alignment, message})
			}
		}
	}
	slices.SortStableFunc(holders, compareHolders)
	return holders
}

// heldUnit is a unit of a pool that a container holds.
type heldUnit struct {
	nic string
	way v1alpha1.AllocationType
}

// units are those of a pool that the container holds.
func (c Container) units(pool Pool) []heldUnit {
	var units []heldUnit
	for _, id := range c.held(pool.Spec.ResourceName) {
		units = append(units, heldUnit{OfDeviceID(id), v1alpha1.AllocationDevicePlugin})
	}
	for _, claimed := range c.Claimed {
		if nic, ok := OfResourceDeviceName(claimed.Device); ok && claimed.Driver == DriverName(pool.Name) {
			units = append(units, heldUnit{nic, v1alpha1.AllocationDynamic})
		}
	}
	return units
}

// held are the identifiers of the devices of a resource, each once: the kubelet repeats a device for each of its NUMA
// nodes (kubelet: pkg/kubelet/cm, containerDevicesFromResourceDeviceInstances).
func (c Container) held(resource string) []string {
	var ids []string
	for _, held := range c.Devices {
		if held.Resource == resource {
			ids = append(ids, held.IDs...)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func compareHolders(a, b Holder) int {
	key := func(h Holder) []string {
		return []string{h.PCIAddress, h.Container.Namespace, h.Container.Pod, h.Container.Name}
	}
	return slices.Compare(key(a), key(b))
}

// place is a part of what a container has, and the NUMA nodes that it is on.
type place struct {
	// text is "CPUs 2-3 on NUMA node 0", or says what is missing.
	text string
	// nodes is empty when they are not known.
	nodes []int
}

// Alignment tells whether the CPUs, the memory with its hugepages, and the NICs of a container are on one NUMA
// node. Split wins over Unknown: two parts that are known to be apart are apart, whatever the third may be. The
// message says what is on which NUMA node, or which part is not known and why; it is "" for Aligned. On a host with
// one NUMA node everything is aligned. NICs are told by their addresses in the identifiers of devices; where they
// are is taken from the host, not from the device plugin.
func Alignment(container Container, t *topology.Topology) (v1alpha1.Alignment, string) {
	if len(t.NUMANodes) == 1 {
		return v1alpha1.AlignmentAligned, ""
	}
	places := append([]place{placeOfCPUs(container.CPUs, t)}, placesOfMemory(container.Memory)...)
	places = append(places, placesOfNICs(container, t)...)
	nodes, all, unknown := map[int]bool{}, []string{}, []string{}
	for _, part := range places {
		all = append(all, part.text)
		for _, node := range part.nodes {
			nodes[node] = true
		}
		if len(part.nodes) == 0 {
			unknown = append(unknown, part.text)
		}
	}
	switch {
	case len(nodes) > 1:
		return v1alpha1.AlignmentSplit, strings.Join(all, ", ")
	case len(unknown) > 0:
		return v1alpha1.AlignmentUnknown, strings.Join(unknown, ", ")
	default:
		return v1alpha1.AlignmentAligned, ""
	}
}

// placed is what is on the NUMA nodes, or, if there are none, what is where somebody does not tell.
func placed(what string, nodes []int, silent string) place {
	if len(nodes) == 0 {
		return place{text: what + " on a NUMA node that " + silent + " does not tell"}
	}
	names := make([]string, 0, len(nodes))
	for _, node := range nodes {
		names = append(names, strconv.Itoa(node))
	}
	on := " on NUMA node "
	if len(nodes) > 1 {
		on = " on NUMA nodes "
	}
	return place{text: what + on + strings.Join(names, " and "), nodes: nodes}
}

// withLimits is what it takes to have CPUs and memory of one's own (kubernetes: pod QoS class Guaranteed).
const withLimits = "with limits equal to requests in every container of the pod"

func placeOfCPUs(set cpus.Set, t *topology.Topology) place {
	if set.IsEmpty() {
		return place{text: "no CPUs of its own (that takes whole CPUs, " + withLimits + ")"}
	}
	var nodes []int
	rest := set
	for _, node := range t.NUMANodes {
		if node.CPUs.Overlaps(set) {
			nodes = append(nodes, node.ID)
			rest = rest.Difference(node.CPUs)
		}
	}
	if !rest.IsEmpty() {
		nodes = nil
	}
	return placed(cpuNames(set), nodes, "the host")
}

// cpuNames is "CPU 5" or "CPUs 2-5".
func cpuNames(set cpus.Set) string {
	if set.Len() == 1 {
		return "CPU " + set.String()
	}
	return "CPUs " + set.String()
}

// placesOfMemory joins the blocks of each type.
func placesOfMemory(blocks []MemoryBlock) []place {
	byType := map[string][]int{}
	for _, block := range blocks {
		if block.Bytes > 0 {
			byType[block.Type] = append(byType[block.Type], block.NUMANodes...)
		}
	}
	if len(byType) == 0 {
		return []place{{text: "no pinned memory (that takes memoryManagerPolicy Static, " + withLimits + ")"}}
	}
	places := make([]place, 0, len(byType))
	for _, name := range slices.Sorted(maps.Keys(byType)) {
		nodes := byType[name]
		slices.Sort(nodes)
		places = append(places, placed(name, slices.Compact(nodes), "the kubelet"))
	}
	return places
}

func placesOfNICs(container Container, t *topology.Topology) []place {
	var places []place
	for _, nic := range t.NICs {
		if !container.holds(nic.PCIAddress) {
			continue
		}
		var nodes []int
		if nic.NUMANode != nil {
			nodes = []int{*nic.NUMANode}
		}
		places = append(places, placed(nameOf(nic), nodes, "the firmware"))
	}
	return places
}

// holds tells whether a container holds a unit of a NIC. Other drivers may call their devices alike, so only ours count
// among those of claims.
func (c Container) holds(address string) bool {
	byPlugin := slices.ContainsFunc(c.Devices, func(held HeldDevices) bool {
		return slices.ContainsFunc(held.IDs, func(id string) bool { return OfDeviceID(id) == address })
	})
	return byPlugin || slices.ContainsFunc(c.Claimed, func(claimed ClaimedDevice) bool {
		nic, ok := OfResourceDeviceName(claimed.Device)
		return ok && nic == address && strings.HasSuffix(claimed.Driver, DriverSuffix)
	})
}

// nameOf is "NIC ens2f0 (0000:3b:00.0)".
func nameOf(nic topology.NIC) string {
	if nic.Name == "" {
		return "NIC " + nic.PCIAddress
	}
	return fmt.Sprintf("NIC %s (%s)", nic.Name, nic.PCIAddress)
}
