// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package allocation is what the kubelet gave to containers, as values: CPUs, memory and devices, and whether they are on one
// NUMA node. It is pure; internal/node/podresources asks the kubelet.
package allocation

import (
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// Container is what the kubelet gave to one container, as its PodResources service reports.
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
	return "container " + c.Path()
}

// Path is NAMESPACE/POD/CONTAINER.
func (c Container) Path() string { return c.Namespace + "/" + c.Pod + "/" + c.Name }

// Held are the identifiers of the devices of a resource, each once: the kubelet repeats a device for each of its NUMA
// nodes (kubelet: pkg/kubelet/cm, containerDevicesFromResourceDeviceInstances).
func (c Container) Held(resource string) []string {
	var ids []string
	for _, held := range c.Devices {
		if held.Resource == resource {
			ids = append(ids, held.IDs...)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// MayBeIncomplete reports whether a container has devices, but no CPUs or no memory of its own, and was not there before in the same way.
// The kubelet gives devices first, then CPUs, then memory (kubelet: pkg/kubelet/cm, order of the topology manager's hint providers), and
// may be between two of these.
func MayBeIncomplete(now, before []Container) bool {
	return slices.ContainsFunc(now, func(c Container) bool {
		return c.lacksSome() && !slices.ContainsFunc(before, func(b Container) bool {
			return b.Path() == c.Path() && b.lacksSome() && b.CPUs.IsEmpty() == c.CPUs.IsEmpty()
		})
	})
}

// lacksSome reports whether the container has devices, but no CPUs or no memory of its own.
func (c Container) lacksSome() bool {
	return len(c.Devices) > 0 && (c.CPUs.IsEmpty() || len(c.Memory) == 0)
}
