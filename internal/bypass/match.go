// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"cmp"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// Select returns, in ascending order of PCI address, the NICs that at least one term matches. A term matches a NIC
// that agrees with all its fields. Link states are no part of an inventory, so link is not looked at: a plan must
// not change when a cable is pulled.
func Select(terms []v1alpha1.NICTerm, nics []topology.NIC) []topology.NIC {
	var selected []topology.NIC
	for _, nic := range nics {
		if slices.ContainsFunc(terms, func(term v1alpha1.NICTerm) bool { return matches(term, nic) }) {
			selected = append(selected, nic)
		}
	}
	slices.SortFunc(selected, func(a, b topology.NIC) int { return compareAddresses(a.PCIAddress, b.PCIAddress) })
	return selected
}

func matches(term v1alpha1.NICTerm, nic topology.NIC) bool {
	return (term.Role == v1alpha1.RoleVirtualFunction) == nic.IsVirtualFunction() &&
		(term.Vendor == "" || string(term.Vendor) == pciID(nic.Vendor)) &&
		isIn(term.Devices, v1alpha1.PCIID(pciID(nic.Device))) &&
		isIn(term.Drivers, v1alpha1.DriverName(nic.Driver)) &&
		isIn(term.PCIAddresses, v1alpha1.PCIAddress(nic.PCIAddress)) &&
		matchesInterface(term.Interfaces, nic.Name) &&
		matchesNUMANode(term.NUMANodes, nic.NUMANode)
}

// isIn tells whether a field of a term that lists values agrees with a NIC; a field that was omitted does.
func isIn[T comparable](wanted []T, is T) bool {
	return len(wanted) == 0 || slices.Contains(wanted, is)
}

// matchesInterface compares names; a NIC without an interface, such as one bound to vfio-pci, agrees with none.
func matchesInterface(wanted []v1alpha1.InterfaceName, name string) bool {
	return len(wanted) == 0 || name != "" &&
		slices.ContainsFunc(wanted, func(pattern v1alpha1.InterfaceName) bool {
			prefix, open := strings.CutSuffix(string(pattern), "*")
			return name == prefix || open && strings.HasPrefix(name, prefix)
		})
}

func matchesNUMANode(wanted []int32, node *int) bool {
	return len(wanted) == 0 || node != nil &&
		slices.ContainsFunc(wanted, func(id int32) bool { return int(id) == *node })
}

// pciID writes a PCI identifier as a term does: 0x1924 of sysfs is 1924.
func pciID(id string) string { return strings.ToLower(strings.TrimPrefix(id, "0x")) }

// compareAddresses orders PCI addresses as numbers: a domain of five digits comes after one of four.
func compareAddresses(a, b string) int {
	domainA, _, _ := strings.Cut(a, ":")
	domainB, _, _ := strings.Cut(b, ":")
	return cmp.Or(cmp.Compare(len(domainA), len(domainB)), strings.Compare(a, b))
}

// describe returns what terms look at of a NIC that a host names.
func describe(nic host.NIC) topology.NIC {
	described := topology.NIC{
		PCIAddress: nic.PCIAddress, Name: nic.Name.Value, Vendor: nic.Vendor.Value, Device: nic.Device.Value,
		Driver: nic.Driver.Value, PhysicalFunction: nic.PhysicalFunction.Value,
	}
	if node, known := nic.NUMANode.Get(); known {
		described.NUMANode = &node
	}
	return described
}

// matchesNow tells whether a term matches a NIC of the running host. With link Up, a NIC whose link is known to be
// down does not belong to the pool; one whose link cannot be read, because its interface is in a pod, still does.
func matchesNow(term v1alpha1.NICTerm, nic host.NIC) bool {
	down := nic.Carrier.Known && !nic.Carrier.Value
	return matches(term, describe(nic)) && (term.Link != v1alpha1.LinkUp || !down)
}
