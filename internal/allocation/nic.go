// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package allocation

import (
	"fmt"
	"slices"
	"strings"
)

// OfDeviceID returns the PCI address of the NIC that an identifier of a device plugin of ours stands for.
func OfDeviceID(id string) string {
	address, _, _ := strings.Cut(id, "-")
	return address
}

// OfResourceDeviceName returns the PCI address of the NIC that a name of ours in ResourceSlices stands for; false for
// any other name.
func OfResourceDeviceName(name string) (string, bool) {
	parts := strings.Split(name, "-")
	if len(parts) != 4 && len(parts) != 5 || slices.Contains(parts, "") {
		return "", false
	}
	return fmt.Sprintf("%s:%s:%s.%s", parts[0], parts[1], parts[2], parts[3]), true
}
