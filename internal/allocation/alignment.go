// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package allocation

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// place is a part of what a container has, and the NUMA nodes that it is on.
type place struct {
	// text is "CPUs 2-3 on NUMA node 0", or says what is missing.
	text string
	// nodes is empty when they are not known.
	nodes []int
}

// Alignment reports whether the CPUs, the memory with its hugepages, and the NICs of a container are on one NUMA
// node. Split wins over Unknown: two parts that are known to be apart are apart, whatever the third may be. The
// message says what is on which NUMA node, or which part is not known and why; it is "" for Aligned. On a host with
// one NUMA node everything is aligned. NICs are told by their addresses in the identifiers of devices; where they
// are is taken from the host, not from the device plugin.
func Alignment(container Container, t *topology.Topology) (v1alpha1.Alignment, string) {
	if len(t.NUMANodes) == 1 {
		return v1alpha1.AlignmentAligned, ""
	}
	places := append([]place{placeOfCPUs(container.CPUs, t)}, placesOfMemory(container.Memory)...)
	places = append(places, placesOfNICs(container, t)...)
	nodes, all, unknown := map[int]bool{}, []string{}, []string{}
	for _, part := range places {
		all = append(all, part.text)
		for _, node := range part.nodes {
			nodes[node] = true
		}
		if len(part.nodes) == 0 {
			unknown = append(unknown, part.text)
		}
	}
	switch {
	case len(nodes) > 1:
		return v1alpha1.AlignmentSplit, strings.Join(all, ", ")
	case len(unknown) > 0:
		return v1alpha1.AlignmentUnknown, strings.Join(unknown, ", ")
	default:
		return v1alpha1.AlignmentAligned, ""
	}
}

// placed is what is on the NUMA nodes, or, if there are none, what is where somebody does not report.
func placed(what string, nodes []int, unknownTo string) place {
	if len(nodes) == 0 {
		return place{text: what + " on a NUMA node that " + unknownTo + " does not report"}
	}
	names := make([]string, 0, len(nodes))
	for _, node := range nodes {
		names = append(names, strconv.Itoa(node))
	}
	on := " on NUMA node "
	if len(nodes) > 1 {
		on = " on NUMA nodes "
	}
	return place{text: what + on + strings.Join(names, " and "), nodes: nodes}
}

// withLimits is what it takes to have CPUs and memory of one's own (kubernetes: pod QoS class Guaranteed).
const withLimits = "with limits equal to requests in every container of the pod"

func placeOfCPUs(set cpus.Set, t *topology.Topology) place {
	if set.IsEmpty() {
		return place{text: "no CPUs of its own (that takes whole CPUs, " + withLimits + ")"}
	}
	var nodes []int
	rest := set
	for _, node := range t.NUMANodes {
		if node.CPUs.Overlaps(set) {
			nodes = append(nodes, node.ID)
			rest = rest.Difference(node.CPUs)
		}
	}
	if !rest.IsEmpty() {
		nodes = nil
	}
	return placed(set.Name(), nodes, "the host")
}

// placesOfMemory joins the blocks of each type.
func placesOfMemory(blocks []MemoryBlock) []place {
	byType := map[string][]int{}
	for _, block := range blocks {
		if block.Bytes > 0 {
			byType[block.Type] = append(byType[block.Type], block.NUMANodes...)
		}
	}
	if len(byType) == 0 {
		return []place{{text: "no pinned memory (that takes memoryManagerPolicy Static, " + withLimits + ")"}}
	}
	places := make([]place, 0, len(byType))
	for _, name := range slices.Sorted(maps.Keys(byType)) {
		nodes := byType[name]
		slices.Sort(nodes)
		places = append(places, placed(name, slices.Compact(nodes), "the kubelet"))
	}
	return places
}

func placesOfNICs(container Container, t *topology.Topology) []place {
	var places []place
	for _, nic := range t.NICs {
		if !container.holds(nic.PCIAddress) {
			continue
		}
		var nodes []int
		if nic.NUMANode != nil {
			nodes = []int{*nic.NUMANode}
		}
		places = append(places, placed(nameOf(nic), nodes, "the firmware"))
	}
	return places
}

// holds reports whether a container holds a unit of a NIC. Other drivers may call their devices alike, so only ours count
// among those of claims.
func (c Container) holds(address string) bool {
	byPlugin := slices.ContainsFunc(c.Devices, func(held HeldDevices) bool {
		return slices.ContainsFunc(held.IDs, func(id string) bool { return OfDeviceID(id) == address })
	})
	return byPlugin || slices.ContainsFunc(c.Claimed, func(claimed ClaimedDevice) bool {
		nic, ok := OfResourceDeviceName(claimed.Device)
		return ok && nic == address && strings.HasSuffix(claimed.Driver, v1alpha1.DriverSuffix)
	})
}

// nameOf is "NIC ens2f0 (0000:3b:00.0)".
func nameOf(nic topology.NIC) string {
	if nic.Name == "" {
		return "NIC " + nic.PCIAddress
	}
	return fmt.Sprintf("NIC %s (%s)", nic.Name, nic.PCIAddress)
}
