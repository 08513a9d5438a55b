// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import (
	"os"
	"path/filepath"
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// written is a fault that writing a value to a file makes.
func written(name, path, value string, on []string, want v1alpha1.CheckID, says ...string) fault {
	return fault{name: name, on: on, harm: func(n *node) { n.put(path, value+"\n") }, want: want, says: says}
}

// holds is a harmless value of a file.
func holds(name, path, value string, on ...string) variation {
	return variation{name: name, on: on, change: func(n *node) { n.put(path, value+"\n") }}
}

func faultsOfSettings() []fault {
	const kernel = "/proc/sys/kernel/"
	return []fault{
		written("a parameter without a check of its own has another value", kernel+"hung_task_timeout_secs", "120", nil, "kernel.sysctls", "hung_task_timeout_secs is 120, not 600"),
		{
			name: "the soft-lockup watchdog is on",
			harm: func(n *node) {
				n.put(kernel+"watchdog", "1\n")
				n.put(kernel+"soft_watchdog", "1\n")
				n.put(kernel+"watchdog_cpumask", n.plan.CPUs.Housekeeping.Union(n.plan.CPUs.Isolated).String()+"\n")
			},
			want: "kernel.soft-watchdog", says: []string{"the watchdog runs on isolated CPUs"},
		},
		{
			name: "the kernel lacks a parameter that is planned",
			harm: func(n *node) { n.remove("/proc/sys/vm/stat_interval") },
			want: "memory.vmstat", says: []string{"the running kernel has no /proc/sys/vm/stat_interval"},
		},
		written("real-time tasks are throttled", kernel+"sched_rt_runtime_us", "950000", nil, "kernel.rt-throttling", "950000, not -1"),
		written("timers stay where they were armed", kernel+"timer_migration", "0", nil, "kernel.timer-migration"),
		written("the kernel has seen a machine check", kernel+"tainted", "16", nil, "kernel.tainted", "a machine check"),
		written("the kernel has seen both", kernel+"tainted", "16400", nil, "kernel.tainted", "a machine check and a lockup"),
		written("events are traced", "/sys/kernel/tracing/set_event", "sched:sched_switch\nirq:irq_handler_entry", nil, "kernel.tracing", "sched:sched_switch is traced in /sys/kernel/tracing, and 1 more event"),
		written("the stack tracer runs", kernel+"stack_tracer_enabled", "1", nil, "kernel.tracing", "stack tracer"),
		written("latency is traced", "/sys/kernel/tracing/current_tracer", "irqsoff", []string{xeonRT, arm612RT}, "kernel.tracing", "irqsoff"),
		{
			name: "writing back may use isolated CPUs",
			harm: func(n *node) {
				everywhere := n.plan.CPUs.Housekeeping.Union(n.plan.CPUs.Isolated).Mask() + "\n"
				n.put("/sys/devices/virtual/workqueue/cpumask", everywhere)
				n.put("/sys/devices/virtual/workqueue/writeback/cpumask", everywhere)
			},
			want: "workqueue.writeback",
		},
		{
			name: "the queue of a driver may use isolated CPUs",
			harm: func(n *node) {
				everywhere := n.plan.CPUs.Housekeeping.Union(n.plan.CPUs.Isolated).Mask() + "\n"
				n.put("/sys/devices/virtual/workqueue/cpumask", everywhere)
				n.put("/sys/devices/virtual/workqueue/nvme-wq/cpumask", everywhere)
			},
			want: "workqueue.others", says: []string{"nvme-wq"},
		},
		{
			name: "a service that was to be stopped runs",
			harm: func(n *node) {
				n.must(os.RemoveAll(filepath.Join(n.host.Dir, "etc/systemd/system/fwupd-refresh.timer")))
			},
			want: "system.services", says: []string{"fwupd-refresh.timer"},
		},
		written("the clock is ACPI's", "/sys/devices/system/clocksource/clocksource0/current_clocksource", "acpi_pm", x86(), "clock.source", "acpi_pm"),
		{
			name: "the kernel found the TSC unstable", on: x86(),
			harm: func(n *node) {
				n.put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n")
				n.put("/sys/devices/system/clocksource/clocksource0/available_clocksource", "hpet acpi_pm \n")
			},
			want: "clock.tsc", says: []string{"unstable"},
		},
	}
}

// plans adds a file below /sys to what the node was given, as the operator of another version may: every file that this one
// plans has a check of its own.
func (n *node) plans(path, value string) {
	given := *n.plan
	given.Sysfs = append(slices.Clone(given.Sysfs), plan.Setting{Name: path, Value: value})
	n.plan = &given
}

const (
	blockQueue   = "/sys/block/nvme0n1/queue/nomerges"
	anotherPlans = "the command line plans anew, and plans no such file"
)

