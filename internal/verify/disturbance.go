// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

const (
	settingTracer    = "/sys/kernel/tracing/current_tracer"
	settingEvents    = "/sys/kernel/tracing/set_event"
	tracingInstances = "/sys/kernel/tracing/instances/"
	// settingHookedFunctions lists what ftrace calls something for, settingProbes where kprobes are.
	settingHookedFunctions = "/sys/kernel/tracing/enabled_functions"
	settingProbes          = "/sys/kernel/debug/kprobes/list"
	settingStackTracer     = "/proc/sys/kernel/stack_tracer_enabled"
	settingExpedited       = "/sys/kernel/rcu_expedited"
	settingTainted         = "/proc/sys/kernel/tainted"
)

// disturbanceChecks ask for what people and packages switch on and forget.
func disturbanceChecks() []Check {
	deJittered := []string{v1alpha1.ConditionDeJittered}
	return []Check{
		{
			ID: "kernel.tracing", Severity: v1alpha1.SeverityMedium, Impact: ImpactWork, Conditions: deJittered,
			Title:  "Nothing is being traced",
			Why:    "Each traced function or event takes tens to hundreds of nanoseconds on every CPU, and switching traces interrupts all of them.",
			Reads:  []string{settingTracer, settingEvents, tracingInstances + "*/{current_tracer,set_event}", settingHookedFunctions, settingProbes, settingStackTracer},
			Fix:    "Write nop to current_tracer and an empty line to set_event of the folder named, and 0 to " + settingStackTracer + "; find who traces or probes: trace-cmd, perf, a security agent with BPF (bpftool link).",
			Reboot: v1alpha1.RebootNotRequired,
			Source: "kernel: Documentation/trace/ftrace.rst, events.rst",
			owns: []string{
				settingTracer, settingEvents, tracingInstances + "*/current_tracer", tracingInstances + "*/set_event",
				settingHookedFunctions, settingProbes, settingStackTracer,
			},
			run: nothingIsTraced,
		},
		{
			ID: "kernel.rcu-expedited", Severity: v1alpha1.SeverityMedium, Impact: ImpactWork, Conditions: deJittered,
			Title:  "RCU does not hurry",
			Why:    "Expedited grace periods interrupt every CPU that is not idle.",
			Reads:  []string{settingExpedited},
			Fix:    "Write 0 to " + settingExpedited + "; rcupdate.rcu_normal_after_boot=1 ends the hurry of the boot.",
			Reboot: v1alpha1.RebootNotRequired,
			Source: "kernel: Documentation/admin-guide/kernel-parameters.txt (rcupdate.rcu_expedited)",
			owns:   []string{settingExpedited},
			run:    func(s *state) verdict { return s.settingIs(settingExpedited, "0") },
		},
		{
			ID: "kernel.tainted", Severity: v1alpha1.SeverityMedium, Impact: ImpactNone, Conditions: deJittered,
			Title:  "The kernel has seen no machine check and no lockup since it booted",
			Why:    "A machine that reports hardware errors, or that once hung, has latencies that no setting can remove.",
			Reads:  []string{settingTainted},
			Fix:    "Look for the cause in the kernel's log, replace what is broken, and reboot: the mark stays until then.",
			Reboot: v1alpha1.RebootRequired,
			Source: "kernel: Documentation/admin-guide/tainted-kernels.rst (bits 4 and 14)",
			owns:   []string{settingTainted},
			run:    kernelIsSound,
		},
		{
			ID: "workqueue.others", Severity: v1alpha1.SeverityMedium, Impact: ImpactWork, Conditions: deJittered,
			Title:   "Every other workqueue that can be placed stays off isolated CPUs",
			Applies: "the kernel shows further workqueues",
			Why:     "Drivers put work for milliseconds on queues of their own.",
			Reads:   []string{workqueueFolder + "*/cpumask", settingWorkqueue},
			Fix:     "Write the mask of the housekeeping CPUs to the cpumask of the queue, or to " + settingWorkqueue + ", which bounds them all.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/core-api/workqueue.rst (WQ_SYSFS)",
			run:     otherQueuesKeepOff,
		},
		{
			ID: "system.services", Severity: v1alpha1.SeverityMedium, Impact: ImpactWork, Conditions: deJittered,
			Title:   "Services that the plan stops are masked and do not run",
			Applies: "the plan stops services",
			Why:     "fwupd-refresh.timer, which every plan stops unless the profile says otherwise, makes the firmware answer, with system management interrupts that stop all CPUs.",
			Reads:   []string{"/{etc,run,usr/lib}/systemd/system/UNIT", "/sys/fs/cgroup/system.slice/UNIT"},
			Fix:     "Run systemctl mask --now on the units named, or see why the planned units did not do so.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "systemd: systemctl(1) (mask); OpenShift's node-performance profile (fwupd-refresh.timer can cause SMIs)",
			run:     servicesAreStopped,
		},
	}
}

