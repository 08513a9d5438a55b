// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cmdline"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/setting"
)

const (
	settingSoftWatchdog  = "/proc/sys/kernel/soft_watchdog"
	settingWatchdog      = "/proc/sys/kernel/watchdog"
	settingWatchdogCPUs  = "/proc/sys/kernel/watchdog_cpumask"
	settingNMIWatchdog   = "/proc/sys/kernel/nmi_watchdog"
	settingIgnoreCE      = "/sys/devices/system/machinecheck/machinecheck0/ignore_ce"
	settingCheckInterval = "/sys/devices/system/machinecheck/machinecheck0/check_interval"
)

// backgroundChecks ask whether the kernel's periodic activities are as planned.
func backgroundChecks() []Check {
	deJittered := []string{v1alpha1.ConditionDeJittered}
	return []Check{
		{
			ID: "kernel.nmi-watchdog", Severity: v1alpha1.SeverityHigh, Impact: ImpactWork, Conditions: deJittered,
			Title:   "The hard-lockup watchdog is off",
			Applies: "spec.kernel.watchdogs is Disabled",
			Why:     "It interrupts every CPU with a non-maskable interrupt about every ten seconds and occupies a performance counter.",
			Reads:   []string{settingNMIWatchdog},
			Fix:     "Boot with nmi_watchdog=0, or set kernel.nmi_watchdog to 0.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/admin-guide/lockup-watchdogs.rst",
			owns:    []string{settingNMIWatchdog},
			run: func(s *state) verdict {
				if !s.planned.Contains("nmi_watchdog=0") && !s.plansSysctl("kernel.nmi_watchdog", "0") {
					return notApplicable()
				}
				return s.settingIs(settingNMIWatchdog, "0")
			},
		},
		{
			ID: "kernel.soft-watchdog", Severity: v1alpha1.SeverityHigh, Impact: ImpactWork, Conditions: deJittered,
			Title:   "The soft-lockup watchdog does not run on isolated CPUs",
			Applies: "spec.kernel.watchdogs is Disabled",
			Why:     "It wakes a thread of the highest priority on every CPU every four seconds.",
			Reads:   []string{settingSoftWatchdog, settingWatchdog, settingWatchdogCPUs},
			Fix:     "Boot with nosoftlockup, or set kernel.soft_watchdog to 0.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/admin-guide/lockup-watchdogs.rst",
			owns:    []string{settingSoftWatchdog, settingWatchdog, settingWatchdogCPUs},
			run:     softWatchdogIsOff,
		},
		{
			ID: "kernel.machine-checks", Severity: v1alpha1.SeverityHigh, Impact: ImpactWork, Conditions: deJittered,
			Title:   "No CPU polls for corrected machine checks",
			Applies: "amd64, spec.kernel.machineChecks is CorrectedErrorsIgnored or Off",
			Why:     "Every CPU is interrupted every five minutes to read its machine-check banks.",
			Reads:   []string{settingIgnoreCE, settingCheckInterval, "/proc/cmdline (mce)"},
			Fix:     "Write 1 to /sys/devices/system/machinecheck/machinecheck0/ignore_ce, which counts for all CPUs, and see why the planned mce= argument is not in force.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/arch/x86/x86_64/machinecheck.rst",
			owns:    []string{"/sys/devices/system/machinecheck/machinecheck*/ignore_ce", "/sys/devices/system/machinecheck/machinecheck*/check_interval"},
			run:     machineChecksAreQuiet,
		},
		{
			ID: "kernel.rt-throttling", Severity: v1alpha1.SeverityMedium, Impact: ImpactSpeed, Conditions: deJittered,
			Title:   "Real-time tasks are throttled as planned",
			Applies: "the plan sets kernel.sched_rt_runtime_us",
			Why:     "With throttling, a spinning real-time task is stopped for 50 ms of every second.",
			Reads:   []string{"/proc/sys/kernel/sched_rt_runtime_us"},
			Fix:     "Set kernel.sched_rt_runtime_us to the planned value.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/scheduler/sched-rt-group.rst",
			owns:    []string{"/proc/sys/kernel/sched_rt_runtime_us"},
			run:     plannedSysctl("kernel.sched_rt_runtime_us"),
		},
		{
			ID: "kernel.timer-migration", Severity: v1alpha1.SeverityMedium, Impact: ImpactWork, Conditions: deJittered,
			Title:   "Timers migrate between CPUs as planned",
			Applies: "the plan sets kernel.timer_migration",
			Why:     "Timers that stay where they were armed expire on isolated CPUs; timers that move delay real-time tasks that wait for them.",
			Reads:   []string{"/proc/sys/kernel/timer_migration"},
			Fix:     "Set kernel.timer_migration to the planned value.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: kernel/time/timer_migration.c; OpenShift sets 1, TuneD network-latency 0",
			owns:    []string{"/proc/sys/kernel/timer_migration"},
			run:     plannedSysctl("kernel.timer_migration"),
		},
	}
}

// plansSysctl reports whether the plan sets a kernel parameter to the value.
func (s *state) plansSysctl(name, value string) bool {
	planned, ok := s.sysctl(name)
	return ok && setting.Same(host.SysctlPath(name), planned, value)
}

// softWatchdogIsOff accepts a watchdog that is off, and one that is kept to housekeeping CPUs.
func softWatchdogIsOff(s *state) verdict {
	if _, planned := s.planned.Get("nosoftlockup"); !planned && !s.plansSysctl("kernel.soft_watchdog", "0") &&
		!s.plansSysctl("kernel.watchdog", "0") {
		return notApplicable()
	}
	for _, path := range []string{settingSoftWatchdog, settingWatchdog} {
		if value, ok := s.facts.Setting(path).Get(); ok && value == "0" {
			return passed(path + " is 0")
		}
	}
	if running, ok := s.cpuListSetting(settingWatchdogCPUs).Get(); ok && !running.Overlaps(s.plan.CPUs.Isolated) {
		return passed(settingWatchdogCPUs + " is " + running.String())
	}
	if s.facts.Setting(settingSoftWatchdog).Missing {
		return withoutSetting(settingSoftWatchdog, "0")
	}
	return judge(s.facts.Setting(settingSoftWatchdog), "0", func(found string) verdict {
		return failed(fmt.Sprintf("%s is %s, and the watchdog runs on isolated CPUs", settingSoftWatchdog, found), found, "0").
			about(finding.OfFiles(settingSoftWatchdog))
	})
}

// machineChecksAreQuiet accepts each of the ways to stop the polling. With mce=off the kernel has no
// machine-check files.
func machineChecksAreQuiet(s *state) verdict {
	if !s.pollingIsStopped() {
		return notApplicable()
	}
	if line, ok := s.running.Get(); ok && line.Contains("mce=off") {
		return passed("mce=off")
	}
	if value, ok := s.facts.Setting(settingCheckInterval).Get(); ok && value == "0" {
		return passed(settingCheckInterval + " is 0")
	}
	return s.settingIs(settingIgnoreCE, "1")
}

// pollingIsStopped reports whether the plan wants no CPU to poll for machine checks.
func (s *state) pollingIsStopped() bool {
	return slices.ContainsFunc(s.planned.All("mce"), func(arg cmdline.Arg) bool { return arg.Value == "ignore_ce" || arg.Value == "off" })
}
