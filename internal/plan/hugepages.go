// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// kibibytesPerGibibyte converts sizes for sentences.
const kibibytesPerGibibyte = 1 << 20

// hugepageKibibytes are the sizes of the API in KiB.
func hugepageKibibytes() map[v1alpha1.HugepageSize]int64 {
	return map[v1alpha1.HugepageSize]int64{
		"64Ki": 64, "2Mi": 2 << 10, "32Mi": 32 << 10, "512Mi": 512 << 10, "1Gi": 1 << 20, "16Gi": 16 << 20,
	}
}

// offeredSizes are the sizes that a kernel has (Documentation/admin-guide/mm/hugetlbpage.rst;
// Documentation/arch/arm64/hugetlbpage.rst).
func offeredSizes(architecture string, pages v1alpha1.PageSize) []v1alpha1.HugepageSize {
	switch {
	case architecture == architectureAMD64:
		return []v1alpha1.HugepageSize{"2Mi", "1Gi"}
	case pages == v1alpha1.PageSize64Ki:
		return []v1alpha1.HugepageSize{"2Mi", "512Mi", "16Gi"}
	default:
		return []v1alpha1.HugepageSize{"64Ki", "2Mi", "32Mi", "1Gi"}
	}
}

// share is a number of pages of one size on one NUMA node.
type share struct {
	numa  int
	count int64
}

// reservation is one element of spec.memory.hugepages, divided over NUMA nodes, or what a pool asks for one of
// its NICs.
type reservation struct {
	field string
	// remedy is what to do when the memory does not suffice.
	remedy    string
	origin    Origin
	size      v1alpha1.HugepageSize
	kibibytes int64
	count     int64
	// spread tells that the kernel may divide the count itself.
	spread bool
	shares []share
}

// planHugepages places the reservations on NUMA nodes, checks them against each node's memory, and
// chooses how they are made.
func (p *planner) planHugepages() {
	var reservations []reservation
	p.checkSize("spec.memory.defaultHugepageSize", p.spec.Memory.DefaultHugepageSize)
	for i, wanted := range p.spec.Memory.Hugepages {
		field := element("spec.memory.hugepages", i)
		if !p.checkSize(field, wanted.Size) {
			continue
		}
		reservations = append(reservations, reservation{
			field:     field,
			remedy:    "Lower the count, choose another NUMA node, or exclude the node by spec.nodeSelector.",
			origin:    p.origin("spec.memory.hugepages"),
			size:      wanted.Size,
			kibibytes: hugepageKibibytes()[wanted.Size],
			count:     int64(wanted.Count),
			spread:    wanted.Placement == v1alpha1.HugepagesSpread,
			shares:    p.place(field, wanted),
		})
	}
	reservations = append(reservations, p.poolReservations()...)
	p.checkMemory(reservations)
	p.plan.Hugepages = p.methods(reservations)
}

// checkSize reports whether the kernel offers a size; "" needs none. What the running kernel lists counts
// only on amd64, because on arm64 the plan may boot another kernel with another page size; and it proves
// something only for the kernels of today, which list every size that the processor has, where older ones
// listed those that the command line named (gigantic_pages_init in arch/x86/mm/hugetlbpage.c).
func (p *planner) checkSize(field string, size v1alpha1.HugepageSize) bool {
	if size == "" {
		return true
	}
	pages := p.spec.Memory.KernelPageSize
	offered := offeredSizes(p.topology.Architecture, pages)
	if !slices.Contains(offered, size) {
		p.critical(ruleHugepageSize, field, fmt.Sprintf("Choose one of %s.", joined(offered, text)),
			"%s kernels with %s pages have no hugepages of %s", p.topology.Architecture, pages, size)
		return false
	}
	if p.topology.Architecture != architectureAMD64 || p.running(hugepageKibibytes()[size]) {
		return true
	}
	severity := v1alpha1.SeverityMedium
	if p.release.AtLeast(4, 18) {
		severity = v1alpha1.SeverityCritical
	}
	p.report(severity, ruleHugepageSize, field, "Choose another size, or another processor type for the virtual machine.",
		"the running kernel does not offer hugepages of %s, as it does where the processor has them", size)
	return severity != v1alpha1.SeverityCritical
}

// running reports whether the running kernel offers a size, or does not report its sizes.
func (p *planner) running(kibibytes int64) bool {
	told := false
	for _, node := range p.topology.NUMANodes {
		told = told || len(node.HugepageSizes) > 0
		if slices.Contains(node.HugepageSizes, kibibytes) {
			return true
		}
	}
	return !told
}

