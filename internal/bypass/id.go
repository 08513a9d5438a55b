// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"fmt"
	"strings"
)

// DeviceIDs returns the identifiers under which the units of a device are registered with the kubelet: its PCI
// address when it has one unit, and that address with -0, -1 and so on when it is shared. They depend on nothing
// but the address and the number of units, so a plugin that restarts registers the same ones. An unhealthy device
// keeps its identifiers, because a pod may hold it; one without units has none.
func DeviceIDs(d Device) []string {
	if !d.Shared {
		if d.Units == 0 {
			return nil
		}
		return []string{d.NIC.PCIAddress}
	}
	ids := make([]string, d.Units)
	for unit := range ids {
		ids[unit] = fmt.Sprintf("%s-%d", d.NIC.PCIAddress, unit)
	}
	return ids
}

// OfDeviceID returns the PCI address of the NIC that an identifier made by DeviceIDs stands for.
func OfDeviceID(id string) string {
	address, _, _ := strings.Cut(id, "-")
	return address
}
