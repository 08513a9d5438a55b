// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// Holders returns the containers that hold units of the pool's devices, by its resource or by a claim, in ascending
// order of PCI address, namespace, pod and container. A container that holds several units of one NIC is listed once
// for each.
func Holders(pool Pool, devices []Device, containers []allocation.Container, t *topology.Topology) []allocation.Holder {
	var holders []allocation.Holder
	for _, container := range containers {
		alignment, message := allocation.Alignment(container, t)
		for _, unit := range unitsOf(container, pool) {
			if slices.ContainsFunc(devices, func(d Device) bool { return d.NIC.PCIAddress == unit.nic }) {
				holders = append(holders, allocation.Holder{PCIAddress: unit.nic, Container: container, Allocation: unit.way, Alignment: alignment, Message: message})
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

// unitsOf are the units of a pool that the container holds.
func unitsOf(c allocation.Container, pool Pool) []heldUnit {
	var units []heldUnit
	for _, id := range c.Held(pool.Spec.ResourceName) {
		units = append(units, heldUnit{allocation.OfDeviceID(id), v1alpha1.AllocationDevicePlugin})
	}
	for _, claimed := range c.Claimed {
		if nic, ok := allocation.OfResourceDeviceName(claimed.Device); ok && claimed.Driver == DriverName(pool.Name) {
			units = append(units, heldUnit{nic, v1alpha1.AllocationDynamic})
		}
	}
	return units
}

func compareHolders(a, b allocation.Holder) int {
	key := func(h allocation.Holder) []string {
		return []string{h.PCIAddress, h.Container.Namespace, h.Container.Pod, h.Container.Name}
	}
	return slices.Compare(key(a), key(b))
}
