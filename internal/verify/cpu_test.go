// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// partitionDataPlane gives CPU 7 to the data plane, which is to be a partition of its own.
func partitionDataPlane(f fixture) {
	f.plan.CPUs.DataPlane, f.plan.CPUs.DataPlaneBalancing = list("7"), v1alpha1.LoadBalancingDisabled
}

// planWithout7 takes CPU 7 offline, which the running kernel was booted to isolate, and plans without it.
func planWithout7(f fixture) {
	f.facts.CPUs.Online, f.facts.CPUs.Offline = known(list("0-6")), known(list("7"))
	f.eachCPU(func(c *host.CPU) { c.Online = known(false) }, 7)
	f.plan.CPUs.Isolated = list("2-3,6")
	f.plan.KernelArguments = arguments("isolcpus=domain,managed_irq,2,3,6", "nohz_full=2-3,6", "rcu_nocbs=2-3,6")
}

func partitionCases() map[v1alpha1.CheckID]checkCases {
	return map[v1alpha1.CheckID]checkCases{
		"cpu.partition": soundnessCases(),
		"cpu.online": {
			"as planned": {want: passes},
			"offline": {
				change: func(f fixture) { f.eachCPU(func(c *host.CPU) { c.Online = known(false) }, 3, 6) },
				want:   fails, wantMessage: "CPUs 3,6: offline",
			},
			"offline, and planned without": {
				change: planWithout7, want: fails, wantMessage: "CPU 7: offline",
			},
			"offline, as planned": {
				change: func(f fixture) { planWithout7(f); f.plan.CPUs.Offline = list("7") }, want: passes,
			},
			"a sibling that nosmt keeps offline": {
				change: func(f fixture) { planWithout7(f); f.boot(soundCommandLine + " nosmt") }, want: passes,
			},
			"not listed": {
				change: func(f fixture) { f.facts.CPUs.List = f.facts.CPUs.List[:7] },
				want:   isUnknown, wantMessage: "/sys/devices/system/cpu/cpu7 cannot be read: no such CPU",
			},
		},
		"cpu.siblings": {
			"as planned": {want: passes},
			"a split core": {
				change: func(f fixture) {
					f.eachCPU(func(c *host.CPU) { c.Siblings = known(list("2,5")) }, 2)
				},
				want: fails, wantMessage: "CPU 2: its core is shared with CPU 5, which is not isolated",
			},
			"siblings that the firmware numbers as cores": {
				change: func(f fixture) {
					f.eachCPU(func(c *host.CPU) { c.Siblings, c.Core = known(list("2,5")), known(2) }, 2)
					f.eachCPU(func(c *host.CPU) { c.Core = known(5) }, 5)
				},
				want: passes,
			},
			"siblings with one number": {
				change: func(f fixture) {
					f.eachCPU(func(c *host.CPU) { c.Siblings, c.Core = known(list("2,5")), known(2) }, 2)
					f.eachCPU(func(c *host.CPU) { c.Core = known(2) }, 5)
				},
				want: fails, wantMessage: "CPU 2: its core is shared with CPU 5, which is not isolated",
			},
			"the sibling is offline": {
				change: func(f fixture) {
					f.eachCPU(func(c *host.CPU) { c.Siblings = known(list("2,9")) }, 2)
				},
				want: passes,
			},
			"an offline CPU, of which the kernel tells no sibling": {
				change: func(f fixture) {
					f.facts.CPUs.Online = known(list("0-2,4-7"))
					f.eachCPU(func(c *host.CPU) { c.Siblings = absent[cpus.Set]("thread_siblings_list") }, 3)
				},
				want: passes,
			},
			"not told": {
				change: func(f fixture) {
					f.eachCPU(func(c *host.CPU) { c.Siblings = absent[cpus.Set]("thread_siblings_list") }, 2, 3)
				},
				want: isUnknown, wantMessage: "thread_siblings_list cannot be read: no such file, nor those of 1 more CPUs of 2-3",
			},
		},
		"cpu.smt": {
			"kept": {want: doesNotApply},
			"off": {
				change: func(f fixture) { f.plan.CPUs.SMT = v1alpha1.SMTDisabled; f.set(settingSMTActive, "0") }, want: passes,
			},
			"on": {
				change: func(f fixture) { f.plan.CPUs.SMT = v1alpha1.SMTDisabled },
				want:   fails, wantMessage: "/sys/devices/system/cpu/smt/active is 1, not 0",
			},
			"not told": {
				change: func(f fixture) { f.plan.CPUs.SMT = v1alpha1.SMTDisabled; f.remove(settingSMTActive) },
				want:   isUnknown, wantMessage: settingSMTActive,
			},
		},
	}
}

