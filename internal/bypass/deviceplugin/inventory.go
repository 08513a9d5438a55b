// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package deviceplugin

import (
	"maps"
	"slices"
	"strings"

	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/latest"
)

// noNUMANode stands for a NUMA node that the firmware does not report.
const noNUMANode = -1

// unit is one device of the kubelet.
type unit struct {
	id string
	// nic is the PCI address.
	nic string
	// node is the NUMA node or noNUMANode.
	node    int
	healthy bool
}

// inventory is what is shown to the kubelet. It is not changed once it is made.
type inventory struct {
	pool, resource string
	// owner is another pool that the name of the resource belongs to; "" for none.
	owner string
	// units are in the order of their IDs, natural for numbers.
	units []unit
	// byID are the indexes of units.
	byID map[string]int
	// devices are the NICs with units, by PCI address.
	devices map[string]bypass.Device
	// reasons are what there is to say about the NICs, by PCI address.
	reasons map[string][]string
	// perNIC is what a container gets with one NIC alone, by PCI address; absent where that is not known.
	perNIC map[string]bypass.Edits
	edits  func([]bypass.Device) (bypass.Edits, error)
}

// newInventory makes the units of a reading. A NIC that is not healthy keeps the units it had: how many there are may
// be one of the facts that are missing, and containers may hold them.
func newInventory(reading Reading, before *inventory) *inventory {
	made := &inventory{
		pool: reading.Pool.Name, resource: reading.Pool.Spec.ResourceName, owner: reading.Pool.ResourceOwner, byID: map[string]int{},
		devices: map[string]bypass.Device{}, reasons: map[string][]string{}, perNIC: map[string]bypass.Edits{},
		edits: reading.Edits,
	}
	for _, device := range reading.Devices {
		if device.Health != v1alpha1.NICIneligible {
			made.add(device, before)
		}
	}
	slices.SortFunc(made.units, func(a, b unit) int { return compareIDs(a.id, b.id) })
	for i, unit := range made.units {
		made.byID[unit.id] = i
	}
	return made
}

func (v *inventory) add(device bypass.Device, before *inventory) {
	address := device.NIC.PCIAddress
	healthy := device.Health == v1alpha1.NICHealthy
	v.devices[address], v.reasons[address] = device, device.Reasons
	edits, err := v.edits([]bypass.Device{device})
	switch {
	case err == nil:
		v.perNIC[address] = edits
	case healthy:
		healthy = false
		v.reasons[address] = []string{err.Error()}
	}
	ids := bypass.DeviceIDs(device)
	if !healthy {
		ids = append(ids, before.missing(v.resource, address, ids)...)
	}
	for _, id := range ids {
		v.units = append(v.units, unit{id, address, numaNode(device), healthy})
	}
}

// missing are the units of a NIC that are not among the IDs.
func (v *inventory) missing(resource, nic string, ids []string) []string {
	var missing []string
	if v == nil || v.resource != resource {
		return nil
	}
	for _, unit := range v.units {
		if unit.nic == nic && !slices.Contains(ids, unit.id) {
			missing = append(missing, unit.id)
		}
	}
	return missing
}

// unhealthy is the inventory with every unit unhealthy for one reason.
func (v *inventory) unhealthy(reason string) *inventory {
	changed := *v
	changed.units = slices.Clone(v.units)
	changed.reasons = map[string][]string{}
	for i := range changed.units {
		changed.units[i].healthy = false
		changed.reasons[changed.units[i].nic] = []string{reason}
	}
	return &changed
}

// unit returns a unit by its ID.
func (v *inventory) unit(id string) (unit, bool) {
	index, known := v.byID[id]
	if !known {
		return unit{}, false
	}
	return v.units[index], true
}

// list is the message for the kubelet.
func (v *inventory) list() *deviceplugin.ListAndWatchResponse {
	list := &deviceplugin.ListAndWatchResponse{Devices: make([]*deviceplugin.Device, 0, len(v.units))}
	for _, unit := range v.units {
		device := &deviceplugin.Device{ID: unit.id, Health: deviceplugin.Unhealthy}
		if unit.healthy {
			device.Health = deviceplugin.Healthy
		}
		if unit.node != noNUMANode {
			device.Topology = &deviceplugin.TopologyInfo{Nodes: []*deviceplugin.NUMANode{{ID: int64(unit.node)}}}
		}
		list.Devices = append(list.Devices, device)
	}
	return list
}

func numaNode(device bypass.Device) int {
	if !device.NIC.NUMANode.Known {
		return noNUMANode
	}
	return device.NIC.NUMANode.Value
}

// compareIDs orders the shares of a NIC by their number: the longer ID has the larger one.
func compareIDs(a, b string) int {
	nicA, _, _ := strings.Cut(a, "-")
	nicB, _, _ := strings.Cut(b, "-")
	if nicA != nicB {
		return strings.Compare(a, b)
	}
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// change is what has become of a NIC.
type change struct {
	nic, health string
	units       int
	reasons     []string
}

// changes lists the NICs that came, went or changed their health, their units or the reasons.
func changes(before, now *inventory) []change {
	old, current := summaries(before), summaries(now)
	var changed []change
	for _, nic := range slices.Sorted(maps.Keys(current)) {
		was, known := old[nic]
		is := current[nic]
		if !known || was.health != is.health || was.units != is.units || !slices.Equal(was.reasons, is.reasons) {
			changed = append(changed, is)
		}
	}
	for _, nic := range slices.Sorted(maps.Keys(old)) {
		if _, still := current[nic]; !still {
			changed = append(changed, change{nic: nic, health: "Gone"})
		}
	}
	return changed
}

func summaries(v *inventory) map[string]change {
	all := map[string]change{}
	if v == nil {
		return all
	}
	for _, unit := range v.units {
		summary := all[unit.nic]
		summary.nic, summary.health, summary.reasons = unit.nic, deviceplugin.Unhealthy, v.reasons[unit.nic]
		if unit.healthy {
			summary.health = deviceplugin.Healthy
		}
		summary.units++
		all[unit.nic] = summary
	}
	return all
}

// board shows the current inventory to all streams: nil before the first reading.
type board = latest.Value[*inventory]
