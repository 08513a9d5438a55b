// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"fmt"
	"strconv"
	"strings"
)

// DeviceIDs returns the identifiers under which the units of a device are registered with the kubelet: its PCI
// address when it has one unit, and that address with -0, -1 and so on when it is shared; with stack AFXDP the number is
// that of the queue. They depend on nothing
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
		number := unit
		if len(d.Queues) == d.Units {
			number = d.Queues[unit]
		}
		ids[unit] = fmt.Sprintf("%s-%d", d.NIC.PCIAddress, number)
	}
	return ids
}

// QueuesOf returns the receive queues of a NIC that its unit with this identifier stands for: the one in the
// identifier of a share, and all that are handed out otherwise.
func QueuesOf(d Device, id string) []int {
	_, number, isShare := strings.Cut(id, "-")
	queue, err := strconv.Atoi(number)
	if !isShare || err != nil {
		return d.Queues
	}
	return []int{queue}
}

// Share is a unit that a container was given.
type Share struct {
	// ID is one of DeviceIDs.
	ID     string
	Device Device
	// Queues are those that the unit stands for; see QueuesOf.
	Queues []int
}
