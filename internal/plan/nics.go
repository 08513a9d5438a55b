// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// nicsField is the field that selects NICs.
const nicsField = "spec.network.nics"

// planNICs finds the bypass NICs and the NUMA nodes that hold them.
func (p *planner) planNICs() {
	for _, nic := range p.bypassNICs() {
		node, ok := p.localityOf(nic)
		planned := NICPlan{PCIAddress: nic.PCIAddress, Vendor: nic.Vendor, Device: nic.Device}
		if ok {
			planned.NUMANode = &node
			p.near[node] = true
		}
		p.plan.BypassNICs = append(p.plan.BypassNICs, planned)
	}
}

// bypassNICs are the selected NICs and those that pools claim, each once, in order of PCI address.
func (p *planner) bypassNICs() []topology.NIC {
	nics := append(slices.Clone(p.input.BypassNICs), p.selectedNICs()...)
	for _, pool := range p.pools {
		nics = append(nics, pool.NICs...)
	}
	slices.SortStableFunc(nics, func(a, b topology.NIC) int { return cmp.Compare(a.PCIAddress, b.PCIAddress) })
	return slices.CompactFunc(nics, func(a, b topology.NIC) bool { return a.PCIAddress == b.PCIAddress })
}

// selectedNICs are the NICs that spec.network.nics selects. One profile may serve nodes with different
// NICs, so a selector without a match matters little as long as another one has some.
func (p *planner) selectedNICs() []topology.NIC {
	selectors := p.spec.Network.NICs
	all := topology.SelectNICs(selectors, p.topology.NICs)
	severity := v1alpha1.SeverityLow
	if len(all) == 0 {
		severity = v1alpha1.SeverityMedium
	}
	for i, selector := range selectors {
		if len(topology.SelectNICs([]v1alpha1.NICSelector{selector}, p.topology.NICs)) == 0 {
			p.report(severity, ruleNICSelection, element(nicsField, i),
				"Correct the selector, or exclude the node by spec.nodeSelector.",
				"%q matches none of the host's %s", describeSelector(selector), p.physicalNICs())
		}
	}
	return all
}

// physicalNICs counts the NICs of the host and names their kinds, for whoever corrects a selector.
func (p *planner) physicalNICs() string {
	physical := p.topology.PhysicalNICs()
	counted := fmt.Sprintf("%d NICs", len(physical))
	if len(physical) == 0 {
		return counted
	}
	return counted + ", which are " + topology.DescribeNICKinds(topology.NICKinds(physical))
}

// localityOf is the NUMA node of a NIC. On a host with one NUMA node it is that one whatever the firmware
// says; elsewhere an unknown one (numa_node is -1) stays unknown.
func (p *planner) localityOf(nic topology.NIC) (int, bool) {
	switch {
	case nic.NUMANode != nil:
		return *nic.NUMANode, true
	case len(p.topology.NUMANodes) == 1:
		return p.topology.NUMANodes[0].ID, true
	}
	field := nicsField
	for _, pool := range p.pools {
		if hasNIC(pool.NICs, nic.PCIAddress) {
			field = poolField(pool.Name, "spec.nics")
		}
	}
	p.report(v1alpha1.SeverityHigh, ruleNICLocality, field,
		"Set the NUMA locality of the slot in the firmware, or move the NIC to another slot.",
		"the firmware does not say which NUMA node NIC %s (%s) is on, and the host has %d of them",
		nic.PCIAddress, cmp.Or(nic.Name, "no interface"), len(p.topology.NUMANodes)).
		about(finding.OfNICs(nic.PCIAddress))
	return 0, false
}

// planNetwork decides queues and packet steering.
func (p *planner) planNetwork() {
	n := p.spec.Network
	p.plan.Network = NetworkPlan{
		NICs:     canonicalSelectors(n.NICs, p.topology.NICs),
		Steering: n.ReceivePacketSteering,
		Origin:   p.origin("spec.network.queues"),
	}
	selectsNone := len(n.NICs) > 0 && len(p.plan.Network.NICs) == 0
	if n.Queues == v1alpha1.QueuesHousekeepingCPUs && !selectsNone {
		p.plan.Network.Queues = p.plan.CPUs.Housekeeping.Len()
	}
}