func soundnessCases() checkCases {
	return checkCases{
		"as planned": {want: passes},
		"a CPU in both sets": {
			change: func(f fixture) { f.plan.CPUs.Housekeeping = list("0-2,4-5") },
			want:   fails, wantMessage: "CPU 2 is planned as housekeeping and as isolated",
		},
		"no housekeeping": {
			change: func(f fixture) { f.plan.CPUs.Housekeeping = cpus.Set{} },
			want:   fails, wantMessage: "the plan has no housekeeping CPU",
		},
		"a CPU in neither set": {
			change: func(f fixture) { f.facts.CPUs.Online = known(list("0-9")) },
			want:   fails, wantMessage: "CPUs 8-9 are online and neither housekeeping nor isolated",
		},
		"a housekeeping CPU is gone": {
			change: func(f fixture) { f.facts.CPUs.Online = known(list("0,2-7")) },
			want:   fails, wantMessage: "housekeeping CPU 1 is not online",
		},
		"told by the CPUs one by one": {
			change: func(f fixture) { f.facts.CPUs.Online = absent[cpus.Set]("/sys/devices/system/cpu/online") },
			want:   passes,
		},
		"not told": {
			change: func(f fixture) {
				f.facts.CPUs.Online = absent[cpus.Set]("/sys/devices/system/cpu/online")
				f.facts.CPUs.List = nil
			},
			want: isUnknown, wantMessage: "/sys/devices/system/cpu/online",
		},
		"one CPU does not report": {
			change: func(f fixture) {
				f.facts.CPUs.Online = absent[cpus.Set]("/sys/devices/system/cpu/online")
				f.facts.CPUs.List[5].Online = absent[bool]("/sys/devices/system/cpu/cpu5/online")
			},
			want: isUnknown, wantMessage: "/sys/devices/system/cpu/cpu5/online",
		},
	}
}

func isolationCases() map[v1alpha1.CheckID]checkCases {
	return map[v1alpha1.CheckID]checkCases{
		"cpu.isolated": isolatedCases(),
		"cpu.nohz-full": {
			"as planned": {want: passes},
			"the tick is kept": {
				change: func(f fixture) { f.plan.CPUs.Tick = v1alpha1.TickPeriodic; f.facts.CPUs.NoHzFull = known(cpus.Set{}) },
				want:   doesNotApply,
			},
			"none": {
				change:      func(f fixture) { f.facts.CPUs.NoHzFull = known(cpus.Set{}) },
				want:        fails,
				wantMessage: "isolated CPUs 2-3,6-7 are interrupted by the scheduler tick: they are not in /sys/devices/system/cpu/nohz_full",
			},
			"a kernel without it": {
				change: func(f fixture) { f.facts.CPUs.NoHzFull = absent[cpus.Set]("/sys/devices/system/cpu/nohz_full") },
				want:   isUnknown, wantMessage: "/sys/devices/system/cpu/nohz_full",
			},
		},
		"cpu.rcu-offload": rcuCases(),
		"cpu.init-affinity": {
			"as planned": {want: passes},
			"everywhere": {
				change: func(f fixture) { f.set(settingInitStatus, "Name:\tsystemd\nCpus_allowed_list:\t0-7\n") },
				want:   fails, wantMessage: "isolated CPUs 2-3,6-7 are open to process 1: they are in its Cpus_allowed_list",
			},
			"left to pods": {
				change: func(f fixture) { f.plan.CPUs.Isolation = v1alpha1.IsolationPerPod; f.plan.KernelArguments = nil },
				want:   doesNotApply,
			},
			"left to pods but planned": {
				change: func(f fixture) { f.plan.CPUs.Isolation = v1alpha1.IsolationPerPod }, want: passes,
			},
			"missing": {
				change: func(f fixture) { f.remove(settingInitStatus) }, want: isUnknown, wantMessage: settingInitStatus,
			},
			"a status without it": {
				change: func(f fixture) { f.set(settingInitStatus, "Name:\tsystemd\n") },
				want:   isUnknown, wantMessage: "/proc/1/status cannot be read: it has no Cpus_allowed_list",
			},
		},
	}
}

