// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import (
	"fmt"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

// priorities is the check of the threads that every CPU has.
const priorities = "cpu.thread-priorities"

// realTimeMachines have a PREEMPT_RT kernel, and so all threads whose priorities are planned.
func realTimeMachines() []string { return []string{xeonRT, epycRT, arm612RT} }

func faultsOfPriorities() []fault {
	return []fault{
		{
			name: "ksoftirqd of an isolated CPU lost its priority",
			harm: func(n *node) { n.prioritize("ksoftirqd", 0, n.isolated()) },
			want: priorities, says: []string{"kernel thread ksoftirqd of CPU {cpu} has no real-time priority, not 11"},
		},
		{
			name: "ktimers has the priority with which the kernel starts it", on: realTimeMachines(),
			harm: func(n *node) { n.prioritize("ktimers", 1, n.plan.CPUs.Isolated.IDs()...) },
			want: priorities, says: []string{"kernel thread ktimers of CPUs ", "has real-time priority 1, not 11"},
		},
		{
			name: "rcuc of a housekeeping CPU is below the others", on: realTimeMachines(),
			harm: func(n *node) { n.prioritize("rcuc", 10, n.plan.CPUs.Housekeeping.First()) },
			want: priorities, says: []string{"kernel thread rcuc of CPU ", "has real-time priority 10, not 11"},
		},
		{
			name: "a second profile of TuneD sets the priorities back",
			harm: func(n *node) {
				n.must(n.host.ApplyTuned("[scheduler]\ngroup.ksoftirqd=0:f:2:*:ksoftirqd.*\n"))
			},
			want: priorities, says: []string{"kernel thread ksoftirqd of CPUs ", "has real-time priority 2, not 11"},
		},
		{
			name: "TuneD never ran, and only the kernel's argument has an effect", on: realTimeMachines(),
			harm: func(n *node) { n.must(n.host.Boot(n.t.Context(), n.rendered)) },
			want: priorities, says: []string{"ksoftirqd of CPUs", "ktimers of CPUs"},
		},
	}
}

func variationsOfPriorities() []variation {
	return []variation{
		{
			name:   "threads of the kernel have a higher priority than planned",
			change: func(n *node) { n.prioritize("ksoftirqd", 50, n.plan.CPUs.Isolated.IDs()...) },
		},
		{
			name: "the kernel has no thread for timers", on: []string{xeonRT, arm612RT},
			change: func(n *node) {
				for _, id := range n.plan.CPUs.Isolated.Union(n.plan.CPUs.Housekeeping).IDs() {
					n.must(hosttree.StopProcess(n.host.Dir, fmt.Sprint("ktimers/", id)))
				}
			},
		},
		{
			name: "threads of a CPU that is offline have no priority", on: []string{xeonNoSMT},
			change: func(n *node) {
				offline := n.plan.CPUs.Offline.First()
				n.process(hosttree.Process{
					PID: hosttree.ThreadPID(offline), Name: fmt.Sprint("ksoftirqd/", offline), Kind: hosttree.BoundKernelThread, AllowedCPUs: cpus.Of(offline),
				})
			},
		},
		{
			name: "threads that no plan names have no priority", on: []string{xeon, xeonRT},
			change: func(n *node) {
				n.process(hosttree.Process{PID: 500, Name: fmt.Sprint("cpuhp/", n.isolated()), Kind: hosttree.BoundKernelThread, AllowedCPUs: cpus.Of(n.isolated())})
			},
		},
		{
			name: "a snapshot of an older release does not say the priorities",
			change: func(n *node) {
				for _, id := range n.plan.CPUs.Isolated.IDs() {
					file := fmt.Sprintf("/proc/%d/stat", hosttree.ThreadPID(id))
					fields := strings.Fields(n.text(file))
					const beforePriority = 39
					n.put(file, strings.Join(fields[:beforePriority], " ")+"\n")
				}
			},
			unknown: map[v1alpha1.CheckID]string{priorities: "the lines end before the priority"},
		},
	}
}
