// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package kubernetes

import (
	_ "embed" // for the scripts
	"fmt"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
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
	beforePods      = "kubelet.service crio.service containerd.service"
	intelVendor     = "Intel"
	frequencyFolder = "/sys/devices/system/cpu/"
)

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
	w.holdBalancing()
	w.add(
		operation.PutTuneDProfileIn(folder, "lowlatency-"+w.plan.Profile, text),
		// The settings are to be in force when the first pod starts.
		operation.PutDropIn(tunedService, dropIn, "[Unit]\nBefore="+beforePods+"\n"),
	)
	// TuneD sets them with a module of Python that Debian does not have, and leaves them out without it.
	w.writeThreadPriorities()
	return nil
}

// holdBalancing keeps the kernel from balancing NUMA nodes where TuneD does so, too: it does not from the boot until TuneD runs, nor while TuneD
// is started again, which puts back what it found. A few seconds are enough for the kernel to move threads to idle CPUs without a
// scheduling domain (task_numa_find_cpu in kernel/sched/fair.c), where they stay. Set before TuneD starts, it is what TuneD puts back.
func (w *writer) holdBalancing() {
	for _, setting := range w.plan.Sysctls {
		if setting.Name == "kernel.numa_balancing" && setting.Value == "0" {
			w.add(operation.SetSysctl(setting.Name, setting.Value))
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
	w.add(operation.PutUnit(name, "[Unit]\nDescription="+description+"\nAfter=systemd-modules-load.service\nBefore="+beforePods+
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
			"[Install]\nWantedBy=multi-user.target\n", beforePods, limitScript, state), operation.Enabled),
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
