// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import (
	"strconv"
	"strings"
)

func faultsOfKernel() []fault {
	return []fault{
		{
			name: "the node came up without its arguments",
			harm: func(n *node) { n.reboot(func([]string) []string { return nil }) },
			want: "kernel.command-line", says: []string{"isolcpus"},
		},
		{
			name: "one argument is missing",
			harm: func(n *node) { n.reboot(argument("nohz_full")) },
			want: "kernel.command-line", says: []string{"nohz_full"},
		},
		{
			name: "isolcpus is given twice, and the kernel keeps the first",
			harm: func(n *node) {
				n.reboot(argument("isolcpus", "isolcpus=managed_irq,domain,1", "isolcpus="+n.planned("isolcpus")))
			},
			want: "kernel.command-line", says: []string{"isolcpus", "the first counts"},
		},
		{
			name: "nohz_full is given twice, and the kernel keeps the first",
			harm: func(n *node) { n.reboot(argument("nohz_full", "nohz_full=1", "nohz_full="+n.planned("nohz_full"))) },
			want: "kernel.command-line", says: []string{"nohz_full=1", "the first counts"},
		},
		{
			name: "rcu_nocbs is given twice, and the kernel keeps the last",
			harm: func(n *node) { n.reboot(argument("rcu_nocbs", "rcu_nocbs="+n.planned("rcu_nocbs"), "rcu_nocbs=1")) },
			want: "kernel.command-line", says: []string{"rcu_nocbs=1"},
		},
		{
			name: "managed interrupts avoid other CPUs, of an isolcpus before the planned one",
			harm: func(n *node) {
				n.reboot(argument("isolcpus", "isolcpus=managed_irq,1", "isolcpus="+n.planned("isolcpus")))
			},
			want: "irq.managed", says: []string{"isolcpus=managed_irq,1 isolcpus="},
		},
		{
			name: "the first default size of hugepages stands",
			harm: func(n *node) {
				n.reboot(argument("default_hugepagesz", "default_hugepagesz=2M", "default_hugepagesz="+n.planned("default_hugepagesz")))
			},
			want: "kernel.command-line", says: []string{"default_hugepagesz=2M"},
		},
		{
			name: "a size in bytes that is another",
			harm: func(n *node) { n.reboot(argument("default_hugepagesz", "default_hugepagesz=512M")) },
			want: "kernel.command-line", says: []string{"default_hugepagesz=512M"},
		},
		{
			name: "the IOMMU was switched off again", on: []string{xeon},
			harm: func(n *node) { n.reboot(more("intel_iommu=off")) },
			want: "kernel.command-line", says: []string{"intel_iommu=off"},
		},
		{
			name: "the hard-lockup watchdog was switched on again", on: x86(),
			harm: func(n *node) { n.reboot(more("nmi_watchdog=1")) },
			want: "kernel.command-line", says: []string{"nmi_watchdog=1"},
		},
	}
}

func faultsOfBoots() []fault {
	return []fault{
		{
			name: "the hypervisor passes no invariant counter on", on: x86(),
			harm: func(n *node) {
				n.edit("/proc/cpuinfo", "nonstop_tsc", "hypervisor")
				n.put("/sys/devices/virtual/dmi/id/sys_vendor", "QEMU\n")
				n.put("/sys/devices/virtual/dmi/id/product_name", "KubeVirt\n")
			},
			want: "clock.tsc", says: []string{"the virtual machine lacks nonstop_tsc: its hypervisor (KVM)"},
		},
		{
			name: "the kernel found the counter unstable", on: x86(),
			harm: func(n *node) {
				const folder = "/sys/devices/system/clocksource/clocksource0/"
				n.put(folder+"available_clocksource", "hpet acpi_pm\n")
				n.put(folder+"current_clocksource", "hpet\n")
			},
			want: "clock.tsc", says: []string{"unstable", "hpet acpi_pm only"},
		},
		{
			name: "an argument limits the CPUs",
			harm: func(n *node) { n.reboot(more("nr_cpus=256")) },
			want: "kernel.command-line", says: []string{"nr_cpus=256, which the plan does without"},
		},
		{
			name: "the real-time kernel was planned, the other runs", on: []string{xeonRT, epycRT},
			harm: func(n *node) {
				n.rendered.Spec.KernelType = ""
				n.reboot(more())
			},
			want: "kernel.type", says: []string{"not RealTime"},
		},
	}
}

