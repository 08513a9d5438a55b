// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package topology

import (
	"cmp"
	"fmt"
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// FromFacts derives the topology from what a host says. It fails when the host contradicts itself in
// a way that no plan could be trusted on: a CPU in two NUMA nodes, cores, packages or L3 caches, no
// online CPU at all. The error names the files. CPUs that such lists name and that are not present do not
// count: some kernels and snapshots name them. Numbers that the host does not give are absent in the
// topology; a row of distances of the wrong length counts as not given.
func FromFacts(f *host.Facts) (*Topology, error) {
	present, online, err := presentAndOnline(&f.CPUs)
	if err != nil {
		return nil, err
	}
	nodes, err := numaNodesOf(f, online)
	if err != nil {
		return nil, err
	}
	t := &Topology{
		Architecture:     shorten.Value(f.Architecture.Value, v1alpha1.MaxArchitectureLength),
		Vendor:           shorten.Value(f.Processor.Vendor.Value, v1alpha1.MaxProcessorVendorLength),
		Model:            shorten.Value(f.Processor.Model.Value, v1alpha1.MaxInventoryTextLength),
		Hypervisor:       shorten.Value(f.Processor.Hypervisor.Value, v1alpha1.MaxHypervisorLength),
		TimestampCounter: timestampCounter(f),
		KernelRelease:    shorten.Value(f.Kernel.Release.Value, v1alpha1.MaxInventoryTextLength),
		KernelRealTime:   f.Kernel.RealTime.Pointer(),
		CommandLine:      shorten.Value(f.Kernel.CommandLine.Value, v1alpha1.MaxCommandLineLength),
		Online:           online,
		Offline:          present.Difference(online),
		Present:          present,
		Efficiency:       f.CPUs.Efficiency.Value.Intersection(present),
		Packages:         packagesOf(f.CPUs.List, present, online),
		L3Domains:        l3DomainsOf(f.CPUs.List, online),
		NUMANodes:        nodes,
		NICs:             NICsOf(f.NICs),
	}
	t.Cores = each(coresOf(f.CPUs.List, present, online), func(threads cpus.Set) Core { return Core{CPUs: threads} })
	if f.ManagementCPUs.Known {
		t.WorkloadPartitioning = v1alpha1.WorkloadPartitioningEnabled
	}
	t.Family, t.ModelNumber = generationOf(&f.Processor)
	t.MinimumFrequency, t.MaximumFrequency = frequencyRange(f.CPUs.List)
	if err := t.validate(); err != nil {
		return nil, err
	}
	t.locateCores()
	MarkManagement(t, &f.Bypass, nil)
	return t, nil
}

// generationOf gives both numbers, within the bounds of the API, or none.
func generationOf(p *host.Processor) (family, model int) {
	if p.Family.Value > v1alpha1.MaxProcessorNumber || p.ModelNumber.Value > v1alpha1.MaxProcessorNumber {
		return 0, 0
	}
	return p.Family.Value, p.ModelNumber.Value
}

// presentAndOnline takes the kernel's own lists, and where they are missing, as in many snapshots, the
// folders cpuN and their online files.
func presentAndOnline(c *host.CPUs) (present, online cpus.Set, err error) {
	present, known := c.Present.Get()
	if !known {
		present = selectCPUs(c.List, func(host.CPU) bool { return true })
	}
	online, known = c.Online.Get()
	if !known {
		online = selectCPUs(c.List, func(cpu host.CPU) bool { return cpu.Online.Value })
	}
	if online.IsEmpty() {
		return present, online, fmt.Errorf("%s names no online CPU: %s", onlineFile, cmp.Or(c.Online.Reason, "it is empty"))
	}
	if missing := online.Difference(present); !missing.IsEmpty() {
		return present, online, fmt.Errorf("%s lists CPUs %s, which %s does not", onlineFile, missing, presentFile)
	}
	return present, online, nil
}

func selectCPUs(list []host.CPU, keep func(host.CPU) bool) cpus.Set {
	var ids []int
	for _, cpu := range list {
		if keep(cpu) {
			ids = append(ids, cpu.ID)
		}
	}
	return cpus.Of(ids...)
}

// coresOf groups CPUs by the sibling lists of the online ones. Core identifiers are not enough: some
// AMD machines repeat them within a package without a die number. An offline CPU that still has a
// topology folder joins the one core with its identifiers; when none or several have them, it is in none.
//
// Siblings with different core identifiers are cores of their own: AMD's compute units (family 15h) share
// a front end and a floating-point unit, which makes them siblings to the scheduler.
func coresOf(list []host.CPU, present, online cpus.Set) []cpus.Set {
	coreIDs := map[int]int{}
	for _, cpu := range list {
		if id, known := cpu.Core.Get(); known {
			coreIDs[cpu.ID] = id
		}
	}
	var cores []cpus.Set
	for _, cpu := range list {
		siblings, known := cpu.Siblings.Get()
		if !known || !online.Contains(cpu.ID) {
			continue
		}
		other := siblings.Filter(func(id int) bool {
			coreID, known := coreIDs[id]
			return known && cpu.Core.Known && coreID != cpu.Core.Value
		})
		cores = append(cores, siblings.Difference(other).Intersection(present))
	}
	cores = distinct(cores)
	return joinOffline(cores, list, online, func(cpu host.CPU) (identity, bool) {
		return identity{cpu.Package.Value, cpu.Die.Value, cpu.Core.Value}, cpu.Package.Known && cpu.Core.Known
	})
}

// packagesOf groups CPUs by the kernel's list of the CPUs of a package, else by its number.
func packagesOf(list []host.CPU, present, online cpus.Set) []cpus.Set {
	var packages []cpus.Set
	numbered := map[int][]int{}
	for _, cpu := range list {
		if !online.Contains(cpu.ID) {
			continue
		}
		if members, known := cpu.PackageCPUs.Get(); known {
			packages = append(packages, members.Intersection(present))
		} else if number, known := cpu.Package.Get(); known {
			numbered[number] = append(numbered[number], cpu.ID)
		}
	}
	for _, members := range numbered {
		packages = append(packages, cpus.Of(members...))
	}
	return joinOffline(distinct(packages), list, online, func(cpu host.CPU) (identity, bool) {
		return identity{cpu.Package.Value, 0, 0}, cpu.Package.Known
	})
}

// identity is what a package or a core is called in topology/ of its CPUs.
type identity struct{ pkg, die, core int }

// joinOffline adds each offline CPU to the group whose online CPUs have its identity, if it is one.
func joinOffline(groups []cpus.Set, list []host.CPU, online cpus.Set, identify func(host.CPU) (identity, bool)) []cpus.Set {
	groupsOf := map[identity][]int{}
	for _, cpu := range list {
		id, known := identify(cpu)
		at := indexOf(groups, cpu.ID)
		if known && online.Contains(cpu.ID) && at >= 0 && !slices.Contains(groupsOf[id], at) {
			groupsOf[id] = append(groupsOf[id], at)
		}
	}
	for _, cpu := range list {
		id, known := identify(cpu)
		if known && indexOf(groups, cpu.ID) < 0 && len(groupsOf[id]) == 1 {
			at := groupsOf[id][0]
			groups[at] = groups[at].Union(cpus.Of(cpu.ID))
		}
	}
	return distinct(groups)
}

// l3DomainsOf returns the online CPUs of each cache of level 3.
func l3DomainsOf(list []host.CPU, online cpus.Set) []cpus.Set {
	var domains []cpus.Set
	for _, cpu := range list {
		if !online.Contains(cpu.ID) {
			continue
		}
		for _, cache := range cpu.Caches {
			if level, known := cache.Level.Get(); known && level == 3 && cache.Type.Value != "Instruction" {
				domains = append(domains, cache.SharedCPUs.Value.Intersection(online))
			}
		}
	}
	return distinct(domains)
}

// numaNodesOf returns the NUMA nodes, or one node 0 where the kernel was built without NUMA.
func numaNodesOf(f *host.Facts, online cpus.Set) ([]NUMANode, error) {
	if len(f.NUMANodes) == 0 {
		return []NUMANode{{
			CPUs:          online,
			MemoryBytes:   f.MemoryTotalBytes.Pointer(),
			HugepageSizes: sizesOf(f.Hugepages),
			Hugepages:     poolsOf(f.Hugepages),
		}}, nil
	}
	nodes := make([]NUMANode, 0, len(f.NUMANodes))
	for _, from := range f.NUMANodes {
		members, known := from.CPUs.Get()
		if !known {
			return nil, fmt.Errorf("%s, which lists the CPUs of NUMA node %d, cannot be read: %s",
				nodeFile(from.ID), from.ID, from.CPUs.Reason)
		}
		node := NUMANode{
			ID:            from.ID,
			CPUs:          members.Intersection(online),
			MemoryBytes:   from.MemoryTotalBytes.Pointer(),
			HugepageSizes: sizesOf(from.Hugepages),
			Hugepages:     poolsOf(from.Hugepages),
		}
		if distances := from.Distances.Value; len(distances) == len(f.NUMANodes) {
			node.Distances = slices.Clone(distances)
		}
		nodes = append(nodes, node)
	}
	slices.SortFunc(nodes, func(a, b NUMANode) int { return cmp.Compare(a.ID, b.ID) })
	return nodes, nil
}

func sizesOf(pools []host.HugepagePool) []int64 {
	sizes := each(pools, func(pool host.HugepagePool) int64 { return pool.SizeKibibytes })
	slices.Sort(sizes)
	return sizes
}

func poolsOf(pools []host.HugepagePool) []HugepagePool {
	var known []HugepagePool
	for _, pool := range pools {
		if pool.Total.Known && pool.Free.Known {
			known = append(known, HugepagePool{
				SizeKibibytes: pool.SizeKibibytes, Total: pool.Total.Value, Free: pool.Free.Value,
			})
		}
	}
	return known
}

// NICsOf returns what selectors look at of the NICs of a host, in the order of their PCI addresses.
func NICsOf(from []host.NIC) []NIC {
	nics := each(from, func(nic host.NIC) NIC { return OfHostNIC(&nic) })
	slices.SortFunc(nics, func(a, b NIC) int { return ComparePCIAddresses(a.PCIAddress, b.PCIAddress) })
	return nics
}

// frequencyRange returns the lowest minimum and the highest maximum of all CPUs: cores of one machine
// may differ (hybrid processors, favoured cores).
func frequencyRange(list []host.CPU) (lowest, highest int64) {
	for _, cpu := range list {
		if low, known := cpu.Frequency.HardwareMinimum.Get(); known && (lowest == 0 || low < lowest) {
			lowest = low
		}
		highest = max(highest, cpu.Frequency.HardwareMaximum.Value)
	}
	return lowest, highest
}

// each converts the elements of a list. No element gives nil, so that topologies compare equal however
// they were made.
func each[From, To any](from []From, convert func(From) To) []To {
	if len(from) == 0 {
		return nil
	}
	to := make([]To, len(from))
	for i, element := range from {
		to[i] = convert(element)
	}
	return to
}

// distinct returns the different non-empty sets in ascending order of their first CPU.
func distinct(sets []cpus.Set) []cpus.Set {
	sets = slices.DeleteFunc(slices.Clone(sets), cpus.Set.IsEmpty)
	slices.SortStableFunc(sets, func(a, b cpus.Set) int {
		if first := cmp.Compare(a.First(), b.First()); first != 0 || a.Equal(b) {
			return first
		}
		return cmp.Compare(a.String(), b.String())
	})
	sets = slices.CompactFunc(sets, cpus.Set.Equal)
	if len(sets) == 0 {
		return nil
	}
	return sets
}

// indexOf returns the index of the set that holds the CPU, or -1.
func indexOf(sets []cpus.Set, cpu int) int {
	return slices.IndexFunc(sets, func(s cpus.Set) bool { return s.Contains(cpu) })
}
