// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

const commandLine v1alpha1.CheckID = "kernel.command-line"

// booted is a fault that a change of the kernel's arguments makes.
func booted(name string, change func([]string) []string, says ...string) fault {
	return fault{name: name, harm: func(n *node) { n.reboot(change) }, want: commandLine, says: says}
}

// spelled is a change of arguments that means the same.
func spelled(name string, change func(*node, []string) []string) variation {
	return variation{name: name, change: func(n *node) {
		n.reboot(func(arguments []string) []string { return change(n, arguments) })
	}}
}

// alone removes the last CPU from a set of a planned argument.
func alone(n *node, name string) string {
	value := n.planned(name)
	return value[:strings.LastIndexAny(value, ",-")]
}

func faultsOfArguments() []fault {
	return []fault{
		booted("irqaffinity is missing", argument("irqaffinity"), "irqaffinity"),
		booted("irqaffinity names an isolated CPU", argument("irqaffinity", "irqaffinity=0-3"), "irqaffinity=0-3"),
		booted("systemd.cpu_affinity is missing", argument("systemd.cpu_affinity"), "systemd.cpu_affinity"),
		booted("fewer hugepages were asked for", argument("hugepages", "hugepages=8"), "hugepages"),
		booted("hugepages were asked for of one NUMA node", argument("hugepages", "hugepages=0:16"), "hugepages"),
		booted("the default size of hugepages is another", argument("default_hugepagesz", "default_hugepagesz=2M"), "default_hugepagesz"),
		booted("a later argument brings the tick back", more("nohz=off"), "nohz=off"),
		booted("a later argument switches the hard-lockup watchdog on", more("nmi_watchdog=1"), "nmi_watchdog"),
		booted("a later argument lets hugepages be transparent", more("transparent_hugepage=always"), "transparent_hugepage"),
		booted("skew_tick is 0", argument("skew_tick", "skew_tick=0"), "skew_tick"),
		booted("grace periods hurry after boot", argument("rcupdate.rcu_normal_after_boot", "rcupdate.rcu_normal_after_boot=0"), "rcu_normal_after_boot"),
		{
			name: "the arguments stand behind two hyphens and belong to process 1",
			harm: func(n *node) {
				n.reboot(func(arguments []string) []string { return append([]string{"--"}, arguments...) })
			},
			want: commandLine, says: []string{"isolcpus", `what stands behind "--" is for process 1`},
		},
		{
			name: "an argument has a typing error",
			harm: func(n *node) { n.reboot(argument("nohz_full", "nohzfull="+n.planned("nohz_full"))) },
			want: commandLine, says: []string{"nohz_full"},
		},
		{
			name: "nohz_full lacks a CPU",
			harm: func(n *node) { n.reboot(argument("nohz_full", "nohz_full="+alone(n, "nohz_full"))) },
			want: "cpu.nohz-full", says: []string{"scheduler tick"}, makes: []string{v1alpha1.ConditionDeJittered},
		},
		{
			name: "isolcpus lacks a CPU",
			harm: func(n *node) { n.reboot(argument("isolcpus", "isolcpus="+alone(n, "isolcpus"))) },
			want: "cpu.isolated", says: []string{"in the scheduler's domains"}, makes: []string{v1alpha1.ConditionDeJittered},
		},
		{
			name: "isolcpus keeps interrupts off only",
			harm: func(n *node) { n.reboot(argument("isolcpus", "isolcpus=managed_irq,"+n.plan.CPUs.Isolated.String())) },
			want: "cpu.isolated", says: []string{"in the scheduler's domains"}, makes: []string{v1alpha1.ConditionDeJittered},
		},
		{
			name: "isolcpus lets managed interrupts in",
			harm: func(n *node) { n.reboot(argument("isolcpus", "isolcpus=domain,"+n.plan.CPUs.Isolated.String())) },
			want: "irq.managed", says: []string{"managed interrupts"},
		},
		{
			name: "nohz_full is given twice, and the first names one CPU",
			harm: func(n *node) {
				n.reboot(argument("nohz_full", "nohz_full=1", "nohz_full="+n.planned("nohz_full")))
			},
			want: commandLine, says: []string{"nohz_full"},
		},
		{
			name: "nothing offloads RCU callbacks",
			harm: func(n *node) {
				n.reboot(func(arguments []string) []string { return argument("nohz_full")(argument("rcu_nocbs")(arguments)) })
			},
			want: "cpu.rcu-offload", says: []string{"RCU callbacks"},
		},
		{
			name: "idle CPUs sleep", on: usualMachines(),
			harm: func(n *node) { n.reboot(argument(polling(n))) },
			want: "power.idle-states", makes: []string{v1alpha1.ConditionDeJittered},
		},
	}
}

