// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// roundingShare bounds how much housekeeping may grow for the sake of whole L3 domains: to one part in so many of all cores.
const roundingShare = 4

// derivation is which cores housekeeping gets.
type derivation struct {
	Derivation
	chosen []core
	// whole is how many cores whole L3 domains take, or would take.
	whole int
}

// planDerived derives the partition from the topology: whole cores for housekeeping, efficiency cores before others and
// lower numbers before higher ones, the rest isolated. The boot CPU is always among the former, see judgeBootCPU.
func (p *planner) planDerived() {
	d := *p.spec.CPUs.Derived
	made := p.derive(d)
	housekeeping := cpusOf(made.chosen)
	c := &p.plan.CPUs
	c.Housekeeping = housekeeping
	c.Isolated = p.machine.usable.Difference(housekeeping)
	c.Derivation = &made.Derivation
	c.Origin = Origin{
		Source: FromTopology,
		Detail: fmt.Sprintf("spec.cpus.derived: %d of %d cores on %d NUMA nodes, %s%s",
			made.Housekeeping, len(p.machine.cores), len(p.machine.numaNodes()), d.Spread, partitionWords(made.Reason)),
	}
	p.judgeShare(d, made)
}

// partitionWords say why housekeeping has another number of cores than was asked for; "" when it has not.
func partitionWords(reason v1alpha1.PartitionReason) string {
	return map[v1alpha1.PartitionReason]string{
		v1alpha1.PartitionWholeL3Domains:      ", rounded up to whole L3 domains",
		v1alpha1.PartitionSharedL3Domains:     ", L3 domains shared because whole ones would take too much",
		v1alpha1.PartitionFewerNearBypassNICs: ", one core only near bypass NICs",
	}[reason]
}

// derive chooses the cores of housekeeping. Rounding up to whole L3 domains keeps to a bound unless sharing is excluded
// whatever it costs; it is all or nothing, NUMA nodes of bypass NICs included, so that one rule holds on the whole host.
func (p *planner) derive(d v1alpha1.DerivedCPUs) derivation {
	var made derivation
	if d.Spread == v1alpha1.SpreadFirstNUMANode {
		made.Asked = p.firstCount(d)
		made.chosen = p.firstCores(d)
	} else {
		made.Asked = p.countPerNUMANode(d) * len(p.machine.numaNodes())
		made.chosen = p.coresPerNUMANode(d)
	}
	made.Reason = v1alpha1.PartitionAsAsked
	if len(made.chosen) < made.Asked && d.KeepNearBypassNICs == v1alpha1.NearNICIsolated && len(p.near) > 0 {
		made.Reason = v1alpha1.PartitionFewerNearBypassNICs
	}
	whole := p.wholeCaches(made.chosen)
	made.whole = len(whole)
	if made.whole > len(made.chosen) && d.SharedCaches != v1alpha1.CacheSharingAllowed {
		made.Reason = v1alpha1.PartitionSharedL3Domains
		if d.SharedCaches == v1alpha1.CacheSharingExcluded || made.whole*roundingShare <= len(p.machine.cores) {
			made.chosen, made.Reason = whole, v1alpha1.PartitionWholeL3Domains
		}
	}
	made.Housekeeping = len(made.chosen)
	made.Isolated = len(p.machine.cores) - made.Housekeeping
	return made
}

// judgeShare names what housekeeping costs where that is more than the number in the profile lets expect: because the
// number counts for every NUMA node, or because of whole L3 domains.
func (p *planner) judgeShare(d v1alpha1.DerivedCPUs, made derivation) {
	const field = "spec.cpus.derived"
	cores, literal := len(p.machine.cores), p.firstCount(d)
	if d.Spread == v1alpha1.SpreadPerNUMANode {
		literal = p.countPerNUMANode(d)
	}
	rounded := made.Reason == v1alpha1.PartitionWholeL3Domains
	if !rounded && (made.Housekeeping*roundingShare < cores || made.Housekeeping <= literal) || made.Isolated == 0 {
		return
	}
	choices := p.alternatives(d, func(other derivation) bool { return other.Housekeeping < made.Housekeeping })
	if choices == "" && literal == 1 {
		return
	}
	reason := ""
	if nodes := len(p.machine.numaNodes()); d.Spread == v1alpha1.SpreadPerNUMANode && nodes > 1 {
		reason = fmt.Sprintf("; %d on each of %d NUMA nodes", literal, nodes)
	}
	if rounded {
		reason += fmt.Sprintf("; it is rounded up from %d to whole L3 domains", len(p.unrounded(d)))
	}
	p.report(v1alpha1.SeverityLow, ruleHousekeepingShare, field, "Ask for fewer cores if that is too much."+choices, "housekeeping takes %d of %d cores, %d%%%s", made.Housekeeping, cores, made.Housekeeping*100/cores, reason)
}

// unrounded are the cores before L3 domains count.
func (p *planner) unrounded(d v1alpha1.DerivedCPUs) []core {
	d.SharedCaches = v1alpha1.CacheSharingAllowed
	return p.derive(d).chosen
}

