// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// NICKind are the NICs of a host that have the same vendor and device.
type NICKind struct {
	// Vendor and Device are PCI identifiers as selectors write them.
	Vendor, Device string
	// Names are those of the interfaces, or PCI addresses where there is none, in ascending order.
	Names []string
}

// NICKinds groups NICs, in ascending order of vendor and device.
func NICKinds(nics []NIC) []NICKind {
	var kinds []NICKind
	for _, nic := range nics {
		at, found := slices.BinarySearchFunc(kinds, nic, func(k NICKind, n NIC) int {
			return cmp.Or(cmp.Compare(k.Vendor, n.Vendor), cmp.Compare(k.Device, n.Device))
		})
		if !found {
			kinds = slices.Insert(kinds, at, NICKind{Vendor: nic.Vendor, Device: nic.Device})
		}
		kinds[at].Names = append(kinds[at].Names, cmp.Or(nic.Name, nic.PCIAddress))
		slices.Sort(kinds[at].Names)
	}
	return kinds
}

// DescribeNICKinds names kinds with some of their interfaces, such as "15b3:1015 (ens1f0, ens1f1), 8086:1521 (eno1)".
func DescribeNICKinds(kinds []NICKind) string {
	const enough = 4
	described := make([]string, 0, len(kinds))
	for _, kind := range kinds {
		described = append(described, fmt.Sprintf("%s:%s (%s)", kind.Vendor, kind.Device, strings.Join(some(kind.Names, enough), ", ")))
	}
	return strings.Join(some(described, enough), ", ")
}

// some are the first texts, and how many more there are.
func some(texts []string, enough int) []string {
	if len(texts) <= enough {
		return texts
	}
	return append(slices.Clone(texts[:enough]), fmt.Sprintf("%d more", len(texts)-enough))
}