func variationsOfKernel() []variation {
	return []variation{
		{name: "nothing changes", on: allMachines()},
		{
			name: "the flags of isolcpus have another order",
			change: func(n *node) {
				n.reboot(argument("isolcpus", "isolcpus=managed_irq,domain,"+n.plan.CPUs.Isolated.String()))
			},
		},
		{
			name:   "somebody added an argument that changes nothing",
			change: func(n *node) { n.reboot(more("console=ttyS0,115200n8")) },
		},
		{
			name: "the isolated CPUs are written one by one",
			change: func(n *node) {
				isolated := n.plan.CPUs.Isolated.IDs()
				list := make([]string, 0, len(isolated))
				for _, id := range isolated {
					list = append(list, strconv.Itoa(id))
				}
				n.reboot(argument("nohz_full", "nohz_full="+strings.Join(list, ",")))
			},
		},
		{name: "no tick implies callbacks elsewhere", change: func(n *node) { n.reboot(argument("rcu_nocbs")) }},
		{
			name: "isolcpus in two arguments",
			change: func(n *node) {
				isolated := n.plan.CPUs.Isolated.String()
				n.reboot(argument("isolcpus", "isolcpus=managed_irq,"+isolated, "isolcpus="+isolated))
			},
		},
		{
			name:   "isolcpus is given twice, and the kernel keeps the planned one",
			change: func(n *node) { n.reboot(argument("isolcpus", "isolcpus="+n.planned("isolcpus"), "isolcpus=1")) },
		},
		{name: "a size is written in mebibytes", on: x86(), change: func(n *node) { n.reboot(argument("default_hugepagesz", "default_hugepagesz=1024M")) }},
		{name: "a size is written in kibibytes", on: []string{arm64k}, change: func(n *node) { n.reboot(argument("default_hugepagesz", "default_hugepagesz=524288K")) }},
		{
			name:   "a value is written in quotes",
			change: func(n *node) { n.reboot(argument("nohz_full", `nohz_full="`+n.planned("nohz_full")+`"`)) },
		},
		{name: "a switch is written as a number", change: func(n *node) { n.reboot(argument("nohz", "nohz=1")) }},
		{name: "a switch is written as a letter", change: func(n *node) { n.reboot(argument("nohz", "nohz=Y")) }},
		{
			name: "pass-through is written as a module parameter", on: x86(),
			change: func(n *node) { n.reboot(argument("iommu", "iommu.passthrough=1")) },
		},
		{
			name: "one word switches both watchdogs off",
			change: func(n *node) {
				n.reboot(func(arguments []string) []string {
					return argument("nosoftlockup", "nowatchdog")(argument("nmi_watchdog")(arguments))
				})
			},
		},
		{name: "the clock has another flag", on: x86(), change: func(n *node) { n.reboot(more("tsc=nowatchdog")) }},
		{name: "machine checks have another flag", on: x86(), change: func(n *node) { n.reboot(more("mce=no_cmci")) }},
		{name: "siblings stay off for good", on: []string{xeonNoSMT}, change: func(n *node) { n.reboot(argument("nosmt", "nosmt=force")) }},
		{name: "the IOMMU uses scalable mode", on: []string{xeon}, change: func(n *node) { n.reboot(argument("intel_iommu", "intel_iommu=on,sm_on")) }},
		{name: "a number has zeros before it", on: x86(), change: func(n *node) { n.reboot(argument("skew_tick", "skew_tick=0x1")) }},
		{name: "idle states are limited to none, which the kernel takes for one", on: x86(), change: func(n *node) { n.reboot(argument("processor.max_cstate", "processor.max_cstate=0")) }},
		{name: "dashes in a name", change: func(n *node) { n.reboot(argument("rcu_nocbs", "rcu-nocbs="+n.planned("rcu_nocbs"))) }},
	}
}
