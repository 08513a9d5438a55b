// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import (
	"fmt"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

func faultsOfTasks() []fault {
	return []fault{
		{
			name: "a program of the host runs on an isolated CPU",
			harm: func(n *node) {
				n.process(hosttree.Process{PID: 5000, Name: "backup", AllowedCPUs: cpus.Of(n.isolated()), Busy: true})
			},
			want: "cpu.foreign-tasks", says: []string{"backup (process 5000)"},
		},
		{
			name: "a service of the host is pinned to the CPU of a pod",
			harm: func(n *node) {
				n.pod(n.core())
				n.process(hosttree.Process{PID: 5000, Name: "chronyd", AllowedCPUs: cpus.Of(n.isolated()), Busy: true})
			},
			want: "cpu.foreign-tasks", says: []string{"chronyd (process 5000) of chronyd.service runs on the CPU of container engine"},
		},
		{
			name: "another pod is pinned to the CPU of a pod",
			harm: func(n *node) {
				n.pod(n.core())
				n.process(hosttree.Process{
					PID: 5000, Name: "thief", AllowedCPUs: cpus.Of(n.isolated()), Busy: true,
					Group: "/kubepods/burstable/pod00000000-1111-2222-3333-444444444444/0123",
				})
			},
			want: "cpu.foreign-tasks", says: []string{"thief (process 5000) of pod 00000000-1111-2222-3333-444444444444 runs on the CPU of container engine"},
		},
		{
			name: "a container of podman is pinned to the CPU of a pod",
			harm: func(n *node) {
				n.pod(n.core())
				n.process(hosttree.Process{
					PID: 5000, Name: "collector", AllowedCPUs: cpus.Of(n.isolated()), Busy: true,
					Group: "/machine.slice/libpod-0123456789abcdef.scope/container",
				})
			},
			want: "cpu.foreign-tasks", says: []string{"collector (process 5000) of libpod-0123456789abcdef.scope runs on the CPU of container engine"},
		},
		{
			name: "a program beside all pods in the kubelet's slice is pinned to the CPU of a pod",
			harm: func(n *node) {
				n.pod(n.core())
				n.process(hosttree.Process{PID: 5000, Name: "stray", AllowedCPUs: cpus.Of(n.isolated()), Busy: true, Group: "/kubepods.slice"})
			},
			want: "cpu.foreign-tasks", says: []string{"stray (process 5000) of kubepods.slice runs on the CPU of container engine"},
		},
		{
			name: "the control group of a program on the CPU of a pod cannot be read", unknown: "whose it is cannot be told",
			harm: func(n *node) {
				n.pod(n.core())
				n.process(hosttree.Process{PID: 5000, Name: "chronyd", AllowedCPUs: cpus.Of(n.isolated()), Busy: true})
				n.remove("/proc/5000/cgroup")
			},
			want: "cpu.foreign-tasks", says: []string{"/proc/5000/cgroup cannot be read", "nobody knows whose chronyd (process 5000) is, which runs on CPU {cpu}"},
		},
		{
			name: "the first thread of a program has ended, and another runs on an isolated CPU",
			harm: func(n *node) {
				n.process(hosttree.Process{PID: 5000, Name: "backup", AllowedCPUs: cpus.Of(n.isolated()), Ended: true})
				n.thread(5000, 5001)
			},
			want: "cpu.foreign-tasks", says: []string{"backup (thread 5001 of process 5000)"},
		},
	}
}

