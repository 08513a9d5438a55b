// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package topology

import (
	"path"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// MatchNICs returns, in ascending order of PCI address, the NICs that at least one selector matches. A
// selector matches a NIC that agrees with all its fields:
//
//   - interfaceName is a shell pattern with * and ?; with a leading ! it matches every interface whose
//     name does not match the rest. A NIC without an interface (bound to vfio-pci, for example) matches
//     no interfaceName, negated or not: nothing can be set on it by name.
//   - vendorID and deviceID are compared without regard to case.
//   - A virtual function is matched only by a selector that names its pciAddress: vendor, driver and
//     name patterns mean the machine's cards, not the functions that pods own.
//   - A selector without any field matches nothing.
func (t *Topology) MatchNICs(selectors []v1alpha1.NICSelector) []NIC {
	var matched []NIC
	for _, nic := range t.NICs {
		selected := func(selector v1alpha1.NICSelector) bool { return selects(selector, nic) }
		if slices.ContainsFunc(selectors, selected) {
			matched = append(matched, nic)
		}
	}
	return matched
}

func selects(s v1alpha1.NICSelector, nic NIC) bool {
	if s == (v1alpha1.NICSelector{}) || (nic.IsVirtualFunction() && s.PCIAddress == "") {
		return false
	}
	return (s.InterfaceName == "" || matchesName(s.InterfaceName, nic.Name)) &&
		equalOrUnset(strings.ToLower(s.VendorID), strings.ToLower(nic.Vendor)) &&
		equalOrUnset(strings.ToLower(s.DeviceID), strings.ToLower(nic.Device)) &&
		equalOrUnset(s.Driver, nic.Driver) &&
		equalOrUnset(s.PCIAddress, nic.PCIAddress)
}

func equalOrUnset(wanted, is string) bool { return wanted == "" || wanted == is }

func matchesName(pattern, name string) bool {
	if name == "" {
		return false
	}
	pattern, negated := strings.CutPrefix(pattern, "!")
	matched, err := path.Match(pattern, name)
	return err == nil && matched != negated
}
