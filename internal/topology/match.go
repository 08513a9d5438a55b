// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package topology

import (
	"cmp"
	"path"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// SelectNICs returns, in ascending order of PCI address, the NICs that at least one selector matches.
func SelectNICs(selectors []v1alpha1.NICSelector, nics []NIC) []NIC {
	var selected []NIC
	for _, nic := range nics {
		if SelectsNIC(selectors, nic) {
			selected = append(selected, nic)
		}
	}
	slices.SortFunc(selected, func(a, b NIC) int { return ComparePCIAddresses(a.PCIAddress, b.PCIAddress) })
	return selected
}

// SelectsNIC reports whether one of the selectors matches a NIC.
func SelectsNIC(selectors []v1alpha1.NICSelector, nic NIC) bool {
	return slices.ContainsFunc(selectors, func(selector v1alpha1.NICSelector) bool { return MatchesNIC(&selector, nic) })
}

// MatchesNIC reports whether a NIC agrees with all fields of a selector. A selector without any field that names NICs
// matches none. Link states are no part of a topology, so link is not looked at: a plan must not change when a cable
// is pulled.
func MatchesNIC(s *v1alpha1.NICSelector, nic NIC) bool {
	return NamesNICs(s) &&
		(s.Role == v1alpha1.RoleVirtualFunction) == nic.IsVirtualFunction() &&
		(s.Vendor == "" || string(s.Vendor) == nic.Vendor) &&
		isIn(s.Devices, v1alpha1.PCIID(nic.Device)) &&
		isIn(s.Drivers, v1alpha1.DriverName(nic.Driver)) &&
		isIn(s.PCIAddresses, v1alpha1.PCIAddress(nic.PCIAddress)) &&
		matchesName(s.Interfaces, nic.Name) &&
		matchesNUMANode(s.NUMANodes, nic.NUMANode)
}

// NamesNICs reports whether a selector has a field without which it would take every NIC. The API server accepts no
// other.
func NamesNICs(s *v1alpha1.NICSelector) bool {
	return s.Vendor != "" || len(s.Drivers) > 0 || len(s.Interfaces) > 0 || len(s.PCIAddresses) > 0
}

// OfHostNIC returns what selectors look at of a NIC that a host names, within the bounds of the API.
func OfHostNIC(nic *host.NIC) NIC {
	return NIC{
		PCIAddress:       nic.PCIAddress,
		Name:             shorten.Value(nic.Name.Value, v1alpha1.MaxReportedInterfaceNameLength),
		Vendor:           shorten.Value(PCIID(nic.Vendor.Value), v1alpha1.MaxPCIIDLength),
		Device:           shorten.Value(PCIID(nic.Device.Value), v1alpha1.MaxPCIIDLength),
		Driver:           shorten.Value(nic.Driver.Value, v1alpha1.MaxReportedDriverLength),
		NUMANode:         nic.NUMANode.Pointer(),
		LocalCPUs:        nic.LocalCPUs.Value,
		PhysicalFunction: nic.PhysicalFunction.Value,

		MaximumVirtualFunctions: nic.MaximumVirtualFunctions.Value,
	}
}

// PCIID writes a PCI vendor or device as selectors do: 0x1924 of sysfs is 1924.
func PCIID(id string) string { return strings.ToLower(strings.TrimPrefix(id, "0x")) }

// ComparePCIAddresses orders PCI addresses as numbers: a domain of five digits comes after one of four.
func ComparePCIAddresses(a, b string) int {
	domainA, _, _ := strings.Cut(a, ":")
	domainB, _, _ := strings.Cut(b, ":")
	return cmp.Or(cmp.Compare(len(domainA), len(domainB)), strings.Compare(a, b))
}

// isIn reports whether a field that lists values agrees with a NIC; a field that was omitted does.
func isIn[T comparable](wanted []T, is T) bool {
	return len(wanted) == 0 || slices.Contains(wanted, is)
}

// matchesName compares a name with patterns; a NIC without an interface, such as one bound to vfio-pci, agrees with
// none, and nothing can be set on it by name.
func matchesName(patterns []v1alpha1.InterfacePattern, name string) bool {
	if len(patterns) == 0 {
		return true
	}
	included, excluded := SplitPatterns(patterns)
	isIncluded := func(pattern string) bool {
		matched, err := path.Match(pattern, name)
		return err == nil && matched
	}
	// What is no pattern selects nothing, on either side.
	isExcluded := func(pattern string) bool {
		matched, err := path.Match(pattern, name)
		return err != nil || matched
	}
	return name != "" && !slices.ContainsFunc(excluded, isExcluded) && (len(included) == 0 || slices.ContainsFunc(included, isIncluded))
}

// SplitPatterns returns the patterns of which an interface matches one, and those that exclude it, without their
// exclamation mark.
func SplitPatterns(patterns []v1alpha1.InterfacePattern) (included, excluded []string) {
	for _, pattern := range patterns {
		if rest, excludes := strings.CutPrefix(string(pattern), "!"); excludes {
			excluded = append(excluded, rest)
		} else {
			included = append(included, string(pattern))
		}
	}
	return included, excluded
}

func matchesNUMANode(wanted []int32, node *int) bool {
	return len(wanted) == 0 || node != nil &&
		slices.ContainsFunc(wanted, func(id int32) bool { return int(id) == *node })
}