// faultsOfThreads are threads of the kernel where they must not be.
func faultsOfThreads() []fault {
	return []fault{
		{
			name: "kswapd runs on an isolated CPU",
			harm: func(n *node) {
				n.process(hosttree.Process{PID: 120, Name: "kswapd0", Kind: hosttree.KernelThread, AllowedCPUs: cpus.Of(n.isolated())})
			},
			want: "cpu.kernel-threads", says: []string{"kswapd0 (120)"},
		},
		{
			name: "the thread of an interrupt was moved to an isolated CPU", on: []string{xeonRT, epycRT},
			harm: func(n *node) {
				n.process(hosttree.Process{
					PID: 600, Name: fmt.Sprintf("irq/%d-%s", n.irq(n.otherNIC()), n.otherNIC()), Kind: hosttree.KernelThread, AllowedCPUs: cpus.Of(n.isolated()),
				})
			},
			want: "cpu.kernel-threads", says: []string{"kernel thread irq/"},
		},
		{
			name: "khugepaged runs on an isolated CPU",
			harm: func(n *node) {
				n.process(hosttree.Process{PID: 121, Name: "khugepaged", Kind: hosttree.KernelThread, AllowedCPUs: cpus.Of(n.isolated()), Busy: true})
			},
			want: "cpu.kernel-threads", says: []string{"khugepaged (121)"},
		},
		{
			name: "the thread that runs RCU callbacks stayed on its CPU",
			harm: func(n *node) {
				n.process(hosttree.Process{PID: 17, Name: "rcuog/2", Kind: hosttree.KernelThread, AllowedCPUs: cpus.Of(n.isolated())})
			},
			want: "cpu.rcu-threads", says: []string{"rcuog/2 (17)"},
		},
	}
}

// thread gives a process a second thread, which runs where the first one was.
func (n *node) thread(pid, tid int) {
	n.t.Helper()
	folder := fmt.Sprintf("/proc/%d/", pid)
	stat, status := n.text(folder+"stat"), n.text(folder+"status")
	before, last, found := strings.Cut(stat, ") Z ")
	fields := strings.Fields(last)
	const threads = 16 // num_threads of proc_pid_stat(5), counted from the parent.
	if !found || len(fields) <= threads {
		n.t.Fatalf("%sstat is %q", folder, stat)
	}
	fields[threads] = "2"
	n.put(folder+"stat", before+") Z "+strings.Join(fields, " ")+"\n")
	for id, state := range map[int]string{pid: "Z", tid: "R"} {
		task := fmt.Sprintf("%stask/%d/", folder, id)
		n.put(task+"stat", fmt.Sprintf("%d (backup) %s %s\n", id, state, strings.Join(fields, " ")))
		n.put(task+"status", status)
	}
}

func variationsOfTasks() []variation {
	return []variation{
		{name: "a pod owns a core", change: func(n *node) { n.pod(n.core()) }},
		{
			name: "a pod of a kubelet with the cgroupfs driver owns a core",
			change: func(n *node) {
				n.pod(n.core())
				n.put("/proc/9000/cgroup", "0::/kubepods/pod5d1e1a52-0a4e-4a5f-9f3c-8b7a6d5c4b3a/0123456789abcdef\n")
			},
		},
		{
			name: "the control groups are those of version 1",
			change: func(n *node) {
				n.pod(n.core())
				n.put("/proc/9000/cgroup", "9:cpuset:/kubepods.slice/kubepods-pod5d1e1a52_0a4e_4a5f_9f3c_8b7a6d5c4b3a.slice/crio-01.scope\n1:name=systemd:/system.slice/crio.service\n")
			},
		},
		{
			name: "a program that ended on an isolated CPU waits for its parent",
			change: func(n *node) {
				n.process(hosttree.Process{PID: 5000, Name: "healthcheck", AllowedCPUs: cpus.Of(n.isolated()), Ended: true})
			},
		},
		{
			name: "a program of the host is busy on a housekeeping CPU",
			change: func(n *node) {
				n.process(hosttree.Process{PID: 5000, Name: "backup", AllowedCPUs: n.plan.CPUs.Housekeeping, Busy: true})
			},
		},
		{
			name: "threads of interrupts run where the interrupts are delivered", on: []string{xeonRT, epycRT},
			change: func(n *node) {
				irq := n.irq(n.otherNIC())
				effective, err := cpus.Parse(n.text(fmt.Sprintf("/proc/irq/%d/effective_affinity_list", irq)))
				n.must(err)
				n.process(hosttree.Process{PID: 600, Name: fmt.Sprintf("irq/%d-eth", irq), Kind: hosttree.KernelThread, AllowedCPUs: effective})
			},
		},
		{
			name: "threads of the kernel that belong to the isolated CPU",
			change: func(n *node) {
				for pid, name := range map[int]string{500: "idle_inject/", 501: "migration/", 502: "cpuhp/", 503: "kworker/"} {
					n.process(hosttree.Process{PID: pid, Name: name + "9", Kind: hosttree.BoundKernelThread, AllowedCPUs: cpus.Of(n.isolated())})
				}
			},
		},
	}
}
