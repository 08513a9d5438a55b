// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"fmt"
	"maps"
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// planCPUs divides the CPUs and judges the result.
func (p *planner) planCPUs() {
	c := &p.plan.CPUs
	c.SMT, c.Isolation, c.Tick = p.spec.CPUs.SimultaneousMultithreading, p.spec.CPUs.Isolation, p.spec.CPUs.Tick
	if p.spec.CPUs.Partition == v1alpha1.PartitionExplicit {
		p.planExplicit()
	} else {
		p.planDerived()
	}
	if p.blocked() {
		return
	}
	p.judgeEmptySets()
	p.judgeBootCPU()
	p.judgeNUMANodes()
	p.judgeCaches()
	p.judgeEfficiency()
}

// judgeEfficiency names efficiency cores among isolated ones: a pod cannot ask the kubelet for the faster ones.
func (p *planner) judgeEfficiency() {
	slow := p.topology.Efficiency.Intersection(p.plan.CPUs.Isolated)
	if slow.IsEmpty() || p.plan.CPUs.Isolated.IsSubsetOf(slow) {
		return
	}
	remedy := "Put them into housekeeping."
	if p.spec.CPUs.Partition == v1alpha1.PartitionDerived {
		cores := slices.DeleteFunc(slices.Clone(p.machine.cores), func(c core) bool { return c.slow == 0 && p.notBoot(c) == 1 })
		remedy = fmt.Sprintf("Give housekeeping all of them, with the boot CPU %d cores, by spec.cpus.derived.housekeepingCores.", len(cores))
	}
	p.report(v1alpha1.SeverityLow, ruleEfficiency, p.partitionField(), remedy,
		"isolated CPUs %s are on efficiency cores, which are slower than the others that a pod may get", slow).
		about(finding.OfCPUs(slow))
}

// partitionField is the field that a finding about the partition names.
func (p *planner) partitionField() string {
	if p.spec.CPUs.Partition == v1alpha1.PartitionExplicit {
		return "spec.cpus.explicit"
	}
	return "spec.cpus.derived"
}

func (p *planner) judgeEmptySets() {
	c := p.plan.CPUs
	if c.Housekeeping.IsEmpty() {
		p.critical(ruleNoHousekeeping, p.partitionField(), "Give the operating system at least one whole core.",
			"no CPU of %s is left for housekeeping", p.machine.usable).
			about(finding.OfCPUs(p.machine.usable))
	}
	if c.Isolated.IsEmpty() {
		p.critical(ruleNothingIsolated, p.partitionField(),
			"Ask for fewer housekeeping cores, or exclude the node by spec.nodeSelector.",
			"nothing is left to isolate: housekeeping takes %s of the online CPUs %s in %d cores",
			c.Housekeeping, p.machine.usable, len(p.machine.cores)).
			about(finding.OfCPUs(c.Housekeeping))
	}
}

// judgeBootCPU: the kernel takes the boot CPU out of nohz_full (tick_nohz_init, "NO_HZ: Clearing %d from
// nohz_full range for timekeeping") and always puts it into the default interrupt affinity
// (irq_affinity_setup), so it cannot be isolated in earnest.
func (p *planner) judgeBootCPU() {
	if !p.plan.CPUs.Isolated.Contains(p.machine.boot) {
		return
	}
	p.report(v1alpha1.SeverityHigh, ruleBootCPU, p.partitionField(), "Put the boot CPU into housekeeping.",
		"CPU %d, on which the kernel boots, is isolated, but the kernel keeps the time and takes interrupts on it",
		p.machine.boot).
		about(finding.OfCPUs(cpus.Of(p.machine.boot)))
}

// judgeNUMANodes: unbound kernel work of a NUMA node moves to another one when the node has no
// housekeeping CPU, and a NUMA node without isolated CPUs has none for the NICs that sit there.
func (p *planner) judgeNUMANodes() {
	groups := byNUMANode(p.machine.cores)
	severity := v1alpha1.SeverityMedium
	if p.spec.CPUs.Partition == v1alpha1.PartitionDerived {
		severity = v1alpha1.SeverityLow
	}
	for _, numa := range slices.Sorted(maps.Keys(groups)) {
		local := cpusOf(groups[numa])
		switch {
		case !local.Overlaps(p.plan.CPUs.Housekeeping) && local.Overlaps(p.plan.CPUs.Isolated):
			p.report(severity, ruleNUMAHousekeeping, p.partitionField(),
				"Make a core of this NUMA node housekeeping.",
				"NUMA node %d has isolated CPUs but no housekeeping CPU, so the kernel serves them from another NUMA node", numa).
				about(finding.OfCPUs(local.Intersection(p.plan.CPUs.Isolated)), finding.OfNUMANodes(numa))
		case len(groups) > 1 && !local.Overlaps(p.plan.CPUs.Isolated):
			p.report(v1alpha1.SeverityMedium, ruleNUMAIsolated, p.partitionField(),
				"Ask for fewer housekeeping cores there.",
				"NUMA node %d has no isolated CPU, so its memory and NICs cannot be used locally", numa).
				about(finding.OfNUMANodes(numa))
		}
	}
}

// judgeCaches names L3 domains that housekeeping and isolated CPUs share where the part has several of
// them in one NUMA node; elsewhere sharing cannot be avoided. The plan says that it shares them, so that its own check
// does not hold that against the node.
func (p *planner) judgeCaches() {
	c := &p.plan.CPUs
	d := p.spec.CPUs.Derived
	if d != nil && d.SharedCaches == v1alpha1.CacheSharingAllowed {
		c.SharedCaches = d.SharedCaches
		return
	}
	groups := byNUMANode(p.machine.cores)
	shared, nodes := cpus.Set{}, []int(nil)
	for _, numa := range slices.Sorted(maps.Keys(groups)) {
		if local := sharedCaches(groups[numa], *c); len(caches(groups[numa])) > 1 && !local.IsEmpty() {
			shared, nodes = shared.Union(local), append(nodes, numa)
		}
	}
	if len(nodes) == 0 {
		return
	}
	c.SharedCaches = v1alpha1.CacheSharingAllowed
	cost, remedy := "", "Give housekeeping whole L3 domains."
	if d != nil {
		made := p.derive(*d)
		if made.Reason == v1alpha1.PartitionSharedL3Domains {
			cost = fmt.Sprintf("; whole ones would take %d of %d cores instead of %d", made.whole, len(p.machine.cores), made.Housekeeping)
		}
		remedy = "Set spec.cpus.derived.sharedCaches to Allowed if it does no harm." + p.alternatives(*d, func(other derivation) bool {
			return other.whole == other.Housekeeping
		})
	}
	p.report(v1alpha1.SeverityLow, ruleSharedCache, p.partitionField(), remedy,
		"housekeeping and isolated CPUs share L3 domains on NUMA nodes %s: CPUs %s%s", cpus.Of(nodes...), shared, cost).
		about(finding.OfCPUs(shared), finding.OfNUMANodes(nodes...))
}

// sharedCaches are the CPUs of L3 domains that hold both housekeeping and isolated CPUs.
func sharedCaches(cores []core, plan CPUPlan) cpus.Set {
	shared := cpus.Set{}
	for domain := range caches(cores) {
		members := cpusOf(slices.DeleteFunc(slices.Clone(cores), func(c core) bool { return c.l3 != domain }))
		if members.Overlaps(plan.Housekeeping) && members.Overlaps(plan.Isolated) {
			shared = shared.Union(members)
		}
	}
	return shared
}