// nothingIsTraced judges the tracer and each of its instances, and functions that are hooked or probed without them.
func nothingIsTraced(s *state) verdict {
	if s.facts.Setting(settingTracer).Missing {
		return passed("the kernel was built without tracers")
	}
	verdicts := []verdict{s.settingIs(settingTracer, "nop"), s.noEventIsTraced(settingEvents)}
	for file := range s.facts.Settings {
		name, isInstance := strings.CutPrefix(file, tracingInstances)
		switch {
		case isInstance && strings.HasSuffix(name, "/current_tracer"):
			verdicts = append(verdicts, s.settingIs(file, "nop"))
		case isInstance && strings.HasSuffix(name, "/set_event"):
			verdicts = append(verdicts, s.noEventIsTraced(file))
		}
	}
	sorted(verdicts[2:])
	// Kernels without the stack tracer have no such file.
	if value, ok := s.facts.Setting(settingStackTracer).Get(); ok && value != "0" {
		verdicts = append(verdicts, failed("the stack tracer runs at every call of a function", settingStackTracer+" is "+value, "0").about(finding.OfFiles(settingStackTracer)))
	}
	return worst(append(verdicts, s.noFunctionIs("hooked", settingHookedFunctions, isHook), s.noFunctionIs("probed", settingProbes, isProbe))...)
}

func (s *state) noEventIsTraced(file string) verdict {
	return judge(s.facts.Setting(file), "no event", func(found string) verdict {
		events := slices.DeleteFunc(strings.Fields(found), isEventOfErrors)
		if len(events) == 0 {
			return passed("no event")
		}
		return failed(fmt.Sprintf("%s is traced in %s%s", events[0], path.Dir(file), andMore(len(events)-1, "event")), "events", "no event").
			about(finding.OfFiles(file))
	})
}

// isEventOfErrors knows the events that rasdaemon waits for: they come with errors of the hardware, and cost nothing without
// (ras-events.c of rasdaemon).
func isEventOfErrors(event string) bool {
	system, _, _ := strings.Cut(event, ":")
	return slices.Contains([]string{"ras", "mce", "cxl"}, system) ||
		slices.Contains([]string{"devlink:devlink_health_report", "net:net_dev_xmit_timeout", "block:block_rq_error"}, event)
}

