// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// SettingPaths are the small files that every Read puts into Facts.Settings, ascending: what decides
// about the latency of a host, wherever the kernel keeps it. Read adds the masks of the workqueues and
// the mitigations of CPU vulnerabilities, whose names differ from host to host.
func SettingPaths() []string { return pathsOf(settingNames()) }

// pathsOf lists files, ascending, whose names are given by folder.
func pathsOf(namesByFolder map[string]string) []string {
	var paths []string
	for folder, names := range namesByFolder {
		for name := range strings.FieldsSeq(names) {
			paths = append(paths, folder+"/"+name)
		}
	}
	slices.Sort(paths)
	return paths
}

// settingNames are the names of the settings by folder. Files below /proc/sys/net belong to the network
// namespace of the reader.
func settingNames() map[string]string {
	return map[string]string{
		"/dev":            "cpu_dma_latency",
		"/etc/default":    "irqbalance",
		"/etc/lowlatency": "irqbalance.env",
		"/etc/sysconfig":  "irqbalance",
		"/proc":           "swaps",
		"/proc/1":         "status",
		"/proc/sys/kernel": "hung_task_timeout_secs nmi_watchdog numa_balancing sched_rt_runtime_us soft_watchdog " +
			"stack_tracer_enabled tainted timer_migration watchdog watchdog_cpumask",
		"/proc/sys/kernel/random":                        "boot_id",
		"/proc/sys/net/core":                             "busy_poll busy_read rps_default_mask rps_sock_flow_entries",
		"/proc/sys/vm":                                   "compaction_proactiveness dirty_background_ratio dirty_ratio stat_interval swappiness zone_reclaim_mode",
		"/sys/bus/workqueue/devices/writeback":           "cpumask",
		"/sys/devices/system/clocksource/clocksource0":   "available_clocksource current_clocksource",
		"/sys/devices/system/cpu/amd_pstate":             "status",
		"/sys/devices/system/cpu/cpufreq":                "boost",
		"/sys/devices/system/cpu/cpuidle":                "current_driver",
		"/sys/devices/system/cpu/intel_pstate":           "max_perf_pct no_turbo status",
		"/sys/devices/system/cpu/smt":                    "active",
		"/sys/devices/system/machinecheck/machinecheck0": "check_interval ignore_ce",
		"/sys/devices/virtual/workqueue":                 "cpumask",
		"/sys/firmware/acpi":                             "platform_profile",
		"/sys/fs/cgroup":                                 "cpuset.cpus.isolated",
		"/sys/kernel":                                    "realtime rcu_expedited",
		"/sys/kernel/mm/ksm":                             "pages_shared run",
		"/sys/kernel/mm/transparent_hugepage":            "enabled shmem_enabled",
		"/sys/kernel/debug/kprobes":                      "list",
		tracingRoot:                                      "current_tracer enabled_functions set_event",
		"/sys/module/pcie_aspm/parameters":               "policy",
	}
}

// plannableNames are the names, by folder, of settings that nobody reads unless a profile sets them. A snapshot holds
// them, because nobody knows the profile when it is made.
func plannableNames() map[string]string {
	return map[string]string{
		"/proc/sys/kernel":   "sched_rt_period_us softlockup_panic watchdog_thresh",
		"/proc/sys/net/core": "netdev_budget netdev_budget_usecs",
		"/proc/sys/net/ipv4": "tcp_fastopen",
		"/proc/sys/vm": "dirty_background_bytes dirty_bytes dirty_expire_centisecs dirty_writeback_centisecs " +
			"overcommit_memory",
	}
}

const (
	workqueueRoot   = "/sys/devices/virtual/workqueue"
	tracingRoot     = "/sys/kernel/tracing"
	transparentRoot = "/sys/kernel/mm/transparent_hugepage"
	// VulnerabilityRoot holds a setting for each vulnerability of the processor that the kernel knows.
	VulnerabilityRoot = cpuRoot + "/vulnerabilities"
)

// readSettings reads the settings of every host and those that are asked for.
func readSettings(extra []string) func(*reader, *Facts) {
	return func(r *reader, f *Facts) {
		f.Settings = map[string]Fact[string]{}
		for _, file := range slices.Concat(SettingPaths(), r.numerousSettings()) {
			f.Settings[file] = r.setting(file)
		}
		readMoreSettings(extra)(r, f)
		r.keepPlannable(f.CPUs)
	}
}

// setting reads a small file, or the one device among them, and tells whether the host does not have it.
func (r *reader) setting(file string) Fact[string] {
	if file == latencyDevice {
		return r.latencyLimit()
	}
	fact, err := tryRead(r, source[string]{file, func(text string) (string, error) { return text, nil }})
	if errors.Is(err, fs.ErrNotExist) && r.lacks(file) {
		fact.Missing = true
		r.taken.lack(file)
	}
	return fact
}

