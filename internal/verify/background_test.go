// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// sysctlCases are the cases of a check that compares one planned kernel parameter.
func sysctlCases(name, planned, other string) checkCases {
	path := "/proc/sys/" + strings.ReplaceAll(name, ".", "/")
	return checkCases{
		"as planned": {want: passes},
		"not planned": {
			change: func(f fixture) {
				f.plan.Sysctls = slices.DeleteFunc(f.plan.Sysctls, func(s plan.Setting) bool { return s.Name == name })
			},
			want: doesNotApply,
		},
		"another value": {
			change: func(f fixture) { f.set(path, other) }, want: fails, wantMessage: path + " is " + other + ", not " + planned,
		},
		"missing":   {change: func(f fixture) { f.remove(path) }, want: isUnknown, wantMessage: path},
		"not built": builtWithout(path, planned),
	}
}

// builtWithout is what a check makes of a kernel without the file: the same as of the planned value if that is nothing.
func builtWithout(path, planned string) checkCase {
	built := checkCase{change: func(f fixture) { f.unbuild(path) }, want: passes}
	if planned != "0" {
		built.want, built.wantMessage = fails, "the running kernel has no "+path+", which is to be "+planned
	}
	return built
}

// unplan removes arguments from the plan.
func unplan(f fixture, texts ...string) {
	f.plan.KernelArguments = slices.DeleteFunc(f.plan.KernelArguments, func(a plan.Argument) bool {
		return slices.Contains(texts, a.Text)
	})
}

func backgroundCases() map[v1alpha1.CheckID]checkCases {
	return map[v1alpha1.CheckID]checkCases{
		"kernel.nmi-watchdog": {
			"as planned": {want: passes},
			"kept":       {change: func(f fixture) { unplan(f, "nmi_watchdog=0") }, want: doesNotApply},
			"running": {
				change: func(f fixture) { f.set(settingNMIWatchdog, "1") },
				want:   fails, wantMessage: "/proc/sys/kernel/nmi_watchdog is 1, not 0",
			},
			"planned as a parameter": {
				change: func(f fixture) {
					unplan(f, "nmi_watchdog=0")
					f.plan.Sysctls = settings("kernel.nmi_watchdog", "0")
				},
				want: passes,
			},
			"missing": {change: func(f fixture) { f.remove(settingNMIWatchdog) }, want: isUnknown, wantMessage: settingNMIWatchdog},
		},
		"kernel.soft-watchdog": softWatchdogCases(),
		"kernel.machine-checks": {
			"as planned": {want: passes},
			"kept":       {change: func(f fixture) { unplan(f, "mce=ignore_ce") }, want: doesNotApply},
			"polling": {
				change: func(f fixture) { f.set(settingIgnoreCE, "0") },
				want:   fails, wantMessage: settingIgnoreCE + " is 0, not 1",
			},
			"never polling": {
				change: func(f fixture) { f.set(settingIgnoreCE, "0"); f.set(settingCheckInterval, "0") }, want: passes,
			},
			"off": {
				change: func(f fixture) {
					f.plan.KernelArguments = arguments("mce=off")
					f.boot("mce=off")
					f.remove(settingIgnoreCE)
				},
				want: passes,
			},
			"missing": {change: func(f fixture) { f.remove(settingIgnoreCE) }, want: isUnknown, wantMessage: settingIgnoreCE},
		},
		"kernel.rt-throttling":   sysctlCases("kernel.sched_rt_runtime_us", "-1", "950000"),
		"kernel.timer-migration": sysctlCases("kernel.timer_migration", "1", "0"),
	}
}

func softWatchdogCases() checkCases {
	return checkCases{
		"off":  {want: passes},
		"kept": {change: func(f fixture) { unplan(f, "nosoftlockup") }, want: doesNotApply},
		"all watchdogs off": {
			change: func(f fixture) { f.set(settingSoftWatchdog, "1"); f.set(settingWatchdog, "0") }, want: passes,
		},
		"kept to housekeeping CPUs": {
			change: func(f fixture) { f.set(settingSoftWatchdog, "1"); f.set(settingWatchdogCPUs, "0-1,4-5") }, want: passes,
		},
		"running everywhere": {
			change: func(f fixture) { f.set(settingSoftWatchdog, "1"); f.set(settingWatchdogCPUs, "0-7") },
			want:   fails, wantMessage: "/proc/sys/kernel/soft_watchdog is 1, and the watchdog runs on isolated CPUs",
		},
		"planned as a parameter": {
			change: func(f fixture) {
				unplan(f, "nosoftlockup")
				f.plan.Sysctls = settings("kernel.watchdog", "0")
			},
			want: passes,
		},
		"missing": {change: func(f fixture) { f.remove(settingSoftWatchdog) }, want: isUnknown, wantMessage: settingSoftWatchdog},
	}
}

