// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// Devices returns the NICs that the pool selects on the node, or the virtual functions that it hands out instead, in
// ascending order of PCI address. Those that must not be handed out are among them, with the reason. A NIC that is
// to have virtual functions and has none stands for itself.
func Devices(in Input) []Device {
	found := candidates(in)
	devices := make([]Device, 0, len(found))
	for _, c := range found {
		devices = append(devices, c.device())
	}
	slices.SortFunc(devices, func(a, b Device) int { return topology.ComparePCIAddresses(a.NIC.PCIAddress, b.NIC.PCIAddress) })
	return devices
}

func candidates(in Input) []*candidate {
	var found []*candidate
	claim := in.claim()
	add := func(nic host.NIC, creator *host.NIC) {
		c := newCandidate(in, nic, creator)
		c.claim = &claim
		found = append(found, c)
	}
	for i := range in.Facts.NICs {
		nic := &in.Facts.NICs[i]
		isWanted := func(selector v1alpha1.NICSelector) bool { return matchesNow(&selector, nic) }
		switch {
		case !slices.ContainsFunc(in.Pool.Spec.NICs, isWanted):
		case in.Pool.Spec.VirtualFunctions == nil || len(nic.VirtualFunctions) == 0:
			add(*nic, nil)
		default:
			for _, address := range nic.VirtualFunctions {
				add(functionAt(in.Facts, address), nic)
			}
		}
	}
	return found
}

// functionAt returns the NIC with an address; one of which nothing is known when the host does not list it.
func functionAt(facts *host.Facts, address string) host.NIC {
	for _, nic := range facts.NICs {
		if nic.PCIAddress == address {
			return nic
		}
	}
	return host.NIC{PCIAddress: address}
}

func (c *candidate) device() Device {
	verdicts := c.judge()
	device := Device{
		NIC: c.nic, Series: c.model.Series, Health: healthOf(verdicts), Shared: isShared(&c.in.Pool.Spec),
		Versions: c.versions(),
	}
	for _, v := range shorten.List(verdicts, v1alpha1.MaxNICReasons) {
		device.Reasons = append(device.Reasons, v.reason)
	}
	if device.Health != v1alpha1.NICIneligible && !c.isCreator() {
		device.Units, _ = Units(c.in, c.claim, c.nic)
		if c.stack.queues != nil {
			device.Queues = c.stack.queues(c, device.Units)
		}
	}
	return device
}

// isCreator reports whether virtual functions are to be created on the NIC, which are handed out instead of it.
func (c *candidate) isCreator() bool {
	return c.in.Pool.Spec.VirtualFunctions != nil && c.creator == nil
}