// alternatives adds to a remedy what other values of spec.cpus.derived would come to, as far as they are better; "" when
// none is.
func (p *planner) alternatives(d v1alpha1.DerivedCPUs, better func(derivation) bool) string {
	first, excluded, allowed := d, d, d
	first.Spread, first.HousekeepingCores = v1alpha1.SpreadFirstNUMANode, int32(max(p.countPerNUMANode(d), 2))
	excluded.SharedCaches, allowed.SharedCaches = v1alpha1.CacheSharingExcluded, v1alpha1.CacheSharingAllowed
	var texts []string
	for _, variant := range []struct {
		setting string
		spec    v1alpha1.DerivedCPUs
	}{
		{fmt.Sprintf("spread FirstNUMANode with housekeepingCores %d", first.HousekeepingCores), first}, {"sharedCaches Excluded", excluded}, {"sharedCaches Allowed", allowed},
	} {
		if made := p.derive(variant.spec); variant.spec != d && made.Isolated > 0 && better(made) {
			texts = append(texts, fmt.Sprintf("%s takes %d cores", variant.setting, made.Housekeeping))
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return " Or choose: " + strings.Join(texts, "; ") + "."
}

// countPerNUMANode is housekeepingCores, or its default: 1, and on hosts with more than 4 cores at least 2 in all.
func (p *planner) countPerNUMANode(d v1alpha1.DerivedCPUs) int {
	switch {
	case d.HousekeepingCores > 0:
		return int(d.HousekeepingCores)
	case len(p.machine.numaNodes()) == 1 && len(p.machine.cores) > 4:
		return 2
	default:
		return 1
	}
}

// firstCount is housekeepingCores in all, or its default.
func (p *planner) firstCount(d v1alpha1.DerivedCPUs) int {
	if d.HousekeepingCores > 0 {
		return int(d.HousekeepingCores)
	}
	count := len(p.machine.numaNodes())
	if len(p.machine.cores) > 4 {
		count = max(count, 2)
	}
	return count
}

// coresPerNUMANode takes housekeepingCores from every NUMA node with CPUs. A NUMA node whose cores near a bypass NIC are
// to be kept isolated gives up one.
func (p *planner) coresPerNUMANode(d v1alpha1.DerivedCPUs) []core {
	groups := byNUMANode(p.machine.cores)
	wanted := p.countPerNUMANode(d)
	var chosen []core
	for _, numa := range slices.Sorted(maps.Keys(groups)) {
		count := wanted
		if d.KeepNearBypassNICs == v1alpha1.NearNICIsolated && p.near[numa] {
			count = 1
		}
		local := slices.Clone(groups[numa])
		slices.SortStableFunc(local, func(a, b core) int {
			return cmp.Or(cmp.Compare(p.notBoot(a), p.notBoot(b)), cmp.Compare(b.slow, a.slow))
		})
		chosen = append(chosen, local[:min(count, len(local))]...)
	}
	return chosen
}

// firstCores takes housekeepingCores in all from the lowest NUMA nodes, those with a bypass NIC last when
// their cores are to be kept isolated. The core of the boot CPU comes first whatever its NUMA node.
func (p *planner) firstCores(d v1alpha1.DerivedCPUs) []core {
	wanted := p.firstCount(d)
	last := func(c core) int {
		if d.KeepNearBypassNICs == v1alpha1.NearNICIsolated && p.near[c.numa] {
			return 1
		}
		return 0
	}
	ordered := slices.Clone(p.machine.cores)
	slices.SortStableFunc(ordered, func(a, b core) int {
		return cmp.Or(cmp.Compare(p.notBoot(a), p.notBoot(b)), cmp.Compare(last(a), last(b)), cmp.Compare(b.slow, a.slow),
			cmp.Compare(a.numa, b.numa))
	})
	return ordered[:min(wanted, len(ordered))]
}

// notBoot is 0 for the core of the boot CPU, which sorts first, else 1.
func (p *planner) notBoot(c core) int {
	if c.cpus.Contains(p.machine.boot) {
		return 0
	}
	return 1
}

// wholeCaches rounds the chosen cores of a NUMA node with several L3 domains up to whole domains, so
// that housekeeping evicts nothing from a cache of isolated CPUs, unless the NUMA node would then have no
// isolated CPU.
func (p *planner) wholeCaches(chosen []core) []core {
	all, picked := byNUMANode(p.machine.cores), byNUMANode(chosen)
	var rounded []core
	for _, numa := range slices.Sorted(maps.Keys(picked)) {
		touched := caches(picked[numa])
		whole := slices.DeleteFunc(slices.Clone(all[numa]), func(c core) bool {
			return !touched[c.l3] && !contains(picked[numa], c)
		})
		if len(caches(all[numa])) < 2 || len(whole) == len(all[numa]) {
			whole = picked[numa]
		}
		rounded = append(rounded, whole...)
	}
	return rounded
}

func contains(cores []core, wanted core) bool {
	return slices.ContainsFunc(cores, func(c core) bool { return c.cpus.Equal(wanted.cpus) })
}