func faultsOfKernels() []fault {
	return []fault{
		{
			name: "the frequency driver is passive", on: []string{xeon},
			harm: func(n *node) { n.reboot(argument("intel_pstate", "intel_pstate=passive")) },
			want: "power.frequency-driver", says: []string{"passive"},
		},
		{
			name: "the frequency driver is ACPI's", on: []string{epyc},
			harm: func(n *node) { n.reboot(argument("amd_pstate")) },
			want: "power.frequency-driver", says: []string{"frequency driver acpi-cpufreq, which has no mode "},
		},
		{
			name: "the IOMMU translates", on: x86(),
			harm: func(n *node) { n.reboot(argument("iommu", "iommu=nopt")) },
			want: commandLine, says: []string{"iommu"},
		},
		{
			name: "the TSC is not declared reliable", on: x86(),
			harm: func(n *node) { n.reboot(argument("tsc")) },
			want: commandLine, says: []string{"tsc=reliable"},
		},
		{
			name: "callback threads have no real-time priority", on: []string{xeonRT, epycRT, arm612RT},
			harm: func(n *node) { n.reboot(argument("rcutree.kthread_prio")) },
			want: commandLine, says: []string{"rcutree.kthread_prio"},
		},
		{
			name: "the usual kernel was planned, the real-time one runs",
			harm: func(n *node) {
				n.rendered.Spec.KernelType = "realtime"
				n.reboot(more())
			},
			want: "kernel.type", says: []string{"of type RealTime"},
		},
		{
			name: "pages of 64 KiB were planned, the kernel has 4 KiB", on: []string{arm64k},
			harm: func(n *node) {
				n.rendered.Spec.KernelType = "default"
				n.reboot(more())
			},
			want: "kernel.page-size", says: []string{"pages of 4096 bytes, not 65536 bytes"},
		},
		{
			name: "pages of 4 KiB were planned, the kernel has 64 KiB", on: []string{arm},
			harm: func(n *node) {
				n.rendered.Spec.KernelType = "64k-pages"
				n.rendered.Spec.KernelArguments = nil
				n.reboot(more())
			},
			want: "kernel.page-size", says: []string{"pages of 65536 bytes, not 4096 bytes"},
		},
		{
			name: "machine checks are polled for", on: []string{xeonSettings, epycSettings},
			harm: func(n *node) { n.reboot(argument("mce")) },
			want: "kernel.machine-checks", says: []string{"ignore_ce"},
		},
	}
}

// polling is the name of the argument by which idle CPUs spin.
func polling(n *node) string {
	if n.hardware.Architecture == "arm64" {
		return "nohlt"
	}
	return "idle"
}

