// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package topology

import (
	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// Settled returns the inventory of a node on which CPUs that its plan in force counts on have been taken offline: with the
// layout that the node reported last with them. The kernel forgets the core, the caches and the NUMA node of an offline CPU,
// so that a partition derived from the rest would be another one, and one CPU would cost the node a new plan and a reboot.
// That the CPU is offline is for the checks to say. CPUs that the machine no longer has, and machines that changed otherwise,
// are reported as they are. Counted are the CPUs of the plan in force; earlier may be nil.
func Settled(now, earlier *v1alpha1.Inventory, counted cpus.Set) *v1alpha1.Inventory {
	if earlier == nil || !sameProcessor(now, earlier) {
		return now
	}
	r := &reader{}
	online, offline := r.set("onlineCPUs", now.OnlineCPUs), r.set("offlineCPUs", now.OfflineCPUs)
	onlineBefore, offlineBefore := r.set("onlineCPUs", earlier.OnlineCPUs), r.set("offlineCPUs", earlier.OfflineCPUs)
	lost := counted.Intersection(onlineBefore).Difference(online)
	switch {
	case r.err != nil, online.IsEmpty(), lost.IsEmpty(), !lost.IsSubsetOf(offline):
		return now
	case !online.Union(lost).Equal(onlineBefore), !offline.Difference(lost).Equal(offlineBefore):
		return now
	}
	settled := now.DeepCopy()
	settled.OnlineCPUs, settled.OfflineCPUs = earlier.OnlineCPUs, earlier.OfflineCPUs
	settled.Cores, settled.EfficiencyCPUs = earlier.Cores, earlier.EfficiencyCPUs
	settled.Packages, settled.L3Domains = earlier.Packages, earlier.L3Domains
	settled.MinimumFrequencyKilohertz, settled.MaximumFrequencyKilohertz = earlier.MinimumFrequencyKilohertz, earlier.MaximumFrequencyKilohertz
	settled.NUMANodes = settledNUMANodes(now.NUMANodes, earlier.NUMANodes)
	settleNICs(settled.NICs, earlier.NICs)
	settled.Hash = inventoryHash(settled)
	return settled
}

// sameProcessor reports whether both inventories may be of one machine.
func sameProcessor(a, b *v1alpha1.Inventory) bool {
	return a.Architecture == b.Architecture && a.ProcessorVendor == b.ProcessorVendor && a.ProcessorModel == b.ProcessorModel
}

// settledNUMANodes are the earlier NUMA nodes, which the kernel may have forgotten with their last CPU, with the memory of now.
func settledNUMANodes(now, earlier []v1alpha1.InventoryNUMANode) []v1alpha1.InventoryNUMANode {
	current := make(map[int32]v1alpha1.InventoryNUMANode, len(now))
	for _, node := range now {
		current[node.ID] = node
	}
	settled := make([]v1alpha1.InventoryNUMANode, 0, len(earlier))
	for _, node := range earlier {
		if found, ok := current[node.ID]; ok {
			node.MemoryBytes, node.HugepageSizesKibibytes = found.MemoryBytes, found.HugepageSizesKibibytes
		}
		settled = append(settled, node)
	}
	return settled
}

// settleNICs gives the NICs back which CPUs are local to them.
func settleNICs(nics, earlier []v1alpha1.InventoryNIC) {
	local := make(map[string]string, len(earlier))
	for i := range earlier {
		local[earlier[i].PCIAddress] = earlier[i].LocalCPUs
	}
	for i := range nics {
		if before, ok := local[nics[i].PCIAddress]; ok {
			nics[i].LocalCPUs = before
		}
	}
}
