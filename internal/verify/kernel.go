// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// kernelChecks ask whether the running kernel is the planned one with the planned settings.
func kernelChecks() []Check {
	applied, deJittered := []string{v1alpha1.ConditionApplied}, []string{v1alpha1.ConditionDeJittered}
	return []Check{
		{
			ID: "kernel.command-line", Severity: v1alpha1.SeverityCritical, Impact: ImpactPlan, Conditions: applied,
			Title:  "The running kernel was booted with every planned argument",
			Why:    "An argument that is missing is a setting that is not in force, whatever the configuration says.",
			Reads:  []string{"/proc/cmdline"},
			Fix:    "Reboot the node into the planned boot configuration; if the arguments are still missing, look at what brings them to the node, on OpenShift its machine config pool.",
			Reboot: v1alpha1.RebootRequired,
			Source: "kernel: Documentation/admin-guide/kernel-parameters.rst",
			run:    commandLineIsPlanned,
		},
		{
			ID: "kernel.type", Severity: v1alpha1.SeverityCritical, Impact: ImpactPlan, Conditions: applied,
			Title:  "The running kernel is of the planned flavour",
			Why:    "Without PREEMPT_RT, interrupt handlers and spin locks delay real-time tasks; with it, throughput is lower.",
			Reads:  []string{"/sys/kernel/realtime", "/proc/version"},
			Fix:    "Install the planned kernel and reboot the node; on OpenShift, see why its machine config pool does not (kernelType of the rendered MachineConfig).",
			Reboot: v1alpha1.RebootRequired,
			Source: "kernel: Documentation/core-api/real-time",
			run: func(s *state) verdict {
				want := s.plan.Kernel.Type
				return judge(s.facts.Kernel.RealTime, string(want), func(realTime bool) verdict {
					found := v1alpha1.KernelDefault
					if realTime {
						found = v1alpha1.KernelRealTime
					}
					if found == want {
						return passed(string(found))
					}
					return failed(fmt.Sprintf("the running kernel is of type %s, not %s", found, want), string(found), string(want))
				})
			},
		},
		{
			ID: "kernel.page-size", Severity: v1alpha1.SeverityCritical, Impact: ImpactPlan, Conditions: applied,
			Title:   "The running kernel has the planned base page size",
			Applies: "arm64",
			Why:     "Hugepage sizes follow from the base page: the reserved sizes do not exist on the other kernel.",
			Reads:   []string{"/proc/self/smaps (KernelPageSize)"},
			Fix:     "Install the planned kernel and reboot the node; on OpenShift, see why its machine config pool does not (kernelType of the rendered MachineConfig).",
			Reboot:  v1alpha1.RebootRequired,
			Source:  "kernel: Documentation/arch/arm64/memory.rst",
			run:     pageSizeIsPlanned,
		},
		{
			ID: "kernel.sysctls", Severity: v1alpha1.SeverityHigh, Impact: ImpactWork, Conditions: deJittered,
			Title:   "Planned kernel parameters that no other check judges have their planned values",
			Applies: "the plan sets such kernel parameters",
			Why:     "The parameters are part of the plan; something else on the node may have set them back. What that costs is not known, so it counts as a disturbance.",
			Reads:   []string{"/proc/sys/**"},
			Fix:     "Find what sets the parameter (sysctl.d, another TuneD profile) and remove it, or change spec.system.kernelParameters.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/admin-guide/sysctl",
			run:     otherSysctlsArePlanned,
		},
		{
			ID: "kernel.sysfs", Severity: v1alpha1.SeverityHigh, Impact: ImpactWork, Conditions: deJittered,
			Title:   "Planned files below /sys that no other check judges have their planned values",
			Applies: "the plan sets such files",
			Why:     "The files are part of the plan; something else on the node may have set them back. What that costs is not known, so it counts as a disturbance.",
			Reads:   []string{"/sys/**"},
			Fix:     "Find what writes the file (udev rule, another TuneD profile) and remove it.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/ABI",
			run:     otherSysfsFilesArePlanned,
		},
	}
}

// pageSizeIsPlanned applies to arm64 only: amd64 has one base page size.
func pageSizeIsPlanned(s *state) verdict {
	if s.plan.Architecture != "arm64" {
		return notApplicable()
	}
	want := map[v1alpha1.PageSize]int64{v1alpha1.PageSize4Ki: 4096, v1alpha1.PageSize64Ki: 65536}[s.plan.Kernel.PageSize]
	if want == 0 {
		return notApplicable()
	}
	expected := fmt.Sprintf("%d bytes", want)
	return judge(s.facts.Kernel.PageSizeBytes, expected, func(found int64) verdict {
		observed := fmt.Sprintf("%d bytes", found)
		if found == want {
			return passed(observed)
		}
		return failed(fmt.Sprintf("the running kernel has pages of %s, not %s", observed, expected), observed, expected)
	})
}