// place divides a reservation over NUMA nodes.
func (p *planner) place(field string, wanted v1alpha1.HugepageReservation) []share {
	count := int64(wanted.Count)
	if wanted.NUMANode != nil {
		return p.placeOn(field, int(*wanted.NUMANode), count)
	}
	switch wanted.Placement {
	case v1alpha1.HugepagesEveryNUMANode:
		return p.placeOnEach(func(n topology.NUMANode) bool { return len(byNUMANode(p.machine.cores)[n.ID]) > 0 }, count)
	case v1alpha1.HugepagesBypassNICLocal:
		if !p.checkNICLocal(field) {
			return nil
		}
		return p.placeOnEach(func(n topology.NUMANode) bool { return p.near[n.ID] }, count)
	default:
		return evenly(p.nodesWithMemory(), count)
	}
}

// placeOn puts all pages on one NUMA node, which must exist and have memory.
func (p *planner) placeOn(field string, numa int, count int64) []share {
	node, ok := p.topology.NUMANode(numa)
	switch {
	case !ok:
		p.critical(ruleHugepagePlace, field, "Choose another NUMA node, or exclude the node by spec.nodeSelector.",
			"NUMA node %d does not exist; the host has NUMA nodes %s", numa, joined(p.topology.NUMANodes, nodeNumber)).
			about(finding.OfNUMANodes(numa))
	case !hasMemory(*node):
		p.critical(ruleHugepagePlace, field, "Choose a NUMA node with memory.", "NUMA node %d has no memory", numa).
			about(finding.OfNUMANodes(numa))
	default:
		return []share{{numa, count}}
	}
	return nil
}

func nodeNumber(n topology.NUMANode) string { return strconv.Itoa(n.ID) }

func (p *planner) placeOnEach(chosen func(topology.NUMANode) bool, count int64) []share {
	var shares []share
	for _, node := range p.nodesWithMemory() {
		if chosen(node) {
			shares = append(shares, share{node.ID, count})
		}
	}
	return shares
}

// checkNICLocal: pages near NICs need NICs whose NUMA node is known and has memory.
func (p *planner) checkNICLocal(field string) bool {
	if len(p.plan.BypassNICs) == 0 {
		p.critical(ruleHugepagePlace, field, "Select the bypass NICs in spec.network.nics, or name a numaNode.",
			"the pages are to be near bypass NICs, but no bypass NIC is selected")
		return false
	}
	for _, nic := range p.plan.BypassNICs {
		if nic.NUMANode == nil {
			p.critical(ruleHugepagePlace, field, "Name a numaNode, or correct the locality in the firmware.",
				"the pages are to be near bypass NIC %s, but the firmware does not say which NUMA node it is on", nic.PCIAddress).
				about(finding.OfNICs(nic.PCIAddress))
			return false
		}
		if node, ok := p.topology.NUMANode(*nic.NUMANode); !ok || !hasMemory(*node) {
			p.critical(ruleHugepagePlace, field, "Name a numaNode with memory.",
				"the pages are to be near bypass NIC %s, but its NUMA node %d has no memory", nic.PCIAddress, *nic.NUMANode).
				about(finding.OfNICs(nic.PCIAddress), finding.OfNUMANodes(*nic.NUMANode))
			return false
		}
	}
	return true
}

func (p *planner) nodesWithMemory() []topology.NUMANode {
	return slices.DeleteFunc(slices.Clone(p.topology.NUMANodes), func(n topology.NUMANode) bool { return !hasMemory(n) })
}

// evenly divides a count as the kernel does when it reserves at boot: round robin over the NUMA nodes with
// memory, so that the first ones get one page more (hugetlb_hstate_alloc_pages in mm/hugetlb.c).
func evenly(nodes []topology.NUMANode, count int64) []share {
	var shares []share
	all := int64(len(nodes))
	for i, node := range nodes {
		part := count / all
		if int64(i) < count%all {
			part++
		}
		if part > 0 {
			shares = append(shares, share{node.ID, part})
		}
	}
	return shares
}

// checkMemory holds the pages of each NUMA node against its memory, less what the kubelet keeps back
// there. The first reservation that does not fit is named, so that the others keep what they asked for.
func (p *planner) checkMemory(reservations []reservation) {
	used, full := map[int]int64{}, map[int]bool{}
	for _, r := range reservations {
		for _, s := range r.shares {
			used[s.numa] += s.count * r.kibibytes
			p.checkNode(r, s, used[s.numa], full)
		}
	}
	for _, reserved := range p.plan.Kubelet.ReservedMemory {
		numa := int(reserved.NUMANode)
		if used[numa] == 0 {
			p.checkReservedOnly(numa)
		}
	}
}