func variationsOfArguments() []variation {
	replace := func(name string, value func(n *node) string) func(*node, []string) []string {
		return func(n *node, arguments []string) []string { return argument(name, value(n))(arguments) }
	}
	adding := func(others ...string) func(*node, []string) []string {
		return func(_ *node, arguments []string) []string { return more(others...)(arguments) }
	}
	return []variation{
		spelled("rcu_nocbs is missing, and nohz_full implies it", func(_ *node, arguments []string) []string { return argument("rcu_nocbs")(arguments) }),
		spelled("nohz_full names each CPU", replace("nohz_full", func(n *node) string {
			return "nohz_full=" + strings.Join(numbers(n.plan.CPUs.Isolated.IDs()), ",")
		})),
		spelled("isolcpus names the CPUs in another order", replace("isolcpus", func(n *node) string {
			ids := numbers(n.plan.CPUs.Isolated.IDs())
			slices.Reverse(ids)
			return "isolcpus=domain,managed_irq," + strings.Join(ids, ",")
		})),
		spelled("isolcpus stops the tick, too", replace("isolcpus", func(n *node) string {
			return "isolcpus=nohz,domain,managed_irq," + n.plan.CPUs.Isolated.String()
		})),
		spelled("isolcpus stands in quotation marks", replace("isolcpus", func(n *node) string {
			return `isolcpus="domain,managed_irq,` + n.plan.CPUs.Isolated.String() + `"`
		})),
		spelled("a whole argument stands in quotation marks", replace("irqaffinity", func(n *node) string {
			return `"irqaffinity=` + n.planned("irqaffinity") + `"`
		})),
		{
			name: "N is the last CPU", on: []string{xeon, xeonExplicit},
			change: func(n *node) {
				list := n.plan.CPUs.Isolated.String()
				n.reboot(argument("nohz_full", "nohz_full="+list[:strings.LastIndexAny(list, ",-")+1]+"N"))
			},
		},
		{
			name: "isolated CPUs are every second one", on: []string{epyc},
			change: func(n *node) { n.reboot(argument("nohz_full", "nohz_full=1-31:1/2")) },
		},
		spelled("hyphens stand for underscores", replace("skew_tick", func(*node) string { return "skew-tick=1" })),
		spelled("an argument is given twice with one value", adding("nosoftlockup", "skew_tick=1")),
		spelled("a contradicting argument stands first and the planned one wins", func(_ *node, arguments []string) []string {
			return append([]string{"transparent_hugepage=always"}, arguments...)
		}),
		spelled("irqaffinity is given twice, and the last counts", func(_ *node, arguments []string) []string {
			return append([]string{"irqaffinity=0"}, arguments...)
		}),
		spelled("the arguments have another order", func(_ *node, arguments []string) []string {
			at := slices.IndexFunc(arguments, func(a string) bool { return strings.HasPrefix(a, "transparent_hugepage") })
			return slices.Concat(arguments[at:], arguments[:at])
		}),
		spelled("the watchdogs are switched off by one argument", func(_ *node, arguments []string) []string {
			return argument("nosoftlockup", "nowatchdog")(arguments)
		}),
		spelled("one argument stops both watchdogs in place of two", func(_ *node, arguments []string) []string {
			return argument("nmi_watchdog")(argument("nosoftlockup", "nowatchdog")(arguments))
		}),
		spelled("the default size of hugepages is written in MiB", replace("default_hugepagesz", func(*node) string { return "default_hugepagesz=1024M" })),
		{
			name: "the size of hugepages is written in MiB",
			change: func(n *node) {
				n.reboot(func(arguments []string) []string {
					at := slices.Index(arguments, "hugepagesz=1G")
					return slices.Replace(slices.Clone(arguments), at, at+1, "hugepagesz=1024M")
				})
			},
		},
		{
			name: "the IOMMU passes through by its other name", on: x86(),
			change: func(n *node) { n.reboot(argument("iommu", "iommu.passthrough=1")) },
		},
		spelled("an installer and a console left arguments", adding("console=tty0", "crashkernel=512M", "net.ifnames=1", "rd.driver.blacklist=nouveau", "quiet")),
		spelled("an argument belongs to process 1", adding("--", "verbose")),
		{
			name:   "spaces and tabs separate the arguments",
			change: func(n *node) { n.edit("/proc/cmdline", " skew_tick=1 ", "  \tskew_tick=1   ") },
		},
		{
			name: "a newer kernel has another image", on: []string{xeon, arm},
			change: func(n *node) { n.edit("/proc/cmdline", "vmlinuz-", "vmlinuz-2-") },
		},
	}
}

func variationsOfHugepageArguments() []variation {
	return []variation{
		{
			name: "hugepages are asked for by NUMA node, as many on each as of the whole", on: []string{xeon, xeon612, edge},
			change: func(n *node) {
				count, err := strconv.Atoi(n.planned("hugepages"))
				n.must(err)
				total := n.hardware.Packages * n.hardware.NUMANodesPerPackage
				shares := make([]string, 0, total)
				for node := range total {
					shares = append(shares, fmt.Sprintf("%d:%d", node, count/total))
				}
				n.edit("/proc/cmdline", fmt.Sprint("hugepages=", count), "hugepages="+strings.Join(shares, ","))
			},
		},
	}
}