func isolatedCases() checkCases {
	return checkCases{
		"the data plane is a partition": {
			change: func(f fixture) { partitionDataPlane(f); f.set(settingDataPlane, "isolated") }, want: passes,
		},
		"the data plane could be none": {
			change: func(f fixture) {
				partitionDataPlane(f)
				f.set(settingDataPlane, "isolated invalid (Cpu list in cpuset.cpus not exclusive)")
			},
			want: fails, wantMessage: "the scheduler balances tasks onto the data plane's CPU 7: " + settingDataPlane + " is isolated invalid (Cpu list in cpuset.cpus not exclusive)",
		},
		"the data plane is a member of others": {
			change: func(f fixture) { partitionDataPlane(f); f.set(settingDataPlane, "member") },
			want:   fails, wantMessage: "the scheduler balances tasks onto the data plane's CPU 7: " + settingDataPlane + " is member",
		},
		"the data plane's group is not told": {change: partitionDataPlane, want: isUnknown, wantMessage: settingDataPlane},
		"the data plane stays balanced": {
			change: func(f fixture) { partitionDataPlane(f); f.plan.CPUs.DataPlaneBalancing = v1alpha1.LoadBalancingKept }, want: passes,
		},
		"by the command line": {want: passes},
		"by a cgroup": {
			change: func(f fixture) {
				f.facts.CPUs.Isolated = known(cpus.Set{})
				f.set(settingCgroupIsolated, "2-3,6-7")
			},
			want: passes,
		},
		"by both together": {
			change: func(f fixture) {
				f.facts.CPUs.Isolated = known(list("2-3"))
				f.set(settingCgroupIsolated, "6-7")
			},
			want: passes,
		},
		"by neither": {
			change:      func(f fixture) { f.facts.CPUs.Isolated = known(list("2,6-7")) },
			want:        fails,
			wantMessage: "isolated CPU 3 is in the scheduler's domains: it is not in /sys/devices/system/cpu/isolated",
		},
		"not told": {
			change: func(f fixture) { f.facts.CPUs.Isolated = absent[cpus.Set]("/sys/devices/system/cpu/isolated") },
			want:   isUnknown, wantMessage: "/sys/devices/system/cpu/isolated",
		},
		"left to pods": {
			change: func(f fixture) { f.plan.CPUs.Isolation = v1alpha1.IsolationPerPod }, want: doesNotApply,
		},
		"left to pods, command line not told": {
			change: func(f fixture) {
				f.plan.CPUs.Isolation = v1alpha1.IsolationPerPod
				f.facts.Kernel.CommandLine = absent[string]("/proc/cmdline")
			},
			want: doesNotApply,
		},
		"by TuneD": {
			change: func(f fixture) {
				f.plan.CPUs.Isolation = v1alpha1.IsolationPerPod
				f.boot("tuned.non_isolcpus=00000033")
			},
			want: passes,
		},
		"by TuneD for other CPUs": {
			change: func(f fixture) {
				f.plan.CPUs.Isolation = v1alpha1.IsolationPerPod
				f.boot("tuned.non_isolcpus=0000003f")
			},
			want: fails, wantMessage: "isolated CPUs 2-3 are left to all tasks by TuneD: they are in tuned.non_isolcpus",
		},
		"by TuneD, unreadably": {
			change: func(f fixture) {
				f.plan.CPUs.Isolation = v1alpha1.IsolationPerPod
				f.boot("tuned.non_isolcpus=2-3")
			},
			want: isUnknown, wantMessage: "tuned.non_isolcpus",
		},
	}
}

func rcuCases() checkCases {
	ticking := func(commandLine string) func(f fixture) {
		return func(f fixture) {
			f.facts.CPUs.NoHzFull = known(cpus.Set{})
			f.boot(commandLine)
		}
	}
	return checkCases{
		"implied by nohz_full":    {change: func(f fixture) { f.boot("quiet") }, want: passes},
		"asked for":               {change: ticking("rcu_nocbs=2-3,6-7"), want: passes},
		"asked for all":           {change: ticking("rcu_nocbs=all"), want: passes},
		"asked for none":          {change: ticking("rcu_nocbs=none"), want: fails, wantMessage: rcuMessage("CPUs 2-3,6-7 are", "they are")},
		"asked for up to the end": {change: ticking("rcu_nocbs=2-3,6-N"), want: passes},
		"missing":                 {change: ticking("rcu_nocbs=2-3,6"), want: fails, wantMessage: rcuMessage("CPU 7 is", "it is")},
		"nohz_full is not told but on the command line": {
			change: func(f fixture) {
				f.boot("nohz_full=2-3,6-7")
				f.facts.CPUs.NoHzFull = absent[cpus.Set]("/sys/devices/system/cpu/nohz_full")
			},
			want: passes,
		},
		"nothing is told": {
			change: func(f fixture) {
				f.facts.Kernel.CommandLine = absent[string]("/proc/cmdline")
				f.facts.CPUs.NoHzFull = absent[cpus.Set]("/sys/devices/system/cpu/nohz_full")
			},
			want: isUnknown, wantMessage: "/proc/cmdline",
		},
	}
}

func rcuMessage(cpus, they string) string {
	return strings.Join([]string{"isolated", cpus, "left to run RCU callbacks:", they, "neither in rcu_nocbs= nor in nohz_full="}, " ")
}
