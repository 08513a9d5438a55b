// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package kubernetes

import (
	_ "embed" // for the scripts
	"fmt"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/tunedprofile"
)

var (
	//go:embed scripts/latency-limit.sh
	latencyLimitScript string
	//go:embed scripts/thread-priorities.sh
	threadPrioritiesScript string
)

const (
	tunedService    = "tuned.service"
	dropIn          = "90-lowlatency.conf"
	frequencyFile   = "/etc/lowlatency/cpu-frequency.conf"
	frequencyUnit   = "lowlatency-cpu-frequency.service"
	limitScript     = "/usr/local/bin/lowlatency-latency-limit"
	limitUnit       = "lowlatency-latency-limit.service"
	prioritiesFile  = "/usr/local/bin/lowlatency-thread-priorities"
	prioritiesUnit  = "lowlatency-thread-priorities.service"
	intelVendor     = "Intel"
	frequencyFolder = "/sys/devices/system/cpu/"
)

// beforePods are the units before which a host has to be ready, of every distribution: a host may get its kubelet later.
func beforePods() string { return strings.Join(host.UnitsOfPods(), " ") }

// writeTuning sets what is set on the running system: by TuneD where the host has it, else by the kernel's own files.
func (w *writer) writeTuning() error {
	folder, known := w.facts.Software.TuneDProfiles.Get()
	if !known || folder == "" {
		w.writeSettings()
		return nil
	}
	text, err := tunedprofile.Text(w.plan, "")
	if err != nil {
		return err
	}
	w.holdSettings()
	w.add(
		operation.PutTuneDProfileIn(folder, "lowlatency-"+w.plan.Profile, text),
		// The settings are to be in force when the first pod starts.
		operation.PutDropIn(tunedService, dropIn, "[Unit]\nBefore="+beforePods()+"\n"),
	)
	// TuneD sets them with a module of Python that Debian does not have, and leaves them out without it.
	w.writeThreadPriorities()
	return nil
}

// heldParameters are the parameters of the kernel, with the values that plans derive, without which the kernel disturbs isolated CPUs within half a
// minute, or a check fails of a host on which nothing is wrong.
func heldParameters() map[string][]string {
	return map[string][]string{
		// khungtaskd walks through all tasks less often. It disturbs nobody on isolated CPUs; but no other check judges it than that of all parameters,
		// which closes the gate.
		"kernel.hung_task_timeout_secs": {"600"},
		// A counter that interrupts each CPU.
		"kernel.nmi_watchdog": {"0"},
		// A few seconds are enough for the kernel to move threads to idle CPUs without a scheduling domain (task_numa_find_cpu in
		// kernel/sched/fair.c), where they stay.
		"kernel.numa_balancing": {"0"},
		// A real-time thread that never sleeps is taken off its CPU for a part of each second.
		"kernel.sched_rt_runtime_us": {"-1"},
		// Timers go to the CPU that starts them, or to a housekeeping one.
		"kernel.timer_migration": {"0", "1"},
		// Compaction in the background makes tasks wait for page locks.
		"vm.compaction_proactiveness": {"0"},
		// These disturb no isolated CPU. They are judged all the same, and a host that was verified before TuneD has set them fails that.
		"vm.dirty_background_ratio": {"3"},
		"vm.dirty_ratio":            {"10"},
		"vm.swappiness":             {"10"},
		// Each second, the vmstat worker looks at every CPU.
		"vm.stat_interval": {"10"},
	}
}

// heldFiles are such files below /sys: where work of the kernel may run, and who changes the memory of programs. What firmware may refuse, below
// /sys/devices/system/cpu, is none: it would have the guard take back a plan that works.
func heldFiles() []string {
	return []string{
		"/sys/bus/workqueue/devices/writeback/cpumask", "/sys/devices/virtual/workqueue/cpumask", "/sys/kernel/mm/ksm/run",
		"/sys/kernel/mm/transparent_hugepage/enabled",
	}
}

// holdSettings sets what must not be away even while TuneD is: from the boot until it runs, and while it is started again or upgraded, when it puts back
// what it found. Set before TuneD starts, it is what TuneD finds and puts back. Whatever decides here is in the plan's hash, which tells nobody whether a
// value was derived or given by the user: so it is decided by the value. What else the user gives is TuneD's alone.
func (w *writer) holdSettings() {
	for _, setting := range w.plan.Sysctls {
		if slices.Contains(heldParameters()[setting.Name], setting.Value) {
			w.add(operation.SetSysctl(setting.Name, setting.Value))
		}
	}
	for _, setting := range w.plan.Sysfs {
		if slices.Contains(heldFiles(), setting.Name) {
			w.add(operation.SetSysfs(setting.Name, setting.Value))
		}
	}
}