func memoryCases() map[v1alpha1.CheckID]checkCases {
	return map[v1alpha1.CheckID]checkCases{
		"memory.numa-balancing":        sysctlCases("kernel.numa_balancing", "0", "1"),
		"memory.vmstat":                sysctlCases("vm.stat_interval", "10", "1"),
		"memory.compaction":            sysctlCases("vm.compaction_proactiveness", "0", "20"),
		"memory.transparent-hugepages": memoryTransparentHugepagesCases(),
		"memory.ksm": {
			"as planned": {want: passes},
			"stopped":    {change: func(f fixture) { f.set(settingKSM, "0") }, want: passes},
			"kept":       {change: func(f fixture) { f.plan.Sysfs = nil }, want: doesNotApply},
			"running": {
				change: func(f fixture) { f.set(settingKSM, "1") }, want: fails, wantMessage: settingKSM + " is 1: pages of programs are merged",
			},
			"missing":   {change: func(f fixture) { f.remove(settingKSM) }, want: isUnknown, wantMessage: settingKSM},
			"not built": {change: func(f fixture) { f.unbuild(settingKSM, settingKSMShared) }, want: passes},
		},
		"memory.swap": {
			"none":      {want: passes},
			"not built": {change: func(f fixture) { f.unbuild(settingSwaps, settingSwappiness) }, want: passes},
			"hardly used": {
				change: func(f fixture) { f.set(settingSwaps, swapHeading+swapLine("0")); f.set(settingSwappiness, "10") },
				want:   passes,
			},
			"used with the lowest swappiness": {
				change: func(f fixture) { f.set(settingSwaps, swapHeading+swapLine("524288")); f.set(settingSwappiness, "0") },
				want:   fails, wantMessage: "512 MiB of memory is swapped out to /dev/dm-1",
			},
			"used on two areas": {
				change: func(f fixture) {
					f.set(settingSwaps, swapHeading+swapLine("524288")+"/dev/zram0 partition 8388604 524288 100\n")
				},
				want: fails, wantMessage: "1 GiB of memory is swapped out to /dev/dm-1; /dev/zram0",
			},
			"may be used": {
				change: func(f fixture) { f.set(settingSwaps, swapHeading+swapLine("0")) },
				want:   fails, wantMessage: "the host can swap to /dev/dm-1, and vm.swappiness is 60",
			},
			"a deleted file in use": {
				change: func(f fixture) { f.set(settingSwaps, swapHeading+"/swap.img (deleted) file 1024 8 -2\n") },
				want:   fails, wantMessage: "8 KiB of memory is swapped out to /swap.img",
			},
			"another format": {
				change: func(f fixture) { f.set(settingSwaps, swapHeading+"/dev/sdb1 partition\n") },
				want:   isUnknown, wantMessage: "a line with 2 columns",
			},
			"missing": {change: func(f fixture) { f.remove(settingSwaps) }, want: isUnknown, wantMessage: settingSwaps},
			"swappiness is missing": {
				change: func(f fixture) { f.set(settingSwaps, swapHeading+swapLine("0")); f.remove(settingSwappiness) },
				want:   isUnknown, wantMessage: settingSwappiness,
			},
		},
	}
}

func memoryTransparentHugepagesCases() checkCases {
	return checkCases{
		"as planned": {want: passes},
		"kept":       {change: func(f fixture) { f.plan.Sysfs = nil }, want: doesNotApply},
		"planned as an argument": {
			change: func(f fixture) {
				f.plan.Sysfs = nil
				f.plan.KernelArguments = arguments("transparent_hugepage=never")
			},
			want: passes,
		},
		"on request": {
			change: func(f fixture) { f.set(settingTHP, "always [madvise] never") },
			want:   fails, wantMessage: settingTHP + " is always [madvise] never, not never",
		},
		"missing": {change: func(f fixture) { f.remove(settingTHP) }, want: isUnknown, wantMessage: settingTHP},
		"not built": {
			change: func(f fixture) {
				f.unbuild(settingTHP, settingTHPShared)
				f.remove(transparentSize+"enabled", transparentSize+"shmem_enabled")
			},
			want: passes,
		},
		"a kernel without sizes": {
			change: func(f fixture) { f.remove(transparentSize+"enabled", transparentSize+"shmem_enabled") }, want: passes,
		},
		"always for one size": {
			change: func(f fixture) { f.set(transparentSize+"enabled", "[always] inherit madvise never") },
			want:   fails, wantMessage: transparentSize + "enabled is [always] inherit madvise never, not never",
		},
		"on request for one size": {
			change: func(f fixture) { f.set(transparentSize+"enabled", "always inherit [madvise] never") },
			want:   fails, wantMessage: transparentSize + "enabled is always inherit [madvise] never, not never",
		},
		"on request for one size and planned so": {
			change: func(f fixture) {
				f.plan.Sysfs = settings(settingTHP, "madvise")
				f.set(settingTHP, "always [madvise] never")
				f.set(transparentSize+"enabled", "always inherit [madvise] never")
				f.set(settingTHPShared, "[always] within_size advise never deny force")
			},
			want: passes,
		},
		"shared memory": {
			change: func(f fixture) { f.set(settingTHPShared, "always [within_size] advise never deny force") },
			want:   fails, wantMessage: settingTHPShared + " is always [within_size] advise never deny force, not never",
		},
		"denied to shared memory": {
			change: func(f fixture) { f.set(settingTHPShared, "always within_size advise never [deny] force") }, want: passes,
		},
		"shared memory of one size": {
			change: func(f fixture) { f.set(transparentSize+"shmem_enabled", "[always] inherit within_size advise never") },
			want:   fails, wantMessage: transparentSize + "shmem_enabled is [always] inherit within_size advise never, not never",
		},
		"a size cannot be read": {
			change: func(f fixture) {
				f.facts.Settings[transparentSize+"enabled"] = host.Absent[string](transparentSize+"enabled", "permission denied")
			},
			want: isUnknown, wantMessage: transparentSize + "enabled cannot be read: permission denied",
		},
	}
}