func (p *planner) checkNode(r reservation, s share, used int64, full map[int]bool) {
	node, _ := p.topology.NUMANode(s.numa)
	if full[s.numa] || node == nil {
		return
	}
	asked := gibibytes(s.count * r.kibibytes)
	if node.MemoryBytes == nil {
		full[s.numa] = true
		p.report(v1alpha1.SeverityLow, ruleHugepageMemory, r.field, "Check that the memory suffices.",
			"%s are asked for on NUMA node %d, whose memory the host does not report", asked, s.numa).
			about(finding.OfNUMANodes(s.numa))
		return
	}
	reserved := p.reservedOn(s.numa)
	if used <= (*node.MemoryBytes-reserved)/1024 {
		return
	}
	full[s.numa] = true
	others := gibibytes(used - s.count*r.kibibytes)
	p.critical(ruleHugepageMemory, r.field, r.remedy,
		"%d pages of %s, %s, are asked for on NUMA node %d, which has %s, of which %s go to other hugepages and %s are reserved by the kubelet",
		s.count, r.size, asked, s.numa, gibibytes(*node.MemoryBytes/1024), others, gibibytes(reserved/1024)).
		about(finding.OfNUMANodes(s.numa))
}

// checkReservedOnly: the memory manager does not start with more reserved than a NUMA node has.
func (p *planner) checkReservedOnly(numa int) {
	node, _ := p.topology.NUMANode(numa)
	reserved := p.reservedOn(numa)
	if node == nil || node.MemoryBytes == nil || reserved < *node.MemoryBytes {
		return
	}
	p.critical(ruleReservedMemory, "spec.kubelet.systemReservedMemory", "Reserve less memory.",
		"%s are reserved on NUMA node %d, which has %s", gibibytes(reserved/1024), numa, gibibytes(*node.MemoryBytes/1024)).
		about(finding.OfNUMANodes(numa))
}

// gibibytes writes an amount in KiB for people.
func gibibytes(kibibytes int64) string {
	whole := fmt.Sprintf("%.1f", float64(kibibytes)/kibibytesPerGibibyte)
	return strings.TrimSuffix(whole, ".0") + " GiB"
}

// pool is the hugepages of one size in one place.
type pool struct {
	kibibytes int64
	// numa is unknown where the kernel chooses.
	numa int
}

// methods chooses how the pages are reserved. Pages that the kernel spreads, and all pages of a host with
// memory on one NUMA node, are reserved by kernel arguments, before memory is fragmented. Pages for a
// certain NUMA node are reserved by a unit: the kernel takes hugepages=<node>:<n> since Linux 5.16 only,
// and a distribution's kernel does not show whether it does. A size that has both is reserved by units
// altogether, because a unit sets the number of all pages of that size on its NUMA node.
func (p *planner) methods(reservations []reservation) []HugepagePlan {
	byUnit := map[v1alpha1.HugepageSize]bool{}
	for _, r := range reservations {
		byUnit[r.size] = byUnit[r.size] || !r.spread && len(p.nodesWithMemory()) > 1
	}
	pools := map[pool]HugepagePlan{}
	for _, r := range reservations {
		method, shares := ByKernelArgument, r.shares
		switch {
		case byUnit[r.size]:
			method = ByUnit
		case r.spread:
			shares = []share{{unknown, r.count}}
		}
		for _, s := range shares {
			at := pool{r.kibibytes, s.numa}
			planned := HugepagePlan{Size: r.size, SizeKibibytes: r.kibibytes, Count: pools[at].Count + s.count,
				Method: method, Origin: both(pools[at].Origin, r.origin)}
			if s.numa != unknown {
				planned.NUMANode = &s.numa
			}
			pools[at] = planned
		}
	}
	return inOrder(pools)
}

// both is the origin of a sum.
func both(one, other Origin) Origin {
	switch {
	case one.Detail == "" || one == other:
		return other
	case one.Source != other.Source:
		return Origin{Source: other.Source, Detail: one.Detail + " and " + other.Detail}
	}
	return Origin{Source: one.Source, Detail: one.Detail + " and " + other.Detail}
}

// inOrder lists pools by size and then by NUMA node.
func inOrder(pools map[pool]HugepagePlan) []HugepagePlan {
	places := slices.SortedFunc(maps.Keys(pools), func(a, b pool) int {
		return cmp.Or(cmp.Compare(a.kibibytes, b.kibibytes), cmp.Compare(a.numa, b.numa))
	})
	ordered := make([]HugepagePlan, len(places))
	for i, place := range places {
		ordered[i] = pools[place]
	}
	return ordered
}
