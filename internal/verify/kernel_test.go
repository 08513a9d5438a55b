// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

const (
	passes       = v1alpha1.OutcomePassed
	fails        = v1alpha1.OutcomeFailed
	isUnknown    = v1alpha1.OutcomeUnknown
	doesNotApply = v1alpha1.Outcome("")
)

func kernelCases() map[v1alpha1.CheckID]checkCases {
	return map[v1alpha1.CheckID]checkCases{
		"kernel.command-line": commandLineCases(),
		"kernel.type": {
			"as planned": {want: passes},
			"the other flavour": {
				change: func(f fixture) { f.facts.Kernel.RealTime = known(true) },
				want:   fails, wantMessage: "the running kernel is of type RealTime, not Default",
			},
			"real-time as planned": {
				change: func(f fixture) {
					f.facts.Kernel.RealTime = known(true)
					f.plan.Kernel.Type = v1alpha1.KernelRealTime
				},
				want: passes,
			},
			"not told": {
				change: func(f fixture) { f.facts.Kernel.RealTime = absent[bool]("/sys/kernel/realtime") },
				want:   isUnknown, wantMessage: "/sys/kernel/realtime cannot be read: no such file",
			},
		},
		"kernel.page-size": pageSizeCases(),
		"kernel.sysctls":   otherSysctlCases(),
		"kernel.sysfs":     otherSysfsCases(),
	}
}

func commandLineCases() checkCases {
	bootedWith := func(old, replacement string) func(f fixture) {
		return func(f fixture) { f.boot(strings.ReplaceAll(soundCommandLine, old, replacement)) }
	}
	return checkCases{
		"a CPU that is offline, and planned without": {
			change: func(f fixture) {
				planWithout7(f)
				f.boot("isolcpus=managed_irq,domain,2-3,6-7 nohz_full=2-3,6-7 rcu_nocbs=2-3,6-7")
			}, want: passes,
		},
		"a CPU that is online, and planned without": {
			change: func(f fixture) {
				planWithout7(f)
				f.facts.CPUs.Online, f.facts.CPUs.Offline = known(list("0-7")), known(list(""))
				f.boot("isolcpus=managed_irq,domain,2-3,6 nohz_full=2-3,6-7 rcu_nocbs=2-3,6")
			}, want: fails, wantMessage: "the kernel was booted with nohz_full=2-3,6-7, wanted nohz_full=2-3,6",
		},
		"as planned, in other notations": {want: passes},
		"an argument is missing": {
			change: bootedWith(" nohz_full=2-3,6-7", ""),
			want:   fails, wantMessage: "the kernel was booted without nohz_full=2-3,6-7",
		},
		"several are missing": {
			change: bootedWith(" nmi_watchdog=0 nosoftlockup", ""),
			want:   fails, wantMessage: "the kernel was booted without nmi_watchdog=0 nosoftlockup",
		},
		"an older CPU list": {
			change: bootedWith("rcu_nocbs=2-3,6-7", "rcu_nocbs=2-3"),
			want:   fails, wantMessage: "the kernel was booted with rcu_nocbs=2-3, wanted rcu_nocbs=2-3,6-7",
		},
		"a flag of isolcpus is missing": {
			change: bootedWith("isolcpus=managed_irq,domain,2-3,6-7", "isolcpus=managed_irq,2-3,6-7"),
			want:   fails, wantMessage: "the kernel was booted with isolcpus=managed_irq,2-3,6-7, wanted isolcpus=domain,managed_irq,2,3,6,7",
		},
		"a later argument overrides": {
			change: bootedWith("nmi_watchdog=0", "nmi_watchdog=0 nmi_watchdog=1"),
			want:   fails, wantMessage: "the kernel was booted with nmi_watchdog=1, wanted nmi_watchdog=0",
		},
		"each word counts":             {change: bootedWith("tsc=reliable", "tsc=reliable tsc=nowatchdog"), want: passes},
		"repeated with the same value": {change: bootedWith("hugepagesz=1G", "tsc=reliable hugepagesz=1G"), want: passes},
		"underscores for dashes":       {change: bootedWith("nmi_watchdog=0", "nmi-watchdog=0"), want: passes},
		"the number of pages belongs to the size before it": {
			change: bootedWith("hugepagesz=1G hugepages=2 hugepagesz=2M hugepages=8", "hugepagesz=1G hugepages=8 hugepagesz=2M hugepages=2"),
			want:   fails,
			wantMessage: "the kernel was booted with hugepagesz=1G hugepages=8, wanted hugepagesz=1G hugepages=2; " +
				"the kernel was booted with hugepagesz=2M hugepages=2, wanted hugepagesz=2M hugepages=8",
		},
		"missing, different and in the way": {
			change: bootedWith(" nosoftlockup tsc=reliable", " tsc=unstable idle=poll"),
			want:   fails,
			wantMessage: "the kernel was booted without nosoftlockup; the kernel was booted with tsc=unstable, wanted tsc=reliable; " +
				"the kernel was booted with idle=poll, which the plan does without",
		},
		"hugepages of a size are missing": {
			change: bootedWith(" hugepagesz=2M hugepages=8", ""),
			want:   fails, wantMessage: "the kernel was booted without hugepagesz=2M hugepages=8",
		},
		"not told": {
			change: func(f fixture) {
				f.facts.Kernel.CommandLine = host.Absent[string]("/proc/cmdline", "permission denied")
			},
			want: isUnknown, wantMessage: "/proc/cmdline cannot be read: permission denied",
		},
		"not a command line": {
			change: func(f fixture) { f.boot("quiet\x00") }, want: isUnknown, wantMessage: "/proc/cmdline",
		},
	}
}

