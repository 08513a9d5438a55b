// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"cmp"
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// devicesField is the field that selects NICs.
const devicesField = "spec.network.devices"

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

// selectedNICs are the NICs that spec.network.devices selects. One profile may serve nodes with different
// NICs, so a selector without a match matters little as long as another one has some.
func (p *planner) selectedNICs() []topology.NIC {
	selectors := p.spec.Network.Devices
	all := p.topology.MatchNICs(selectors)
	severity := v1alpha1.SeverityLow
	if len(all) == 0 {
		severity = v1alpha1.SeverityMedium
	}
	for i, selector := range selectors {
		if len(p.topology.MatchNICs([]v1alpha1.NICSelector{selector})) == 0 {
			p.report(severity, ruleNICSelection, element(devicesField, i),
				"Correct the selector, or exclude the node by spec.nodeSelector.",
				"%q matches none of the host's %d NICs", describeSelector(selector), len(p.topology.PhysicalNICs()))
		}
	}
	return all
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
	field := devicesField
	for _, pool := range p.pools {
		if hasNIC(pool.NICs, nic.PCIAddress) {
			field = poolField(pool.Name, "spec.nics")
		}
	}
	p.report(v1alpha1.SeverityHigh, ruleNICLocality, field,
		"Set the NUMA locality of the slot in the firmware, or move the NIC to another slot.",
		"the firmware does not say which NUMA node NIC %s (%s) is on, and the host has %d of them",
		nic.PCIAddress, cmp.Or(nic.Name, "no interface"), len(p.topology.NUMANodes))
	return 0, false
}

// planNetwork decides queues and packet steering.
func (p *planner) planNetwork() {
	n := p.spec.Network
	p.plan.Network = NetworkPlan{
		Devices:  canonicalSelectors(n.Devices),
		Steering: n.ReceivePacketSteering,
		Origin:   p.origin("spec.network.queues"),
	}
	if n.Queues == v1alpha1.QueuesHousekeepingCPUs {
		p.plan.Network.Queues = p.plan.CPUs.Housekeeping.Len()
	}
}

// canonicalSelectors sorts selectors: which of them selects a NIC makes no difference.
func canonicalSelectors(selectors []v1alpha1.NICSelector) []v1alpha1.NICSelector {
	sorted := slices.Clone(selectors)
	slices.SortStableFunc(sorted, func(a, b v1alpha1.NICSelector) int {
		return cmp.Or(
			cmp.Compare(a.InterfaceName, b.InterfaceName),
			cmp.Compare(a.VendorID, b.VendorID),
			cmp.Compare(a.DeviceID, b.DeviceID),
			cmp.Compare(a.Driver, b.Driver),
			cmp.Compare(a.PCIAddress, b.PCIAddress),
		)
	})
	return slices.Compact(sorted)
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
	}
	if v.Repair == v1alpha1.RepairRuntime {
		p.plan.Verification.Repair = v.Repair
	}
}
