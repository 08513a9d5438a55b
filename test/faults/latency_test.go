// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

// latencyDevice is where a program asks for a limit of the latency of all CPUs, as long as it holds the device open.
const latencyDevice = "/dev/cpu_dma_latency"

// limited are machines whose idle states are kept shallow by such a limit.
func limited() []string { return []string{xeonLimit, armLimit} }

// holdsLatency starts a program that holds a file open; every process shows its open files then, as to root.
func (n *node) holdsLatency(name, file string) {
	n.t.Helper()
	n.remove(latencyDevice)
	n.process(hosttree.Process{PID: 700, Name: name, AllowedCPUs: n.plan.CPUs.Housekeeping})
	for _, process := range n.files("/proc/[0-9]*") {
		n.must(os.MkdirAll(filepath.Join(n.host.Dir, process, "fd"), 0o755))
	}
	n.must(os.Symlink(file, filepath.Join(n.host.Dir, "proc/700/fd/7")))
}

// sleeps lets a CPU enter its deepest idle state.
func (n *node) sleeps(id int) {
	n.t.Helper()
	states := n.files(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/cpuidle/state*/usage", id))
	n.put(states[len(states)-1], "4711\n")
}

func faultsOfLatencyLimit() []fault {
	const allowed = "to leave, is allowed: "
	return []fault{
		{
			name: "nobody holds the limit of latency", on: limited(),
			harm: func(n *node) { n.put(latencyDevice, "2000000000\n") },
			want: "power.idle-states", says: []string{allowed + "no program holds a limit in /dev/cpu_dma_latency"},
		},
		{
			name: "nobody holds the limit of latency, as the device says it", on: limited(),
			during: func(n *node) { n.put(latencyDevice, "\x00\x94\x35\x77") },
			want:   "power.idle-states", says: []string{allowed + "no program holds a limit in /dev/cpu_dma_latency"},
		},
		{
			name: "the limit of latency is wide", on: limited(),
			harm: func(n *node) { n.put(latencyDevice, "100000") },
			want: "power.idle-states", says: []string{allowed + "the limit in /dev/cpu_dma_latency is 100000 µs"},
		},
		{
			name: "the device cannot be read, and no process has it open", on: limited(),
			during: func(n *node) { n.holdsLatency("tuned", "/dev/null") },
			want:   "power.idle-states", says: []string{allowed + "no program holds a limit in /dev/cpu_dma_latency"},
		},
		{
			name: "an isolated CPU slept deeply in spite of the limit", on: limited(),
			during: func(n *node) { n.sleeps(n.isolated()) },
			want:   "power.idle-entries", says: []string{"CPU {cpu}", "was entered since the last reading"},
		},
	}
}

func variationsOfLatencyLimit() []variation {
	return []variation{
		{
			name: "the device says its limit in four bytes", on: limited(),
			during: func(n *node) { n.put(latencyDevice, "\x00\x00\x00\x00") },
		},
		{
			name: "a program of a pod holds a stricter limit beside TuneD", on: limited(),
			change: func(n *node) { n.put(latencyDevice, "0\n") },
		},
		{
			name: "the device cannot be read, and TuneD has it open in its container", on: limited(),
			during: func(n *node) { n.holdsLatency("tuned", "/host"+latencyDevice) },
		},
		{
			name: "nobody holds a limit, and each isolated CPU has one of its own", on: []string{xeonLimit},
			change: func(n *node) {
				n.put(latencyDevice, "2000000000\n")
				for _, id := range n.plan.CPUs.Isolated.IDs() {
					n.put(cpu(id, "power/pm_qos_resume_latency_us"), "n/a\n")
				}
			},
		},
		{
			name: "a housekeeping CPU slept deeply", on: limited(),
			during: func(n *node) { n.sleeps(n.housekeeping()) },
		},
	}
}