func pageSizeCases() checkCases {
	return checkCases{
		"one size on amd64": {want: doesNotApply},
		"no size planned": {
			change: func(f fixture) { f.plan.Architecture, f.plan.Kernel.PageSize = "arm64", "" }, want: doesNotApply,
		},
		"as planned": {
			change: func(f fixture) { f.plan.Architecture = "arm64" }, want: passes,
		},
		"the small pages": {
			change: func(f fixture) {
				f.plan.Architecture, f.plan.Kernel.PageSize = "arm64", v1alpha1.PageSize64Ki
			},
			want: fails, wantMessage: "the running kernel has pages of 4096 bytes, not 65536 bytes",
		},
		"not told": {
			change: func(f fixture) {
				f.plan.Architecture = "arm64"
				f.facts.Kernel.PageSizeBytes = absent[int64]("/proc/self/smaps")
			},
			want: isUnknown, wantMessage: "/proc/self/smaps",
		},
	}
}

func otherSysctlCases() checkCases {
	return checkCases{
		"as planned":         {want: passes},
		"none without owner": {change: func(f fixture) { f.plan.Sysctls = nil }, want: doesNotApply},
		"set back": {
			change: func(f fixture) { f.set("/proc/sys/net/core/netdev_budget", "0") },
			want:   fails, wantMessage: "/proc/sys/net/core/netdev_budget is 0, not 50",
		},
		"other white space": {
			change: func(f fixture) {
				f.plan.Sysctls = settings("net.ipv4.tcp_rmem", "4096 87380  6291456")
				f.set("/proc/sys/net/ipv4/tcp_rmem", "4096\t87380\t6291456")
			},
			want: passes,
		},
		"missing": {
			change: func(f fixture) { f.remove("/proc/sys/net/core/netdev_budget") },
			want:   isUnknown, wantMessage: "/proc/sys/net/core/netdev_budget",
		},
		"one wrong and one missing": {
			change: func(f fixture) {
				f.plan.Sysctls = settings("net.core.netdev_budget", "50", "net.core.dev_weight", "50")
				f.set("/proc/sys/net/core/netdev_budget", "0")
			},
			want: fails, wantMessage: "/proc/sys/net/core/netdev_budget is 0, not 50",
		},
	}
}

func otherSysfsCases() checkCases {
	return checkCases{
		"as planned": {want: passes},
		"set back": {
			change: func(f fixture) { f.set("/sys/module/test/parameters/quiet", "N") },
			want:   fails, wantMessage: "/sys/module/test/parameters/quiet is N, not Y",
		},
		"a mask in another notation": {
			change: func(f fixture) {
				f.plan.Sysfs = settings("/sys/devices/virtual/workqueue/nvme/cpumask", "00000000,00000033")
				f.set("/sys/devices/virtual/workqueue/nvme/cpumask", "33")
			},
			want: passes,
		},
		"another mask": {
			change: func(f fixture) {
				f.plan.Sysfs = settings("/sys/devices/virtual/workqueue/nvme/cpumask", "33")
				f.set("/sys/devices/virtual/workqueue/nvme/cpumask", "ff")
			},
			want: fails, wantMessage: "/sys/devices/virtual/workqueue/nvme/cpumask is ff, not 33",
		},
		"no mask": {
			change: func(f fixture) {
				f.plan.Sysfs = settings("/sys/devices/virtual/workqueue/nvme/cpumask", "33")
				f.set("/sys/devices/virtual/workqueue/nvme/cpumask", "x")
			},
			want: fails, wantMessage: "/sys/devices/virtual/workqueue/nvme/cpumask is x, not 33",
		},
		"empty": {
			change: func(f fixture) { f.set("/sys/module/test/parameters/quiet", "") },
			want:   fails, wantMessage: "/sys/module/test/parameters/quiet is empty, not Y",
		},
		"missing": {
			change: func(f fixture) { f.remove("/sys/module/test/parameters/quiet") },
			want:   isUnknown, wantMessage: "/sys/module/test/parameters/quiet",
		},
	}
}
