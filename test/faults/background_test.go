// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

func faultsOfBackground() []fault {
	return []fault{
		{
			name: "unbound work may run anywhere",
			harm: func(n *node) { n.write("/sys/devices/virtual/workqueue/cpumask", "ffffffff") },
			want: "workqueue.unbound",
		},
		{
			name: "the hard-lockup watchdog is on", on: x86(),
			harm: func(n *node) { n.write("/proc/sys/kernel/nmi_watchdog", "1") },
			want: "kernel.nmi-watchdog",
		},
		{
			name: "something is traced",
			harm: func(n *node) { n.put("/sys/kernel/tracing/current_tracer", "function\n") },
			want: "kernel.tracing", says: []string{"function"},
		},
		{
			name: "the kernel has seen a lockup",
			harm: func(n *node) { n.write("/proc/sys/kernel/tainted", "16384") },
			want: "kernel.tainted", says: []string{"lockup"},
		},
	}
}

func variationsOfBackground() []variation {
	return []variation{
		{
			name:   "a module that is not of the kernel was loaded",
			change: func(n *node) { n.write("/proc/sys/kernel/tainted", "12288") },
		},
	}
}
