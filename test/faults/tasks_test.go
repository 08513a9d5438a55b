// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import (
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
			name: "kswapd runs on an isolated CPU",
			harm: func(n *node) {
				n.process(hosttree.Process{PID: 120, Name: "kswapd0", Kind: hosttree.KernelThread, AllowedCPUs: cpus.Of(n.isolated())})
			},
			want: "cpu.kernel-threads", says: []string{"kswapd0 (120)"},
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

func variationsOfTasks() []variation {
	return []variation{
		{name: "a pod owns a core", change: func(n *node) { n.pod(n.core()) }},
		{
			name: "a program of the host is busy on a housekeeping CPU",
			change: func(n *node) {
				n.process(hosttree.Process{PID: 5000, Name: "backup", AllowedCPUs: n.plan.CPUs.Housekeeping, Busy: true})
			},
		},
		{
			name: "threads of the kernel that belong to the isolated CPU",
			change: func(n *node) {
				for pid, name := range map[int]string{500: "ksoftirqd/", 501: "migration/", 502: "cpuhp/", 503: "kworker/"} {
					n.process(hosttree.Process{PID: pid, Name: name + "9", Kind: hosttree.BoundKernelThread, AllowedCPUs: cpus.Of(n.isolated())})
				}
			},
		},
	}
}
