// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// platformPodChecks ask where the platform's own pods run, in a cluster that tells them from others.
func platformPodChecks() []Check {
	return []Check{
		{
			ID: "pod.platform-cpus", Severity: v1alpha1.SeverityHigh, Impact: ImpactWork,
			Conditions: []string{v1alpha1.ConditionApplied, v1alpha1.ConditionDeJittered},
			Title:      "The container runtime keeps the pods of the platform on housekeeping CPUs",
			Applies:    "the cluster was installed with CPU partitioning (cpuPartitioningMode AllNodes)",
			Why:        "In such a cluster CRI-O, and not the kubelet, says where these pods run: on all CPUs, if its files name none.",
			Reads:      []string{host.RuntimeFolder + "/* ([crio.runtime.workloads.management])"},
			Fix: "Remove what overrides the planned file: a MachineConfig of your own, or a PerformanceProfile that selects the node too. " +
				"CRI-O reads its files when it starts.",
			Reboot: v1alpha1.RebootRequired,
			Source: "cri-o: docs/crio.conf.5.md (crio.runtime.workloads); openshift/cluster-node-tuning-operator: BootstrapWorkloadPinningMC",
			run:    platformPodsKeepOff,
		},
		{
			ID: "kubelet.platform-pods", Severity: v1alpha1.SeverityMedium, Impact: ImpactPlan, Conditions: []string{v1alpha1.ConditionApplied},
			Title:   "The kubelet tells the pods of the platform from others",
			Applies: "the cluster was installed with CPU partitioning (cpuPartitioningMode AllNodes), and who checks sees the file: the agent does not",
			Why: "Without the file the kubelet does not offer the resource management.workload.openshift.io/cores when the node joins, which these pods ask for in place of CPUs: " +
				"they are not scheduled here, and static pods take CPUs from the pods of users.",
			Reads: []string{host.PlatformPodsFile + " (whether it is there)"},
			Fix: "Bring the file back: the MachineConfig of the plan has it, and that of the installation. The kubelet looks for it when it starts. The agent does not see it, " +
				"because secrets are beside it: \"kubectl lowlatency check\" on the node or on a snapshot of it does.",
			Reboot: v1alpha1.RebootNotRequired,
			Source: "openshift/kubernetes: pkg/kubelet/managed; openshift/enhancements: workload-partitioning/wide-availability-workload-partitioning.md",
			run:    kubeletKnowsPlatformPods,
		},
	}
}

// platformPodsKeepOff judges what the file says that counts. Fewer CPUs than the plan gives keep off isolated ones as well.
func platformPodsKeepOff(s *state) verdict {
	wanted := s.plan.ManagementCPUs()
	if wanted.IsEmpty() {
		return notApplicable()
	}
	found := parseSetting(s.facts.ManagementCPUs, cpus.Parse)
	return judge(found, "within "+wanted.String(), func(set cpus.Set) verdict {
		about := finding.OfFiles(found.Source)
		if set.IsEmpty() {
			return failed("CRI-O gives the pods of the platform no CPUs of their own: they run on every CPU", "no CPUs in "+found.Source, "within "+wanted.String()).
				about(finding.Objects{CPUs: s.plan.CPUs.Isolated}, about)
		}
		if beyond := set.Difference(wanted); !beyond.IsEmpty() {
			return failed(fmt.Sprintf("CRI-O lets the pods of the platform run on %s, by %s", beyond.Name(), found.Source), set.String(), "within "+wanted.String()).
				about(finding.Objects{CPUs: beyond}, about)
		}
		return passed(set.String())
	})
}

// kubeletKnowsPlatformPods asks whether the file is there. What it says is of no account to the kubelet. An agent sees it on no
// node: if that made it Unknown, no partitioned node could ever be proven.
func kubeletKnowsPlatformPods(s *state) verdict {
	if s.plan.ManagementCPUs().IsEmpty() || !s.facts.PlatformPods.Known && s.facts.PlatformPods.Reason == host.ReasonNotMounted {
		return notApplicable()
	}
	const expected = "present"
	return judge(s.facts.PlatformPods, expected, func(isThere bool) verdict {
		if isThere {
			return passed(expected)
		}
		return failed(host.PlatformPodsFile+" is missing: the kubelet does not tell the pods of the platform from others", "missing", expected).
			about(finding.OfFiles(host.PlatformPodsFile))
	})
}
