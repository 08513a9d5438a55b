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
			name: "a driver's workqueue may run anywhere",
			harm: func(n *node) {
				all := n.plan.CPUs.Housekeeping.Union(n.plan.CPUs.Isolated).Mask()
				n.write("/sys/devices/virtual/workqueue/cpumask", all)
				n.put("/sys/devices/virtual/workqueue/nvme-wq/cpumask", all+"\n")
			},
			want: "workqueue.others", says: []string{"nvme-wq/cpumask holds isolated CPU"},
		},
		{
			name: "writing back may run anywhere",
			harm: func(n *node) {
				all := n.plan.CPUs.Housekeeping.Union(n.plan.CPUs.Isolated).Mask()
				n.write("/sys/devices/virtual/workqueue/cpumask", all)
				n.put("/sys/devices/virtual/workqueue/writeback/cpumask", all+"\n")
			},
			want: "workqueue.writeback", says: []string{"writeback/cpumask holds isolated CPU"},
		},
		{
			name: "the soft-lockup watchdog runs on isolated CPUs",
			harm: func(n *node) {
				n.write("/proc/sys/kernel/soft_watchdog", "1")
				n.write("/proc/sys/kernel/watchdog", "1")
				n.put("/proc/sys/kernel/watchdog_cpumask", n.plan.CPUs.Isolated.String()+"\n")
			},
			want: "kernel.soft-watchdog", says: []string{"the watchdog runs on isolated CPUs"},
		},
		{
			name: "RCU hurries",
			harm: func(n *node) { n.write("/sys/kernel/rcu_expedited", "1") },
			want: "kernel.rcu-expedited",
		},
		{
			name: "the hard-lockup watchdog is on", on: x86(),
			harm: func(n *node) { n.write("/proc/sys/kernel/nmi_watchdog", "1") },
			want: "kernel.nmi-watchdog",
		},
	}
}

func faultsOfKernelState() []fault {
	return []fault{
		{
			name: "something is traced",
			harm: func(n *node) { n.put("/sys/kernel/tracing/current_tracer", "function\n") },
			want: "kernel.tracing", says: []string{"function"},
		},
		{
			name: "an instance of the tracer traces events",
			harm: func(n *node) {
				n.put("/sys/kernel/tracing/instances/agent/current_tracer", "nop\n")
				n.put("/sys/kernel/tracing/instances/agent/set_event", "sched:sched_switch\nirq:irq_handler_entry\n")
			},
			want: "kernel.tracing", says: []string{"sched:sched_switch is traced in /sys/kernel/tracing/instances/agent, and 1 more event"},
		},
		{
			name: "an instance of the tracer traces functions",
			harm: func(n *node) {
				n.put("/sys/kernel/tracing/instances/agent/current_tracer", "function_graph\n")
				n.put("/sys/kernel/tracing/instances/agent/set_event", "")
			},
			want: "kernel.tracing", says: []string{"instances/agent/current_tracer is function_graph"},
		},
		{
			name: "an agent hooks functions of the kernel",
			harm: func(n *node) { n.put("/sys/kernel/tracing/enabled_functions", "tcp_sendmsg (1) R   D\n") },
			want: "kernel.tracing", says: []string{"tcp_sendmsg of the kernel is hooked"},
		},
		{
			name: "functions of the kernel are probed",
			harm: func(n *node) {
				n.put("/sys/kernel/debug/kprobes/list", "ffffffff811ce670  k  do_sys_open+0x0    [FTRACE]\n")
			},
			want: "kernel.tracing", says: []string{"do_sys_open+0x0 of the kernel is probed"},
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
			name: "a driver's workqueue of its own keeps off isolated CPUs",
			change: func(n *node) {
				n.put("/sys/devices/virtual/workqueue/nvme-wq/cpumask", n.plan.CPUs.Housekeeping.Mask()+"\n")
			},
		},
		{
			name: "the mask of a driver's workqueue is bounded by that of all",
			change: func(n *node) {
				n.put("/sys/devices/virtual/workqueue/nvme-wq/cpumask", n.plan.CPUs.Housekeeping.Union(n.plan.CPUs.Isolated).Mask()+"\n")
			},
		},
		{
			name: "the soft-lockup watchdog runs on housekeeping CPUs only",
			change: func(n *node) {
				n.write("/proc/sys/kernel/soft_watchdog", "1")
				n.write("/proc/sys/kernel/watchdog", "1")
				n.put("/proc/sys/kernel/watchdog_cpumask", n.plan.CPUs.Housekeeping.String()+"\n")
			},
		},
		{
			name: "the kernel names another model of preemption", on: []string{xeon612, epyc612},
			change: func(n *node) { n.edit("/proc/version", "PREEMPT_DYNAMIC", "PREEMPT(lazy)") },
		},
		{
			name: "the kernel preempts lazily", on: []string{xeon618},
			change: func(n *node) { n.put("/sys/kernel/debug/sched/preempt", "none voluntary full (lazy)\n") },
		},
		{
			name: "transmit queues are mapped to isolated CPUs, as drivers do",
			change: func(n *node) {
				n.put("/sys/class/net/"+n.otherNIC()+"/queues/tx-0/xps_cpus", n.plan.CPUs.Isolated.Mask()+"\n")
			},
		},
		{
			name: "an idle instance of the tracer, and rasdaemon's",
			change: func(n *node) {
				n.put("/sys/kernel/tracing/instances/agent/current_tracer", "nop\n")
				n.put("/sys/kernel/tracing/instances/agent/set_event", "")
				n.put("/sys/kernel/tracing/instances/rasdaemon/current_tracer", "nop\n")
				n.put("/sys/kernel/tracing/instances/rasdaemon/set_event", "ras:mc_event\nras:aer_event\nmce:mce_record\nblock:block_rq_error\n")
			},
		},
		{
			name: "a live patch, and systemd's hook for file systems",
			change: func(n *node) {
				n.put("/sys/kernel/tracing/enabled_functions", "xfrm_lookup (1) R I   \ttramp: 0xffffffffc0a01000\nbpf_lsm_file_open (1) R   D   M\n")
			},
		},
		{name: "the kernel was built without tracers", change: func(n *node) { n.remove("/sys/kernel/tracing") }},
		{
			name:   "a module that is not of the kernel was loaded",
			change: func(n *node) { n.write("/proc/sys/kernel/tainted", "12288") },
		},
	}
}