const swapHeading = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"

func swapLine(used string) string {
	return "/dev/dm-1                               partition\t8388604\t\t" + used + "\t\t-2\n"
}

func clockCases() map[v1alpha1.CheckID]checkCases {
	virtual := func(f fixture) {
		f.facts.Processor.Hypervisor = known("KVM")
		f.set(settingClocksource, "kvm-clock")
		unplan(f, "tsc=reliable")
	}
	return map[v1alpha1.CheckID]checkCases{
		"clock.source": {
			"the register": {want: passes},
			"a slow one": {
				change: func(f fixture) { f.set(settingClocksource, "hpet") },
				want:   fails, wantMessage: "the kernel keeps time with hpet, not tsc",
			},
			"a virtual machine": {change: virtual, want: passes},
			"a virtual machine that was to use the register": {
				change: func(f fixture) { virtual(f); f.plan.KernelArguments = arguments("tsc=reliable") },
				want:   fails, wantMessage: "the kernel keeps time with kvm-clock, not tsc",
			},
			"a virtual clock on hardware": {
				change: func(f fixture) { virtual(f); f.facts.Processor.Hypervisor = known("") },
				want:   fails, wantMessage: "the kernel keeps time with kvm-clock, not tsc",
			},
			"arm64": {
				change: func(f fixture) { f.plan.Architecture = "arm64"; f.set(settingClocksource, "arch_sys_counter") }, want: passes,
			},
			"missing": {change: func(f fixture) { f.remove(settingClocksource) }, want: isUnknown, wantMessage: settingClocksource},
		},
		"clock.tsc": {
			"invariant":         {want: passes},
			"arm64":             {change: func(f fixture) { f.plan.Architecture = "arm64" }, want: doesNotApply},
			"a virtual machine": {change: virtual, want: doesNotApply},
			"stops": {
				change: func(f fixture) { f.facts.Processor.Flags = known([]string{"constant_tsc"}) },
				want:   fails, wantMessage: "the processor lacks nonstop_tsc",
			},
			"is not passed on to a virtual machine": {
				change: func(f fixture) {
					virtual(f)
					f.plan.KernelArguments = arguments("tsc=reliable")
					f.facts.Processor.Flags = known([]string{"constant_tsc", "hypervisor"})
				},
				want:        fails,
				wantMessage: "the virtual machine lacks nonstop_tsc: its hypervisor (KVM) does not pass an invariant counter on",
			},
			"was found unstable": {
				change: func(f fixture) { f.set(settingClocksource, "hpet"); f.set(settingClocksources, "hpet acpi_pm") },
				want:   fails, wantMessage: "the kernel found the time-stamp counter unstable: it offers hpet acpi_pm only",
			},
			"was found unstable in a virtual machine": {
				change: func(f fixture) {
					virtual(f)
					f.plan.KernelArguments = arguments("tsc=reliable")
					f.set(settingClocksources, "kvm-clock acpi_pm")
				},
				want: fails, wantMessage: "the kernel found the time-stamp counter unstable: it offers kvm-clock acpi_pm only",
			},
			"not told": {
				change: func(f fixture) { f.facts.Processor.Flags = absent[[]string]("/proc/cpuinfo") },
				want:   isUnknown, wantMessage: "/proc/cpuinfo",
			},
		},
	}
}
