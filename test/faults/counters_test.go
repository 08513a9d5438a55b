// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import (
	"fmt"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

const (
	interruptsFile = "/proc/interrupts"
	softirqsFile   = "/proc/softirqs"
)

// counted is a counter that grows on the first isolated CPU between the readings.
func counted(name, file, counter string, by uint64, on []string, want v1alpha1.CheckID, says ...string) fault {
	return fault{
		name: name, on: on, want: want, says: says,
		during: func(n *node) { n.count(file, counter, n.isolated(), by) },
	}
}

// counts is a counter that may grow as much on that CPU.
func counts(name, file, counter string, by uint64, on ...string) variation {
	return variation{name: name, on: on, during: func(n *node) { n.count(file, counter, n.isolated(), by) }}
}

func faultsOfCounters() []fault {
	return []fault{
		counted("the hard-lockup watchdog interrupted an isolated CPU", interruptsFile, "NMI", 1, x86(), "irq.machine", "came once", "CPU {cpu}"),
		counted("a profiler interrupted an isolated CPU", interruptsFile, "PMI", 300, x86(), "irq.machine", "PMI"),
		counted("an isolated CPU saw a machine check", interruptsFile, "MCE", 1, x86(), "irq.machine", "MCE"),
		counted("heat interrupted an isolated CPU", interruptsFile, "TRM", 2, x86(), "irq.machine", "TRM"),
		counted("a corrected error crossed its threshold", interruptsFile, "THR", 1, x86(), "irq.machine", "THR (the threshold of corrected errors)"),
		counted("an isolated CPU polled for machine checks", interruptsFile, "MCP", 1, []string{xeonSettings, epycSettings}, "irq.machine", "MCP"),
		counted("packets were sent on an isolated CPU", softirqsFile, "NET_TX", 3, nil, "irq.softirqs", "NET_TX", "CPU {cpu}"),
		counted("a disk was served on an isolated CPU", softirqsFile, "BLOCK", 40, nil, "irq.softirqs", "BLOCK"),
		counted("a tasklet ran on an isolated CPU", softirqsFile, "TASKLET", 1, nil, "irq.softirqs", "TASKLET"),
		counted("other CPUs wake programs of an isolated CPU", interruptsFile, "RES", 500, x86(), "irq.ipis", "CPU {cpu}"),
		counted("other CPUs flush addresses of an isolated CPU", interruptsFile, "TLB", 50, x86(), "irq.ipis", "CPU {cpu}"),
		counted("interrupt work is queued on an isolated CPU", interruptsFile, "IWI", 50, x86(), "irq.ipis", "CPU {cpu}"),
		counted("arm64: other CPUs call functions of an isolated CPU", interruptsFile, "IPI1", 50, []string{arm, arm612RT}, "irq.ipis", "CPU {cpu}"),
		counted("arm64: other CPUs wake programs of an isolated CPU", interruptsFile, "IPI0", 50, []string{arm}, "irq.ipis", "CPU {cpu}"),
		counted("timers expire on an isolated CPU", softirqsFile, "TIMER", 250, nil, "irq.background-softirqs", "CPU {cpu}"),
		counted("the scheduler balances from an isolated CPU", softirqsFile, "SCHED", 250, nil, "irq.background-softirqs", "CPU {cpu}"),
		counted("RCU works on an isolated CPU", softirqsFile, "RCU", 250, nil, "irq.background-softirqs", "CPU {cpu}"),
		{
			name: "the backlog of a CPU overflowed",
			during: func(n *node) {
				n.edit("/proc/1/net/softnet_stat", "00000000 00000000 00000000\n", "00000010 00000002 00000000\n")
			},
			want: "net.drops", says: []string{"the backlogs of the host's CPUs"},
		},
		{
			name:   "the buffer of a UDP socket overflowed",
			during: func(n *node) { n.edit("/proc/1/net/snmp", "Udp: 0 0 0 0 0 0", "Udp: 90 0 7 0 7 0") },
			want:   "net.drops", says: []string{"the buffers of the host's UDP sockets"},
		},
		{
			name: "a bypass NIC missed packets",
			during: func(n *node) {
				n.put("/sys/class/net/"+n.bypassNIC()+"/statistics/rx_missed_errors", "12\n")
			},
			want: "nic.drops", says: []string{"NIC {nic}", "lost packets (rx_missed_errors)"},
		},
		{
			name: "the queue of a bypass NIC overflowed",
			during: func(n *node) {
				n.put("/sys/class/net/"+n.bypassNIC()+"/statistics/rx_fifo_errors", "1\n")
			},
			want: "nic.drops", says: []string{"lost packets (rx_fifo_errors) once"},
		},
	}
}

