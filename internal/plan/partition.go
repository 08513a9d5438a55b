// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// planDerived derives the partition from the topology: whole cores, the lowest first, for housekeeping,
// the rest isolated. The boot CPU is always among the former, see judgeBootCPU.
func (p *planner) planDerived() {
	d := *p.spec.CPUs.Derived
	var chosen []core
	if d.Spread == v1alpha1.SpreadFirstNUMANode {
		chosen = p.firstCores(d)
	} else {
		chosen = p.coresPerNUMANode(d)
	}
	if d.SharedCaches == v1alpha1.CacheSharingAvoided {
		chosen = p.roundToCaches(chosen, d.KeepNearBypassNICs)
	}
	housekeeping := cpusOf(chosen)
	p.plan.CPUs.Housekeeping = housekeeping
	p.plan.CPUs.Isolated = p.machine.usable.Difference(housekeeping)
	p.plan.CPUs.Origin = Origin{
		Source: FromTopology,
		Detail: fmt.Sprintf("spec.cpus.derived: %d of %d cores on %d NUMA nodes, %s",
			len(chosen), len(p.machine.cores), len(p.machine.numaNodes()), d.Spread),
	}
}

// coresPerNUMANode takes housekeepingCores from every NUMA node with CPUs. The default is 1, and on hosts
// with more than 4 cores at least 2 in all. A NUMA node whose cores near a bypass NIC are to be kept
// isolated gives up one.
func (p *planner) coresPerNUMANode(d v1alpha1.DerivedCPUs) []core {
	groups := byNUMANode(p.machine.cores)
	wanted := int(d.HousekeepingCores)
	if wanted == 0 {
		wanted = 1
		if len(groups) == 1 && len(p.machine.cores) > 4 {
			wanted = 2
		}
	}
	var chosen []core
	for _, numa := range slices.Sorted(maps.Keys(groups)) {
		count := wanted
		if d.KeepNearBypassNICs == v1alpha1.NearNICIsolated && p.near[numa] {
			count = 1
		}
		chosen = append(chosen, groups[numa][:min(count, len(groups[numa]))]...)
	}
	return chosen
}

// firstCores takes housekeepingCores in all from the lowest NUMA nodes, those with a bypass NIC last when
// their cores are to be kept isolated. The core of the boot CPU comes first whatever its NUMA node.
func (p *planner) firstCores(d v1alpha1.DerivedCPUs) []core {
	wanted := int(d.HousekeepingCores)
	if wanted == 0 {
		wanted = len(p.machine.numaNodes())
		if len(p.machine.cores) > 4 {
			wanted = max(wanted, 2)
		}
	}
	last := func(c core) int {
		if d.KeepNearBypassNICs == v1alpha1.NearNICIsolated && p.near[c.numa] {
			return 1
		}
		return 0
	}
	notBoot := func(c core) int {
		if c.cpus.Contains(p.machine.boot) {
			return 0
		}
		return 1
	}
	ordered := slices.Clone(p.machine.cores)
	slices.SortStableFunc(ordered, func(a, b core) int {
		return cmp.Or(cmp.Compare(notBoot(a), notBoot(b)), cmp.Compare(last(a), last(b)), cmp.Compare(a.numa, b.numa))
	})
	return ordered[:min(wanted, len(ordered))]
}

// roundToCaches rounds the chosen cores of a NUMA node with several L3 domains up to whole domains, so
// that housekeeping evicts nothing from a cache of isolated CPUs, unless the NUMA node would then have no
// isolated CPU. A NUMA node that is to give up one core only, because of its bypass NIC, is not rounded.
func (p *planner) roundToCaches(chosen []core, nearNICs v1alpha1.NearNICPreference) []core {
	all, picked := byNUMANode(p.machine.cores), byNUMANode(chosen)
	var rounded []core
	for _, numa := range slices.Sorted(maps.Keys(picked)) {
		keep := nearNICs == v1alpha1.NearNICIsolated && p.near[numa]
		touched := caches(picked[numa])
		whole := slices.DeleteFunc(slices.Clone(all[numa]), func(c core) bool {
			return !touched[c.l3] && !contains(picked[numa], c)
		})
		if keep || len(caches(all[numa])) < 2 || len(whole) == len(all[numa]) {
			whole = picked[numa]
		}
		rounded = append(rounded, whole...)
	}
	return rounded
}

func contains(cores []core, wanted core) bool {
	return slices.ContainsFunc(cores, func(c core) bool { return c.cpus.Equal(wanted.cpus) })
}
