// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import "fmt"

// faultsOfOwners happen on a CPU that a pod owns, whose one thread never sleeps: what comes there is not its doing.
func faultsOfOwners() []fault {
	onBusy := func(name, file string, counter func(*node) string, on []string, fault fault) fault {
		fault.name, fault.on = name, on
		fault.harm = func(n *node) { n.pod(n.core()) }
		fault.during = func(n *node) { n.count(file, counter(n), n.isolated(), 500) }
		return fault
	}
	return []fault{
		onBusy("the tick does not stop for the only program of a CPU", interruptsFile, tick, nil, fault{want: "cpu.tick", says: []string{"configured as tickless"}}),
		onBusy("other CPUs call the only program of a CPU", interruptsFile, named("CAL"), x86(), fault{want: "irq.ipis", says: []string{"CPU {cpu}"}}),
		onBusy("RCU works on the CPU of a busy program", softirqsFile, named("RCU"), nil, fault{want: "irq.background-softirqs", says: []string{"CPU {cpu}"}}),
		{
			name: "packets arrive on an isolated CPU beside that of a pod",
			harm: func(n *node) { n.pod(n.core()) },
			during: func(n *node) {
				n.count(softirqsFile, "NET_RX", n.plan.CPUs.Isolated.Difference(n.core()).First(), 1)
			},
			want: "irq.softirqs", says: []string{"NET_RX"},
		},
	}
}

// variationsOfOwners are the doing of the pod that owns a CPU.
func variationsOfOwners() []variation {
	// use is what a program that sleeps, and talks by the kernel's network, does to its CPU.
	use := func(n *node) {
		n.count(interruptsFile, tick(n), n.isolated(), 5000)
		for _, counter := range []string{"TIMER", "SCHED", "RCU", "NET_RX", "NET_TX", "BLOCK"} {
			n.count(softirqsFile, counter, n.isolated(), 700)
		}
	}
	return []variation{
		{
			name:   "the program of a pod sleeps, sets timers and sends packets",
			change: func(n *node) { n.pod(n.core()); n.sleep() },
			during: use,
		},
		{
			name: "other CPUs wake the sleeping program of a pod", on: x86(),
			change: func(n *node) { n.pod(n.core()); n.sleep() },
			during: func(n *node) { n.count(interruptsFile, "RES", n.isolated(), 5000) },
		},
		{
			name:   "the busy program of a pod sends packets by the kernel",
			change: func(n *node) { n.pod(n.core()) },
			during: func(n *node) { n.count(softirqsFile, "NET_RX", n.isolated(), 5000) },
		},
		{
			name:   "a pod that slept has ended since the last reading",
			change: func(n *node) { n.pod(n.core()); n.sleep() },
			during: func(n *node) {
				use(n)
				n.remove("/proc/9000", "/sys/fs/cgroup/kubepods.slice")
				all := n.plan.CPUs.Housekeeping.Union(n.plan.CPUs.Isolated)
				n.put("/var/lib/kubelet/cpu_manager_state", fmt.Sprintf(`{"policyName":"static","defaultCpuSet":%q,"entries":{},"checksum":0}`, all))
			},
		},
	}
}

// named is the counter of a name.
func named(counter string) func(*node) string { return func(*node) string { return counter } }

// sleep lets the program of the pod wait for something nearly all the time.
func (n *node) sleep() {
	n.t.Helper()
	n.edit("/proc/9000/stat", ") R ", ") S ")
}
