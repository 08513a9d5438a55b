// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// Place is where on a machine a finding is to be shown: a projection of its objects. A finding about the whole machine,
// such as one about a kernel parameter, has no place.
type Place struct {
	CPUs cpus.Set `json:"cpus"`
	// EveryIsolated tells that all isolated CPUs are among CPUs for one reason, such as a kernel argument, so that it
	// would say nothing to mark each. Interrupts and processes disturb one CPU each, which is marked.
	EveryIsolated bool `json:"everyIsolated"`
	// NICs by PCI address.
	NICs []string `json:"nics"`
	// NUMANodes that the finding is about, if it is about no CPU and no NIC.
	NUMANodes []int `json:"numaNodes"`
}

// IsNowhere reports whether the finding is about the whole machine.
func (p Place) IsNowhere() bool {
	return p.CPUs.IsEmpty() && len(p.NICs) == 0 && len(p.NUMANodes) == 0
}

// in reports whether the finding is to be shown at a NUMA node: one of its CPUs or NICs is there, or it names just the node.
func (p Place) in(node *topology.NUMANode, cores []topology.Core, nics []topology.NIC) bool {
	at := slices.ContainsFunc(nics, func(nic topology.NIC) bool { return slices.Contains(p.NICs, nic.PCIAddress) })
	return at || !p.EveryIsolated && p.CPUs.Overlaps(cpusAt(node, cores)) || slices.Contains(p.NUMANodes, node.ID)
}

// longestLabel is the longest list of CPUs or NICs that stands beside a finding; of more, their number does, for they
// are marked anyway.
const longestLabel = 24

// label names what of a NUMA node the finding is about: its CPUs and NICs there, or the node itself.
func (p Place) label(node *topology.NUMANode, cores []topology.Core, nics []topology.NIC) string {
	var labels []string
	switch here := p.CPUs.Intersection(cpusAt(node, cores)); {
	case p.EveryIsolated || here.IsEmpty():
	case here.Len() == 1:
		labels = append(labels, "CPU "+here.String())
	case len(here.String()) > longestLabel:
		labels = append(labels, fmt.Sprintf("%d CPUs", here.Len()))
	default:
		labels = append(labels, "CPUs "+here.String())
	}
	var names []string
	for _, nic := range nics {
		if slices.Contains(p.NICs, nic.PCIAddress) {
			names = append(names, nicName(nic))
		}
	}
	if list := strings.Join(names, ", "); len(list) <= longestLabel {
		labels = append(labels, names...)
	} else {
		labels = append(labels, fmt.Sprintf("%d NICs", len(names)))
	}
	if len(labels) == 0 {
		return "NUMA node " + strconv.Itoa(node.ID)
	}
	return strings.Join(labels, ", ")
}

// cpusAt are the CPUs of a NUMA node with those that are off.
func cpusAt(node *topology.NUMANode, cores []topology.Core) cpus.Set {
	all := node.CPUs
	for _, core := range cores {
		all = all.Union(core.CPUs)
	}
	return all
}

// documentation is the place of a check in the documentation, where each has its identifier as an anchor.
func documentation(check v1alpha1.CheckID) string {
	const page = "https://github.com/lowlatency-dev/lowlatency-operator/blob/main/docs/checks.md#"
	return page + string(check)
}

// placeOf is where the objects of a finding are, as far as the machine has them. What is unknown is so nowhere in
// particular, and what was waived is to be shown nowhere.
func placeOf(f finding.Finding, t *topology.Topology, isolated cpus.Set) Place {
	place := Place{NICs: []string{}, NUMANodes: []int{}}
	if f.Outcome != v1alpha1.OutcomeFailed {
		return place
	}
	place.CPUs = f.Objects.CPUs.Intersection(t.Online.Union(t.Offline))
	counts := f.Objects.Counts()
	place.EveryIsolated = !isolated.IsEmpty() && isolated.IsSubsetOf(place.CPUs) && counts.Interrupts == 0 && counts.Processes == 0
	for _, nic := range t.NICs {
		if slices.Contains(f.Objects.NICs, nic.PCIAddress) {
			place.NICs = append(place.NICs, nic.PCIAddress)
		}
	}
	if !place.IsNowhere() {
		return place
	}
	for _, id := range f.Objects.NUMANodes {
		if _, exists := t.NUMANode(int(id)); exists {
			place.NUMANodes = append(place.NUMANodes, int(id))
		}
	}
	return place
}