// noFunctionIs judges a list of functions of the kernel, one in each line, that call something else. Who may not read it, or
// has no file system for it, knows nothing from it; the tracer's own files then tell what they can.
func (s *state) noFunctionIs(what, file string, counts func(line string) bool) verdict {
	found, ok := s.facts.Setting(file).Get()
	if !ok {
		return notApplicable()
	}
	var lines []string
	for line := range strings.Lines(found) {
		if counts(line) {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return passed("no function is " + what)
	}
	return failed(fmt.Sprintf("%s of the kernel is %s%s", functionIn(lines[0]), what, andMore(len(lines)-1, "function")), file, "none").
		about(finding.OfFiles(file))
}

// functionIn is the name in a line: the first word of enabled_functions, the third of the list of probes, where an offset and
// a module may follow.
func functionIn(line string) string {
	words := strings.Fields(line)
	if len(words) > 2 && len(words[1]) == 1 {
		return words[2]
	}
	return words[0]
}

// andMore counts what a sentence does not name.
func andMore(count int, what string) string {
	switch count {
	case 0:
		return ""
	case 1:
		return ", and 1 more " + what
	}
	return fmt.Sprintf(", and %d more %ss", count, what)
}

// isHook tells a function that is traced or hooked from one that a live patch replaces, which ftrace marks with I
// (t_show of kernel/trace/ftrace.c), and from the kernel's own places for BPF, at which systemd and the kernel attach programs
// as they boot (RestrictFileSystems= of systemd.exec(5), drivers/hid/bpf).
func isHook(line string) bool {
	words := strings.Fields(line)
	if len(words) == 0 || slices.Contains(words[1:], "I") {
		return false
	}
	return !slices.ContainsFunc([]string{"bpf_lsm_", "hid_bpf_", "__hid_bpf_"}, func(place string) bool { return strings.HasPrefix(words[0], place) })
}

// isProbe tells a probe that is armed (report_probe of kernel/kprobes.c).
func isProbe(line string) bool {
	return strings.TrimSpace(line) != "" && !strings.Contains(line, "[DISABLED]") && !strings.Contains(line, "[GONE]")
}

func kernelIsSound(s *state) verdict {
	const machineCheck, softLockup = 1 << 4, 1 << 14
	const expected = "no bit for machine checks or lockups"
	return judge(parseSetting(s.facts.Setting(settingTainted), func(text string) (uint64, error) {
		return strconv.ParseUint(text, 10, 64)
	}), expected, func(bits uint64) verdict {
		var seen []string
		if bits&machineCheck != 0 {
			seen = append(seen, "a machine check")
		}
		if bits&softLockup != 0 {
			seen = append(seen, "a lockup")
		}
		if len(seen) > 0 {
			return failed("the kernel has seen "+strings.Join(seen, " and ")+" since it booted", strconv.FormatUint(bits, 10), expected)
		}
		return passed(strconv.FormatUint(bits, 10))
	})
}

const workqueueFolder = "/sys/devices/virtual/workqueue/"

// otherQueuesKeepOff judges the queues that host.Read found, but for writeback, which has a check of its own.
func otherQueuesKeepOff(s *state) verdict {
	var verdicts []verdict
	for file := range s.facts.Settings {
		queue, ok := strings.CutPrefix(file, workqueueFolder)
		name, ok2 := strings.CutSuffix(queue, "/cpumask")
		if ok && ok2 && name != "writeback" {
			verdicts = append(verdicts, s.maskIsOffIsolated(file))
		}
	}
	return worst(sorted(verdicts)...)
}

func servicesAreStopped(s *state) verdict {
	verdicts := make([]verdict, 0, len(s.plan.StopServices))
	for _, service := range s.plan.StopServices {
		unit, ok := s.facts.Units[service.Name]
		if !ok {
			verdicts = append(verdicts, unknown("unit "+service.Name, "not read", "masked"))
			continue
		}
		verdicts = append(verdicts, serviceIsStopped(service.Name, unit))
	}
	return worst(verdicts...)
}

func serviceIsStopped(name string, unit host.Unit) verdict {
	if running, ok := unit.Running.Get(); ok && running {
		return failed(name+" runs", name+" runs", name+" stopped")
	}
	return judge(unit.Installed, name+" masked", func(installed bool) verdict {
		if !installed {
			return passed(name + " is not installed")
		}
		return judge(unit.Masked, name+" masked", func(masked bool) verdict {
			if masked {
				return passed(name + " is masked")
			}
			return failed(name+" is not masked: "+unit.Installed.Source+" can be started", name+" not masked", name+" masked")
		})
	})
}