func faultsOfOtherFiles() []fault {
	return []fault{
		{
			name: "a file without a check of its own has another value", agent: anotherPlans,
			harm: func(n *node) { n.plans(blockQueue, "2"); n.put(blockQueue, "0\n") },
			want: "kernel.sysfs", says: []string{"nomerges is 0, not 2"},
		},
		{
			name: "the kernel lacks a file without a check of its own", agent: anotherPlans,
			harm: func(n *node) { n.plans(blockQueue, "2") },
			want: "kernel.sysfs", says: []string{"the running kernel has no /sys/block/nvme0n1/queue/nomerges"},
		},
	}
}

func faultsOfPowerSettings() []fault {
	const cpuFolder = "/sys/devices/system/cpu/"
	intel := []string{xeon, xeonRT, xeon612, edge}
	return []fault{
		{
			name: "the processor's TSC is not invariant", on: x86(),
			harm: func(n *node) { n.edit("/proc/cpuinfo", " nonstop_tsc", "") },
			want: "clock.tsc", says: []string{"nonstop_tsc"},
		},
		{
			name: "an isolated CPU prefers to save energy", on: []string{xeon},
			harm: func(n *node) { n.put(cpu(n.isolated(), "cpufreq/energy_performance_preference"), "balance_power\n") },
			want: "power.energy-preference", says: []string{"CPU {cpu}", "balance_power"},
		},
		{
			name: "the governor follows the load", on: []string{arm},
			harm: func(n *node) { n.put(cpu(n.isolated(), "cpufreq/scaling_governor"), "schedutil\n") },
			want: "power.governor", says: []string{"CPU {cpu}", "schedutil"},
		},
		written("turbo is on: Intel", cpuFolder+"intel_pstate/no_turbo", "0", []string{xeonSettings}, "power.turbo"),
		written("turbo is on: AMD and Arm", cpuFolder+"cpufreq/boost", "1", []string{epycSettings, armSettings}, "power.turbo"),
		written("the driver became passive", cpuFolder+"intel_pstate/status", "passive", []string{xeon}, "power.frequency-driver", "passive"),
		written("the driver was switched off", cpuFolder+"amd_pstate/status", "disable", []string{epyc}, "power.frequency-driver", "disable"),
		{
			name: "an isolated CPU is capped lower than planned", on: []string{xeonSettings, epycSettings, armSettings},
			harm: func(n *node) { n.put(cpu(n.isolated(), "cpufreq/scaling_max_freq"), "1600000\n") },
			want: "power.maximum-frequency", says: []string{"CPU {cpu}", "1600000 kHz"},
		},
		{
			name: "housekeeping CPUs are not capped", on: []string{xeonSettings},
			harm: func(n *node) { n.put(cpu(n.housekeeping(), "cpufreq/scaling_max_freq"), "3600000\n") },
			want: "power.maximum-frequency", says: []string{"3600000 kHz"},
		},
		written("the mesh saves power", cpuFolder+"intel_uncore_frequency/uncore00/min_freq_khz", "800000", intel, "power.uncore", "uncore00 runs at 800000 to 2400000 kHz"),
		written("an idle driver is at work", cpuFolder+"cpuidle/current_driver", "acpi_idle", x86(), "power.idle-driver", "acpi_idle"),
		written("the firmware saves power", "/sys/firmware/acpi/platform_profile", "balanced", nil, "power.platform-profile", "balanced"),
		{
			name: "a deep idle state is allowed", on: []string{xeonSettings, epycSettings},
			harm: func(n *node) { n.putIdleState(n.isolated(), 0) },
			want: "power.idle-states", says: []string{"idle state C6, which takes 170 µs to leave, is allowed"},
		},
		written("sockets do not poll", "/proc/sys/net/core/busy_poll", "0", []string{xeonSettings, armSettings}, "net.busy-poll", "busy_poll is 0, not 50"),
		{
			name: "new queues steer packets to isolated CPUs",
			harm: func(n *node) { n.put("/proc/sys/net/core/rps_default_mask", n.plan.CPUs.Isolated.Mask()+"\n") },
			want: "nic.receive-steering", says: []string{"rps_default_mask"},
		},
		{
			name: "the link of a bypass NIC saves power",
			harm: func(n *node) {
				n.put("/sys/module/pcie_aspm/parameters/policy", "[default] performance powersave powersupersave \n")
				for _, file := range n.files("/sys/class/net/" + n.bypassNIC() + "/device/link/l1_aspm") {
					n.put(file, "1\n")
				}
			},
			want: "nic.link-power", says: []string{"NIC {nic}", "l1_aspm"},
		},
	}
}

