// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"

	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// numaLayoutIsPlanned compares each planned NUMA node with the one of the same number: hugepages, reserved memory and NICs
// are planned by these numbers. A plan that does not tell the layout leaves it at the number of nodes, which was observed.
func (s *state) numaLayoutIsPlanned(observed string) verdict {
	verdicts := make([]verdict, 0, 1+len(s.plan.Verification.NUMANodes))
	verdicts = append(verdicts, passed(observed))
	for _, planned := range s.plan.Verification.NUMANodes {
		verdicts = append(verdicts, s.numaNodeIsPlanned(planned).about(finding.OfNUMANodes(planned.ID)))
	}
	return worst(verdicts...)
}

func (s *state) numaNodeIsPlanned(planned plan.NUMANodePlan) verdict {
	expected := fmt.Sprintf("NUMA node %d: CPUs %s", planned.ID, planned.CPUs)
	return judge(s.onlineCPUs(), expected, func(online cpus.Set) verdict {
		verdicts := []verdict{s.hasItsMemory(planned)}
		for _, node := range s.facts.NUMANodes {
			moved := node.CPUs.Value.Intersection(planned.CPUs).Intersection(online)
			if node.ID != planned.ID && !moved.IsEmpty() {
				verdicts = append(verdicts, failed(fmt.Sprintf("%s %s on NUMA node %d, planned is NUMA node %d", moved.Name(), isOrAre(moved), node.ID, planned.ID),
					fmt.Sprintf("NUMA node %d: CPUs %s", node.ID, node.CPUs.Value), expected).
					about(finding.OfCPUs(moved), finding.OfNUMANodes(node.ID)))
			}
		}
		return worst(verdicts...)
	})
}

// hasItsMemory judges whether a NUMA node that had memory still has some. How much does not matter here: what was to be
// reserved of it is judged by itself.
func (s *state) hasItsMemory(planned plan.NUMANodePlan) verdict {
	for _, node := range s.facts.NUMANodes {
		if node.ID != planned.ID {
			continue
		}
		if memory, ok := node.MemoryTotalBytes.Get(); ok && memory == 0 && !planned.Memoryless {
			return failed(fmt.Sprintf("NUMA node %d has no memory, and had some when the plan was made", node.ID), "0 bytes", "memory")
		}
		return passed(orNone(node.CPUs.Value.String()))
	}
	return notApplicable()
}
