// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import (
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// hidden is a file that the host does not give: a check that needs it must not pass.
func hidden(path string, want v1alpha1.CheckID) fault {
	return fault{
		name: path + " is hidden", want: want, unknown: "the host does not say", says: []string{strings.Split(path, "*")[0]},
		harm: func(n *node) { n.remove(path) },
	}
}

// garbled is a file that makes no sense.
func garbled(path, text string, want v1alpha1.CheckID) fault {
	return fault{
		name: path + " is garbled", want: want, unknown: "the host does not say anything that makes sense",
		harm: func(n *node) { n.put(path, text) },
	}
}

func faultsOfAbsence() []fault {
	const cpuFolder = "/sys/devices/system/cpu/"
	return []fault{
		hidden(cpuFolder+"isolated", "cpu.isolated"),
		hidden(cpuFolder+"nohz_full", "cpu.nohz-full"),
		hidden("/proc/cmdline", commandLine),
		hidden("/proc/irq/default_smp_affinity", "irq.default-affinity"),
		hidden("/proc/softirqs", "irq.softirqs"),
		hidden("/proc/sys/kernel/tainted", "kernel.tainted"),
		hidden("/sys/kernel/tracing/current_tracer", "kernel.tracing"),
		hidden("/sys/devices/system/clocksource/clocksource0/current_clocksource", "clock.source"),
		hidden(cpuFolder+"cpu*/cpufreq/scaling_governor", "power.governor"),
		hidden("/etc/kubernetes/kubelet.conf", "kubelet.topology-manager"),
		hidden("/var/lib/kubelet/cpu_manager_state", "kubelet.cpu-manager"),
		hidden("/var/lib/kubelet/memory_manager_state", "kubelet.memory-manager"),
		hidden("/proc/1/status", "cpu.init-affinity"),
		hidden("/proc/1/net/softnet_stat", "net.drops"),
		garbled("/var/lib/kubelet/cpu_manager_state", "{", "kubelet.cpu-manager"),
		garbled("/etc/kubernetes/kubelet.conf", "\tno: yaml", "kubelet.topology-manager"),
		garbled("/proc/irq/default_smp_affinity", "xyz\n", "irq.default-affinity"),
		garbled("/proc/sys/kernel/tainted", "yes\n", "kernel.tainted"),
		{
			name: "no interrupt is shown",
			harm: func(n *node) { n.remove("/proc/irq", "/proc/interrupts") },
			want: "irq.effective-affinity", unknown: "the host shows no interrupts",
		},
		{
			name: "the host was rebooted between the readings",
			during: func(n *node) {
				n.reboot(more())
				n.put("/proc/uptime", "3.00 0.00\n")
			},
			want: "cpu.tick", unknown: "counters of two boots cannot be compared",
		},
	}
}

// lacking is a file of a feature that a kernel may be built without.
func lacking(name, path string, on ...string) variation {
	return variation{name: name, on: on, change: func(n *node) { n.remove(path) }}
}

func variationsOfAbsence() []variation {
	return []variation{
		lacking("the kernel does not say where interrupts are delivered that may not go to isolated CPUs", "/proc/irq/*/effective_affinity_list", xeon, epyc),
		lacking("the kernel cannot hurry RCU", "/sys/kernel/rcu_expedited"),
		lacking("the kernel was built without proactive compaction", "/proc/sys/vm/compaction_proactiveness"),
		lacking("the kernel does not expose the watchdogs", "/proc/sys/kernel/*watchdog*"),
		{
			name:    "the network namespace shows no receive packet steering",
			change:  func(n *node) { n.remove("/proc/sys/net/core/rps_*") },
			unknown: map[v1alpha1.CheckID]string{"net.flow-steering": "a network namespace shows fewer files than the host has"},
		},
		lacking("the kernel was built without tracing", "/sys/kernel/tracing"),
		lacking("the firmware describes no cache of level 3", "/sys/devices/system/cpu/cpu*/cache/index3", xeon),
		lacking("the host has no DMI", "/sys/devices/virtual/dmi", arm),
		lacking("no process shows its environment", "/proc/*/environ"),
		lacking("the kernel has no ASPM", "/sys/module/pcie_aspm", xeon, epyc),
		lacking("the kernel has no transparent hugepages' collapse daemon files", "/sys/kernel/mm/transparent_hugepage/khugepaged"),
	}
}