func variationsOfSettings() []variation {
	const cpuFolder, kernel, vm = "/sys/devices/system/cpu/", "/proc/sys/kernel/", "/proc/sys/vm/"
	return []variation{
		holds("a parameter that nobody planned has another value", vm+"overcommit_memory", "1"),
		holds("watchdog_thresh is raised", kernel+"watchdog_thresh", "30"),
		holds("dirty pages are limited more strictly where nobody planned it", vm+"dirty_expire_centisecs", "1500"),
		holds("a module was loaded that the kernel does not trust", kernel+"tainted", "8192"),
		holds("a live patch is in the kernel", kernel+"tainted", "32768"),
		holds("a warning was printed", kernel+"tainted", "512"),
		holds("the hypervisor was warned of", kernel+"softlockup_panic", "1"),
		holds("workqueues are efficient", "/sys/module/workqueue/parameters/power_efficient", "N"),
		holds("the minimum frequency is the highest", cpuFolder+"intel_pstate/min_perf_pct", "100", xeon),
		holds("the governor of idle states is another", cpuFolder+"cpuidle/current_governor", "teo"),
		{
			name:   "a file without a check of its own is as planned",
			change: func(n *node) { n.plans(blockQueue, "2"); n.put(blockQueue, "2\n") },
		},
		holds("memory could be compressed on its way to swap, of which there is none", "/sys/module/zswap/parameters/enabled", "Y"),
		holds("the firmware's profile is performance", "/sys/firmware/acpi/platform_profile", "performance"),
		holds("the mesh is fixed elsewhere", cpuFolder+"intel_uncore_frequency/uncore00/min_freq_khz", "2400000", xeon),
		holds("more clocks are offered", "/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm", x86()...),
		{
			name:   "unbound work has one housekeeping CPU",
			change: func(n *node) { n.put("/sys/devices/virtual/workqueue/cpumask", n.firstHousekeeping().Mask()+"\n") },
		},
		{
			name: "the queue of a driver is wide, and the mask of all bounds it",
			change: func(n *node) {
				n.put("/sys/devices/virtual/workqueue/nvme-wq/cpumask", n.plan.CPUs.Housekeeping.Union(n.plan.CPUs.Isolated).Mask()+"\n")
			},
		},
		{
			name: "masks have leading zeros and groups",
			change: func(n *node) {
				n.put("/sys/devices/virtual/workqueue/cpumask", "00000000,00000000,"+pad(n.plan.CPUs.Housekeeping.Mask())+"\n")
			},
		},
		{
			name: "housekeeping CPUs save energy", on: x86(),
			change: func(n *node) {
				n.put(cpu(n.housekeeping(), "cpufreq/energy_performance_preference"), "balance_power\n")
				n.put(cpu(n.housekeeping(), "cpufreq/scaling_governor"), "powersave\n")
			},
		},
		{
			name: "the link of a NIC of the host saves power",
			change: func(n *node) {
				for _, file := range n.files("/sys/class/net/" + n.otherNIC() + "/device/link/l1_aspm") {
					n.put(file, "1\n")
				}
			},
		},
	}
}

func variationsOfMasks() []variation {
	const kernel = "/proc/sys/kernel/"
	return []variation{
		{
			name: "the soft-lockup watchdog watches housekeeping CPUs",
			change: func(n *node) {
				n.put(kernel+"soft_watchdog", "1\n")
				n.put(kernel+"watchdog", "1\n")
				n.put(kernel+"watchdog_cpumask", n.plan.CPUs.Housekeeping.String()+"\n")
			},
		},
		{name: "the kernel has no stack tracer", change: func(n *node) { n.remove(kernel + "stack_tracer_enabled") }},
		{
			name: "an idle state is deep and switched off", on: []string{xeonSettings, epycSettings},
			change: func(n *node) {
				n.putIdleState(n.isolated(), 0)
				n.put(cpu(n.isolated(), "cpuidle/state5/disable"), "1\n")
			},
		},
		{
			name: "a limit of the CPU forbids the deep idle state", on: []string{xeonSettings, epycSettings},
			change: func(n *node) {
				n.putIdleState(n.isolated(), 0)
				n.put(cpu(n.isolated(), "power/pm_qos_resume_latency_us"), "10\n")
			},
		},
		{
			name: "no latency is tolerated by the CPU", on: []string{xeonSettings},
			change: func(n *node) {
				n.putIdleState(n.isolated(), 0)
				n.put(cpu(n.isolated(), "power/pm_qos_resume_latency_us"), "n/a\n")
			},
		},
		{
			name: "tracing is set up and off",
			change: func(n *node) {
				n.put("/sys/kernel/tracing/tracing_on", "1\n")
				n.put("/sys/kernel/tracing/buffer_size_kb", "7 (expanded: 1408)\n")
			},
		},
		{name: "tracefs shows nothing of the stack tracer and no events", change: func(n *node) { n.put("/sys/kernel/tracing/set_event", "") }},
	}
}

// pad fills the first group of a mask with zeros, as the kernel does behind another group.
func pad(mask string) string {
	for len(mask) < 8 {
		mask = "0" + mask
	}
	return mask
}
