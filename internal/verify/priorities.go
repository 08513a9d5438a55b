// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// priorityChecks ask whether the kernel's own threads of each CPU come before programs that never sleep.
func priorityChecks() []Check {
	return []Check{{
		ID: "cpu.thread-priorities", Severity: v1alpha1.SeverityHigh, Impact: ImpactSpeed, Conditions: []string{v1alpha1.ConditionDeJittered},
		Title:   "The kernel's softirq, timer and RCU threads have the planned real-time priority on every CPU",
		Applies: "the kernel is real-time, or real-time throttling is off",
		Why: "A real-time program that never sleeps keeps threads of lower priority from running on its CPU for ever: its timers and packets wait, " +
			"and every CPU waits for the RCU callbacks that are held back, until the kernel reports stalls.",
		Reads:  []string{"/proc/*/stat (rt_priority, policy of ksoftirqd/*, ktimers/*, rcuc/*)"},
		Fix:    "Let TuneD apply its profile again (restart tuned.service, or the node's tuned pod), which sets them; what has them lower is often a second profile of TuneD, a script with chrt, or a CPU that first came online after TuneD had run.",
		Reboot: v1alpha1.RebootNotRequired,
		Source: "kernel: Documentation/filesystems/proc.rst (rt_priority, policy), kernel/softirq.c, kernel/rcu/tree.c; sched(7)",
		run:    (*state).threadsHavePriority,
	}}
}

// threadsHavePriority judges the threads that there are: which of them the kernel has depends on how it was built.
func (s *state) threadsHavePriority() verdict {
	if len(s.plan.KernelThreads) == 0 {
		return notApplicable()
	}
	wanted := make([]string, 0, len(s.plan.KernelThreads))
	for _, thread := range s.plan.KernelThreads {
		wanted = append(wanted, fmt.Sprintf("%s %d", thread.Name, thread.Priority))
	}
	expected := strings.Join(wanted, ", ")
	return judge(s.facts.CPUThreads, expected, func(threads []host.CPUThread) verdict {
		verdicts := make([]verdict, 0, len(s.plan.KernelThreads))
		for _, planned := range s.plan.KernelThreads {
			verdicts = append(verdicts, s.threadsOfName(planned, threads)...)
		}
		if len(verdicts) == 0 {
			return unsaid(s.facts.CPUThreads.Source, "none of the threads is to be seen", expected)
		}
		return worst(verdicts...)
	})
}

// threadsOfName judges the threads of one name, those with the same priority together. Threads of CPUs that are offline are
// parked, and nothing waits for them.
func (s *state) threadsOfName(planned plan.KernelThreadPlan, threads []host.CPUThread) []verdict {
	expected := fmt.Sprintf("%s %d", planned.Name, planned.Priority)
	var verdicts []verdict
	lower := map[int]cpus.Set{}
	online, told := s.facts.CPUs.Online.Get()
	for _, thread := range threads {
		if thread.Name != planned.Name || told && !online.Contains(thread.CPU) {
			continue
		}
		verdicts = append(verdicts, judge(thread.Scheduling, expected, func(scheduling host.Scheduling) verdict {
			if scheduling.Policy != host.PolicyDeadline && scheduling.Priority < planned.Priority {
				lower[scheduling.Priority] = lower[scheduling.Priority].Union(cpus.Of(thread.CPU))
			}
			return passed(expected)
		}).about(finding.Objects{CPUs: cpus.Of(thread.CPU)}))
	}
	for _, priority := range slices.Sorted(maps.Keys(lower)) {
		verdicts = append(verdicts, failed(
			fmt.Sprintf("kernel thread %s of %s has %s, not %d", planned.Name, lower[priority].Name(), realTimePriority(priority), planned.Priority),
			fmt.Sprintf("%s %d", planned.Name, priority), expected).about(finding.Objects{CPUs: lower[priority]}))
	}
	return verdicts
}

func realTimePriority(priority int) string {
	if priority == 0 {
		return "no real-time priority"
	}
	return fmt.Sprintf("real-time priority %d", priority)
}