// lacks reports whether a setting that is not here is not on the host either: the file system that would hold it is here.
func (r *reader) lacks(file string) bool {
	if !r.complete {
		return slices.Contains(r.missing, file)
	}
	always := ""
	switch {
	case strings.HasPrefix(file, "/sys/kernel/debug/"):
		// A place to mount a file system on, which nobody may have done.
		return false
	case strings.HasPrefix(file, "/proc/sys/net/"):
		// Of these, a network namespace has fewer than the host.
		return false
	case strings.HasPrefix(file, tracingRoot+"/"):
		// A file system of its own: where it is not mounted, its folder is empty; a kernel that cannot trace has none.
		_, err := r.walk.resolve(strings.TrimPrefix(tracingRoot, "/"))
		return errors.Is(err, fs.ErrNotExist)
	case strings.HasPrefix(file, "/proc/"):
		always = "proc/sys/kernel"
	case strings.HasPrefix(file, "/sys/"):
		always = "sys/kernel"
	default:
		return false
	}
	_, err := r.walk.folder(always)
	return err == nil
}

// readMoreSettings reads settings that somebody asked for.
func readMoreSettings(extra []string) func(*reader, *Facts) {
	return func(r *reader, f *Facts) {
		for _, file := range extra {
			if _, known := f.Settings[file]; !known {
				f.Settings[file] = r.extraSetting(file)
			}
		}
	}
}

// numerousSettings are the settings whose names a host tells: workqueues, vulnerabilities, instances of the tracer.
func (r *reader) numerousSettings() []string {
	queues := r.members(workqueueRoot, maxEntries, func(e entry) bool { return e.kind != kindFile && e.name != "power" })
	for i, name := range queues {
		queues[i] = workqueueRoot + "/" + name + "/cpumask"
	}
	vulnerabilities := r.members(VulnerabilityRoot, maxEntries, func(e entry) bool { return e.kind == kindFile })
	for i, name := range vulnerabilities {
		vulnerabilities[i] = VulnerabilityRoot + "/" + name
	}
	return slices.Concat(queues, vulnerabilities, r.transparentSizes(), r.tracers())
}

// tracers are the files of the instances of the tracer, each of which traces by itself (Documentation/trace/ftrace.rst).
func (r *reader) tracers() []string {
	instances := r.members(tracingRoot+"/instances", maxEntries, func(e entry) bool { return e.kind == kindDirectory })
	files := make([]string, 0, 2*len(instances))
	for _, name := range instances {
		files = append(files, tracingRoot+"/instances/"+name+"/current_tracer", tracingRoot+"/instances/"+name+"/set_event")
	}
	return files
}

// transparentSizes are the switches of transparent hugepages by size, which Linux has since 6.8
// (Documentation/admin-guide/mm/transhuge.rst).
func (r *reader) transparentSizes() []string {
	sizes := r.members(transparentRoot, maxEntries, func(e entry) bool {
		_, ok := numberIn(e.name, "hugepages-", "kB")
		return ok && e.kind != kindFile
	})
	files := make([]string, 0, 2*len(sizes))
	for _, size := range sizes {
		files = append(files, transparentRoot+"/"+size+"/enabled", transparentRoot+"/"+size+"/shmem_enabled")
	}
	return files
}

// extraSetting reads a setting that somebody asked for. Other files than the kernel's own are not read: a
// name from a profile must not fetch a secret from the host.
func (r *reader) extraSetting(file string) Fact[string] {
	isKernels := strings.HasPrefix(file, "/proc/sys/") || strings.HasPrefix(file, "/sys/")
	switch {
	case !isKernels || path.Clean(file) != file:
		return Absent[string](file, "not read: neither below /proc/sys nor below /sys")
	case r.live && interrupts(file):
		return Absent[string](file, reasonInterrupts)
	}
	return r.setting(file)
}

// interrupts tells the files that make a CPU run code in order to be read: frequencies are measured, and
// the energy bias and, in older kernels, the energy preference are registers of the CPU.
func interrupts(file string) bool {
	return slices.Contains([]string{
		"scaling_cur_freq", "cpuinfo_cur_freq", "cpuinfo_avg_freq", "feedback_ctrs", "energy_perf_bias", energyPreferenceFile,
	}, path.Base(file))
}

// keepPlannable puts into a snapshot what only plans ask for, the PM QoS limits of their isolated CPUs among it.
func (r *reader) keepPlannable(sets CPUs) {
	if r.taken == nil {
		return
	}
	for _, file := range pathsOf(plannableNames()) {
		r.setting(file)
	}
	for _, id := range sets.Present.Value.IDs() {
		r.textFact(cpuFolder(id) + "/power/pm_qos_resume_latency_us")
	}
}

// SysctlPath returns the file of a sysctl: kernel.timer_migration is /proc/sys/kernel/timer_migration. As
// in sysctl.d(5), dots and slashes change places if the first separator is a dot, so that
// net.ipv4.conf.enp3s0/200.forwarding names the interface enp3s0.200. The result is below /proc/sys
// whatever the name.
func SysctlPath(name string) string {
	if first := strings.IndexAny(name, "./"); first >= 0 && name[first] == '.' {
		name = strings.Map(swapSeparators, name)
	}
	return "/proc/sys" + path.Clean("/"+name)
}

func swapSeparators(r rune) rune {
	switch r {
	case '.':
		return '/'
	case '/':
		return '.'
	}
	return r
}