// writeSettings does without TuneD what its profile would do.
func (w *writer) writeSettings() {
	for _, setting := range w.plan.Sysctls {
		w.add(operation.SetSysctl(setting.Name, setting.Value))
	}
	for _, setting := range w.plan.Sysfs {
		w.add(operation.SetSysfs(setting.Name, setting.Value))
	}
	w.writeFrequency()
	w.writeLatencyLimit()
	w.writeThreadPriorities()
	if w.plan.Network.Queues != 0 {
		w.report(v1alpha1.SeverityHigh, ruleTuneD, "spec.network.queues", "Install TuneD, or leave the field out.",
			"the number of queues of NICs is set by TuneD, which the host does not have")
	}
	w.report(v1alpha1.SeverityLow, ruleTuneD, "TuneD", "Install TuneD.",
		"without it nobody keeps a socket with time stamps open, and the first program that opens one interrupts every CPU once")
}

// writeFrequency sets what belongs to each CPU at boot. The files are written by systemd-tmpfiles, which takes patterns, so
// that what is written does not grow with the number of CPUs.
func (w *writer) writeFrequency() {
	if w.plan.Power.Governor != v1alpha1.GovernorPerformance {
		return
	}
	settings := [][2]string{{"cpu*/cpufreq/scaling_governor", "performance"}}
	if w.plan.Vendor == intelVendor {
		settings = append(settings, [2]string{"cpu*/power/energy_perf_bias", "0"}, [2]string{"intel_pstate/min_perf_pct", "100"})
	}
	var lines strings.Builder
	for _, setting := range settings {
		fmt.Fprintf(&lines, "w %s%s - - - - %s\n", frequencyFolder, setting[0], setting[1])
	}
	w.add(operation.PutFile(frequencyFile, 0o644, lines.String()))
	w.oneshot(frequencyUnit, "Set the frequency of CPUs", "/usr/bin/systemd-tmpfiles --create "+frequencyFile)
}

// oneshot is a unit that runs commands at boot before pods start, and now.
func (w *writer) oneshot(name, description string, commands ...string) {
	w.add(operation.PutUnit(name, "[Unit]\nDescription="+description+"\nAfter=systemd-modules-load.service\nBefore="+beforePods()+
		"\n\n[Service]\nType=oneshot\nRemainAfterExit=true\nExecStart="+strings.Join(commands, "\nExecStart=")+
		"\n\n[Install]\nWantedBy=multi-user.target\n", operation.Enabled),
		operation.SetService(name, operation.Started))
}

// writeLatencyLimit keeps idle states shallow by a limit that lasts as long as a program holds it.
func (w *writer) writeLatencyLimit() {
	if w.plan.Power.IdleStates != v1alpha1.IdleShallowByQoS {
		return
	}
	state := 1
	if w.plan.Architecture == "arm64" {
		// On x86 state 0 is polling; on arm64 it is WFI.
		state = 0
	}
	w.add(
		operation.PutFile(limitScript, 0o755, latencyLimitScript),
		operation.PutUnit(limitUnit, fmt.Sprintf("[Unit]\nDescription=Keep idle states shallow\nBefore=%s\n\n[Service]\nExecStart=%s %d\nRestart=always\n\n"+
			"[Install]\nWantedBy=multi-user.target\n", beforePods(), limitScript, state), operation.Enabled),
		operation.SetService(limitUnit, operation.Started),
	)
}

// writeThreadPriorities gives threads of the kernel their priorities at boot.
func (w *writer) writeThreadPriorities() {
	if len(w.plan.KernelThreads) == 0 {
		return
	}
	words := []string{prioritiesFile}
	for _, thread := range w.plan.KernelThreads {
		words = append(words, fmt.Sprintf("%s=%d", thread.Name, thread.Priority))
	}
	w.add(operation.PutFile(prioritiesFile, 0o755, threadPrioritiesScript))
	w.oneshot(prioritiesUnit, "Set the priorities of threads of the kernel", strings.Join(words, " "))
}