// canonicalSelectors writes equal selections alike: which selector selects a NIC, and in which order a selector lists
// what it takes, makes no difference. What no rule of udev can ask for, a NUMA node or a virtual function of any
// address, becomes the addresses that the node has there; a selector that then selects nothing is left out.
func canonicalSelectors(selectors []v1alpha1.NICSelector, nics []topology.NIC) []v1alpha1.NICSelector {
	var canonical []v1alpha1.NICSelector
	for i := range selectors {
		s := canonicalSelector(&selectors[i])
		if len(s.NUMANodes) > 0 || s.Role != "" && len(s.PCIAddresses) == 0 {
			s = v1alpha1.NICSelector{PCIAddresses: addressesOf(topology.SelectNICs([]v1alpha1.NICSelector{s}, nics)), Role: s.Role}
		}
		if topology.NamesNICs(&s) {
			canonical = append(canonical, s)
		}
	}
	slices.SortStableFunc(canonical, compareSelectors)
	return slices.CompactFunc(canonical, func(a, b v1alpha1.NICSelector) bool { return reflect.DeepEqual(a, b) })
}

// canonicalSelector sorts the lists of a selector, and leaves out what it says by default.
func canonicalSelector(s *v1alpha1.NICSelector) v1alpha1.NICSelector {
	canonical := v1alpha1.NICSelector{
		Vendor: s.Vendor, Devices: sortedList(s.Devices), Drivers: sortedList(s.Drivers), Interfaces: sortedList(s.Interfaces),
		PCIAddresses: sortedList(s.PCIAddresses), NUMANodes: sortedList(s.NUMANodes),
	}
	if s.Role == v1alpha1.RoleVirtualFunction {
		canonical.Role = s.Role
	}
	return canonical
}

func compareSelectors(a, b v1alpha1.NICSelector) int {
	return cmp.Or(
		slices.Compare(a.Interfaces, b.Interfaces),
		cmp.Compare(a.Vendor, b.Vendor),
		slices.Compare(a.Devices, b.Devices),
		slices.Compare(a.Drivers, b.Drivers),
		slices.Compare(a.PCIAddresses, b.PCIAddresses),
		cmp.Compare(a.Role, b.Role),
	)
}

func sortedList[T cmp.Ordered](list []T) []T {
	sorted := slices.Clone(list)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}

func addressesOf(nics []topology.NIC) []v1alpha1.PCIAddress {
	addresses := make([]v1alpha1.PCIAddress, 0, len(nics))
	for _, nic := range nics {
		addresses = append(addresses, v1alpha1.PCIAddress(nic.PCIAddress))
	}
	return addresses
}

// planVerification passes on what the agent needs besides the rest.
func (p *planner) planVerification() {
	v := p.spec.Verification
	waived := slices.Clone(v.WaivedChecks)
	slices.SortFunc(waived, func(a, b v1alpha1.WaivedCheck) int { return cmp.Compare(a.Check, b.Check) })
	p.plan.Verification = VerificationPlan{
		Gate:              v.Gate,
		Waived:            waived,
		MultipleNUMANodes: len(p.machine.numaNodes()) > 1,
		NUMANodes:         p.numaLayout(),
	}
	if v.Repair == v1alpha1.RepairRuntime {
		p.plan.Verification.Repair = v.Repair
	}
	if v.FailOn != v1alpha1.FailOnImpact {
		p.plan.Verification.FailOn = v.FailOn
	}
}

// numaLayout are the NUMA nodes of a machine that has several with CPUs. CPUs whose NUMA node is not told are left out.
func (p *planner) numaLayout() []NUMANodePlan {
	groups := byNUMANode(p.machine.cores)
	if len(groups) < 2 {
		return nil
	}
	layout := make([]NUMANodePlan, 0, len(groups))
	for _, node := range p.topology.NUMANodes {
		if cores := groups[node.ID]; len(cores) > 0 {
			layout = append(layout, NUMANodePlan{
				ID: node.ID, CPUs: cpusOf(cores), Memoryless: node.MemoryBytes != nil && *node.MemoryBytes == 0,
			})
		}
	}
	return layout
}