func faultsOfLosses() []fault {
	return []fault{
		{
			name: "heat slowed the package down", on: []string{xeon, xeonRT, edge},
			during: func(n *node) { n.put(cpu(n.isolated(), "thermal_throttle/package_throttle_count"), "1\n") },
			want:   "power.thermal", says: []string{"its package was slowed down by heat"},
		},
		{
			name: "a NUMA node ran out of memory", on: usualMachines(),
			during: func(n *node) {
				n.put("/sys/devices/system/node/node0/numastat", "numa_hit 100\nnuma_miss 0\nnuma_foreign 500000\ninterleave_hit 0\nlocal_node 100\nother_node 0\n")
			},
			want: "numa.remote-allocations", says: []string{"NUMA node 0"},
		},
		{
			name: "a pinned thread of a pod lost its CPU", on: x86(),
			harm: func(n *node) {
				n.pod(n.core())
				n.pin()
			},
			during: func(n *node) {
				n.edit("/proc/9000/status", "nonvoluntary_ctxt_switches:\t7", "nonvoluntary_ctxt_switches:\t90")
			},
			want: "cpu.preemption", says: []string{"lost CPU"},
		},
		{
			name: "an isolated CPU entered a deep idle state", on: []string{xeonSettings, epycSettings},
			harm: func(n *node) {
				n.putIdleState(n.isolated(), 10)
			},
			during: func(n *node) { n.putIdleState(n.isolated(), 11) },
			want:   "power.idle-entries", says: []string{"idle state C6, which takes 170 µs to leave, was entered"},
		},
		{
			name: "two programs share an isolated CPU and bring the tick back",
			harm: func(n *node) {
				for pid := 5000; pid < 5002; pid++ {
					n.process(hosttree.Process{PID: pid, Name: "spin", AllowedCPUs: n.core(), Busy: true})
				}
			},
			want: "cpu.tick", says: []string{"configured as tickless, yet its timer interrupts it"},
		},
	}
}

// pin keeps the program of the pod on its first CPU.
func (n *node) pin() {
	n.t.Helper()
	n.edit("/proc/9000/status", "Cpus_allowed_list:\t"+n.core().String()+"\n", "Cpus_allowed_list:\t"+n.firstIsolated().String()+"\n")
}

// putIdleState gives a CPU the idle state C6, entered a number of times.
func (n *node) putIdleState(id, usage int) {
	n.t.Helper()
	folder := cpu(id, "cpuidle/state5/")
	for file, value := range map[string]any{"name": "C6", "latency": 170, "disable": 0, "usage": usage, "time": usage * 1000} {
		n.put(folder+file, fmt.Sprintln(value))
	}
}

func variationsOfCounters() []variation {
	return []variation{
		counts("one message from another CPU", interruptsFile, "RES", 1, x86()...),
		counts("nine calls from other CPUs in ten seconds", interruptsFile, "CAL", 9, x86()...),
		counts("arm64: one message from another CPU", interruptsFile, "IPI0", 1, arm),
		counts("arm64: a CPU was told of a crash", interruptsFile, "IPI3", 1, arm),
		counts("a timer expires every second", softirqsFile, "TIMER", 10),
		counts("RCU works once", softirqsFile, "RCU", 1),
		counts("high resolution timers count elsewhere", softirqsFile, "HRTIMER", 20),
		counts("a spurious interrupt", interruptsFile, "SPU", 1, x86()...),
		counts("an isolated CPU polls for machine checks as the plan has it", interruptsFile, "MCP", 1, x86()...),
		{
			name:   "a NIC of the host lost packets",
			during: func(n *node) { n.put("/sys/class/net/"+n.otherNIC()+"/statistics/rx_missed_errors", "12\n") },
		},
		{
			name:   "a broken packet came for a UDP socket",
			during: func(n *node) { n.edit("/proc/1/net/snmp", "Udp: 0 0 0 0 0 0", "Udp: 90 5 1 80 0 0") },
		},
		{
			name: "a few pages come from another NUMA node", on: usualMachines(),
			during: func(n *node) {
				n.put("/sys/devices/system/node/node0/numastat", "numa_hit 100\nnuma_miss 0\nnuma_foreign 20\ninterleave_hit 0\nlocal_node 100\nother_node 0\n")
			},
		},
		{
			name: "a thread of a pod that is not pinned is switched between its own CPUs", on: x86(),
			change: func(n *node) { n.pod(n.core()) },
			during: func(n *node) {
				n.edit("/proc/9000/status", "nonvoluntary_ctxt_switches:\t7", "nonvoluntary_ctxt_switches:\t70")
			},
		},
		{
			name: "housekeeping CPUs tick, wake and flush",
			during: func(n *node) {
				for _, counter := range []string{"TIMER", "SCHED", "RCU", "TASKLET", "BLOCK"} {
					n.count(softirqsFile, counter, n.housekeeping(), 9000)
				}
			},
		},
		{
			name: "a housekeeping CPU sleeps deeply", on: []string{xeonSettings, epycSettings},
			change: func(n *node) { n.putIdleState(n.housekeeping(), 10) },
			during: func(n *node) { n.putIdleState(n.housekeeping(), 900) },
		},
		{
			name: "an isolated CPU enters its shallow state", on: []string{xeonSettings},
			during: func(n *node) { n.put(cpu(n.isolated(), "cpuidle/state1/usage"), "123456\n") },
		},
	}
}
