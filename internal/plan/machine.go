// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"cmp"
	"maps"
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cmdline"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// unknown is the number of a NUMA node or cache that the host does not report.
const unknown = -1

// machine is a topology reduced to the CPUs that will be online under the plan. It is the same before
// and after the plan's reboot, so that planning again changes nothing.
type machine struct {
	// usable are the CPUs that a plan divides.
	usable cpus.Set
	// cores in ascending order of their first CPU; every usable CPU is in one.
	cores []core
	// boot is the CPU that the kernel boots on and that keeps the time.
	boot int
	// present are all CPUs that exist, online or not.
	present cpus.Set
	// hidden are offline CPUs that will come online but whose core the host does not report.
	hidden cpus.Set
}

// core is a physical core with its usable threads.
type core struct {
	cpus cpus.Set
	// slow is 1 for an efficiency core of a hybrid processor, else 0.
	slow int
	// numa is the number of the NUMA node and l3 the index of the L3 domain; unknown if not told.
	numa, l3 int
}

// machineOf reduces a topology to the CPUs that will be online. Offline CPUs count only when it was nosmt
// that took them offline and the plan boots without it: anything else that is offline, be it broken or
// taken down by hand, is left out.
func machineOf(t *topology.Topology, smt v1alpha1.SMTMode) machine {
	m := machine{present: t.Present.Union(t.Online, t.Offline)}
	online := t.Online
	if smt == v1alpha1.SMTKept && bootedWithoutSMT(t.CommandLine) {
		m.hidden = t.Offline
		for _, c := range t.Cores {
			online = online.Union(c.CPUs.Intersection(t.Offline))
			m.hidden = m.hidden.Difference(c.CPUs)
		}
	}
	domains := domainIndex(t.L3Domains)
	for _, c := range t.Cores {
		threads := c.CPUs.Intersection(online)
		if smt == v1alpha1.SMTDisabled && !threads.IsEmpty() {
			threads = cpus.Of(threads.First())
		}
		if threads.IsEmpty() {
			continue
		}
		m.cores = append(m.cores, core{cpus: threads, slow: slowness(t, threads), numa: numaOf(t, c, threads), l3: cacheOf(domains, c.L3, threads)})
	}
	for _, id := range t.WithoutCore().IDs() {
		alone := cpus.Of(id)
		m.cores = append(m.cores, core{cpus: alone, slow: slowness(t, alone), numa: t.NUMANodeOf(id), l3: cacheOf(domains, unknown, alone)})
	}
	slices.SortFunc(m.cores, func(a, b core) int { return cmp.Compare(a.cpus.First(), b.cpus.First()) })
	m.usable = cpusOf(m.cores)
	m.boot = m.usable.First()
	return m
}

func slowness(t *topology.Topology, threads cpus.Set) int {
	if t.Efficiency.Contains(threads.First()) {
		return 1
	}
	return 0
}

// bootedWithoutSMT reports whether the command line holds nosmt (Documentation/admin-guide/
// kernel-parameters.txt: nosmt, nosmt=force).
func bootedWithoutSMT(commandLine string) bool {
	line, err := cmdline.Parse(commandLine)
	if err != nil {
		return false
	}
	_, given := line.Get("nosmt")
	return given
}

func domainIndex(domains []cpus.Set) map[int]int {
	index := map[int]int{}
	for i, domain := range domains {
		for _, id := range domain.IDs() {
			index[id] = i
		}
	}
	return index
}

func numaOf(t *topology.Topology, c topology.Core, threads cpus.Set) int {
	if c.NUMANode != unknown {
		return c.NUMANode
	}
	return t.NUMANodeOf(threads.First())
}

func cacheOf(domains map[int]int, known int, threads cpus.Set) int {
	if known != unknown {
		return known
	}
	if domain, ok := domains[threads.First()]; ok {
		return domain
	}
	return unknown
}

// cpusOf is the union of the threads of cores.
func cpusOf(cores []core) cpus.Set {
	var ids []int
	for _, c := range cores {
		ids = append(ids, c.cpus.IDs()...)
	}
	return cpus.Of(ids...)
}

// byNUMANode groups cores by NUMA node, each group in ascending order.
func byNUMANode(cores []core) map[int][]core {
	groups := map[int][]core{}
	for _, c := range cores {
		groups[c.numa] = append(groups[c.numa], c)
	}
	return groups
}

// numaNodes are the numbers of the NUMA nodes with usable CPUs, ascending.
func (m machine) numaNodes() []int {
	return slices.Sorted(maps.Keys(byNUMANode(m.cores)))
}

// caches are the distinct L3 domains of cores, the unknown one not counted.
func caches(cores []core) map[int]bool {
	found := map[int]bool{}
	for _, c := range cores {
		if c.l3 != unknown {
			found[c.l3] = true
		}
	}
	return found
}
