// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

const (
	settingWorkqueue = "/sys/devices/virtual/workqueue/cpumask"
	settingWriteback = "/sys/bus/workqueue/devices/writeback/cpumask"
)

// workqueueChecks ask where the kernel's own deferred work runs.
func workqueueChecks() []Check {
	deJittered := []string{v1alpha1.ConditionDeJittered}
	return []Check{
		{
			ID: "workqueue.unbound", Severity: v1alpha1.SeverityHigh, Impact: ImpactWork, Conditions: deJittered,
			Title:  "Unbound kernel work stays off isolated CPUs",
			Why:    "Work items of the kernel run on any CPU of this mask, for microseconds to milliseconds.",
			Reads:  []string{settingWorkqueue},
			Fix:    "Write the mask of the housekeeping CPUs to " + settingWorkqueue + ".",
			Reboot: v1alpha1.RebootNotRequired,
			Source: "kernel: Documentation/core-api/workqueue.rst (Affinity Scopes); TuneD cpu-partitioning",
			owns:   []string{settingWorkqueue},
			run:    func(s *state) verdict { return s.maskIsOffIsolated(settingWorkqueue) },
		},
		{
			ID: "workqueue.writeback", Severity: v1alpha1.SeverityMedium, Impact: ImpactWork, Conditions: deJittered,
			Title:  "Writing dirty pages back stays off isolated CPUs",
			Why:    "Flushing files takes milliseconds of a CPU.",
			Reads:  []string{settingWriteback},
			Fix:    "Write the mask of the housekeeping CPUs to " + settingWriteback + ".",
			Reboot: v1alpha1.RebootNotRequired,
			Source: "kernel: Documentation/core-api/workqueue.rst; TuneD cpu-partitioning",
			owns:   []string{settingWriteback, "/sys/devices/virtual/workqueue/writeback/cpumask"},
			run:    func(s *state) verdict { return s.maskIsOffIsolated(settingWriteback) },
		},
	}
}

// maskIsOffIsolated judges a CPU mask. A queue whose own mask holds isolated CPUs is still kept off them
// by the global mask, so it fails only if that one holds them, too.
func (s *state) maskIsOffIsolated(path string) verdict {
	expected := "within " + s.plan.CPUs.Housekeeping.String()
	return judge(s.maskSetting(path), expected, func(found cpus.Set) verdict {
		if global, ok := s.maskSetting(settingWorkqueue).Get(); ok {
			found = found.Intersection(global)
		}
		return offCPUs(path, found, s.plan.CPUs.Isolated, s.plan.CPUs.Housekeeping).about(finding.OfFiles(path))
	})
}
