// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
)

// podChecks ask what the kubelet gave to the containers that hold bypass NICs.
func podChecks() []Check {
	return []Check{
		{
			ID: "numa.pods", Severity: v1alpha1.SeverityCritical, Impact: ImpactPlacement, Conditions: []string{v1alpha1.ConditionNUMAAligned},
			Title:   "Every container that holds a bypass NIC has its CPUs, memory and NIC on one NUMA node",
			Applies: "a BypassNICPool selects the node",
			Why:     "Each packet that crosses the link between sockets costs some hundred nanoseconds, and the pod runs all the same.",
			Reads:   []string{"/var/lib/kubelet/pod-resources/kubelet.sock"},
			Fix:     "Start the pod again with whole CPUs and limits equal to requests; topologyManagerPolicy single-numa-node then refuses what cannot be aligned.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kubernetes: pkg/kubelet/apis/podresources, pkg/kubelet/cm/topologymanager",
			run:     holdersAreAligned,
		},
	}
}

// holdersAreAligned judges every container once, however many NICs it holds: it has one alignment.
func holdersAreAligned(s *state) verdict {
	if s.holders == nil {
		return notApplicable()
	}
	const expected = "CPUs, memory and NIC on one NUMA node"
	return judge(*s.holders, expected, func(holders []allocation.Holder) verdict {
		if len(holders) == 0 {
			return passed("no container holds a NIC of a BypassNICPool")
		}
		verdicts := make([]verdict, 0, len(holders))
		for _, holder := range holders {
			verdicts = append(verdicts, s.holderIsAligned(holder, expected))
		}
		return worst(verdicts...)
	})
}

func (s *state) holderIsAligned(holder allocation.Holder, expected string) verdict {
	name, held := holder.Container.String(), s.heldBy(holder)
	switch holder.Alignment {
	case v1alpha1.AlignmentAligned:
		return passed(name + " on one NUMA node")
	case v1alpha1.AlignmentSplit:
		return failed(fmt.Sprintf("%s is spread over NUMA nodes: %s", name, holder.Message), holder.Message, expected).about(held)
	default:
		return verdict{
			outcome:  v1alpha1.OutcomeUnknown,
			message:  fmt.Sprintf("%s cannot be proven to be on one NUMA node: %s", name, holder.Message),
			expected: expected,
		}.about(held)
	}
}

// heldBy are the container, its CPUs, the NIC, and the NUMA nodes of all that it has.
func (s *state) heldBy(holder allocation.Holder) finding.Objects {
	var nodes []int
	for _, node := range s.facts.NUMANodes {
		if node.CPUs.Value.Overlaps(holder.Container.CPUs) {
			nodes = append(nodes, node.ID)
		}
	}
	if nic, ok := s.nic(holder.PCIAddress); ok && nic.NUMANode.Known {
		nodes = append(nodes, nic.NUMANode.Value)
	}
	for _, block := range holder.Container.Memory {
		nodes = append(nodes, block.NUMANodes...)
	}
	return finding.Union(finding.OfNUMANodes(nodes...), finding.Objects{
		CPUs: holder.Container.CPUs, NICs: []string{holder.PCIAddress}, Containers: []string{holder.Container.Path()},
	})
}
