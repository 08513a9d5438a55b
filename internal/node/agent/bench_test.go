// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/tunedhost"
)

// benchmarkMachines are a worker of 80 CPUs with 2 NUMA nodes, and a host of 512 CPUs with 8 NUMA nodes and 4,000
// interrupts.
func benchmarkMachines() map[string]hosttree.Machine {
	worker := hosttree.Xeon()
	worker.CoresPerNUMANode, worker.CoresPerL3 = 20, 20
	for i := range worker.NICs {
		worker.NICs[i].Queues = 40
	}
	large := hosttree.EPYC()
	large.CoresPerNUMANode = 32
	template := large.NICs[len(large.NICs)-1]
	for i := range 15 {
		nic := template
		nic.Name, nic.PCIAddress = fmt.Sprintf("ens%df0", 20+i), fmt.Sprintf("0000:%02x:00.0", 0xa0+i)
		nic.NUMANode, nic.Queues = i%8, 256
		large.NICs = append(large.NICs, nic)
	}
	return map[string]hosttree.Machine{"cpus=80": worker, "cpus=512": large}
}

// readyAgent has passed over a host that is as planned twice.
func readyAgent(b *testing.B, machine hosttree.Machine) *Agent {
	b.Helper()
	h, err := tunedhost.New(b.Context(), b.TempDir(), machine, tunedhost.Profile())
	if err != nil {
		b.Fatal(err)
	}
	if err := h.Apply(); err != nil {
		b.Fatal(err)
	}
	a := &Agent{Root: h.Dir, Window: time.Nanosecond, plan: plannedState{plan: h.Plan, hash: h.Plan.Hash()}}
	b.Cleanup(func() {
		if err := a.root.close(); err != nil {
			b.Error(err)
		}
	})
	for range 2 {
		if seen := a.observe(b.Context(), &v1alpha1.LowLatencyNode{}); seen.Report == nil {
			b.Fatal(seen.Message)
		}
	}
	return a
}

// measure reports the CPU time of one pass, the garbage collector's included.
func measure(b *testing.B, pass func()) {
	b.Helper()
	b.ReportAllocs()
	procs := runtime.GOMAXPROCS(2) // As in config/agent/daemonset.yaml.
	defer runtime.GOMAXPROCS(procs)
	before := processorTime(b)
	for b.Loop() {
		pass()
	}
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

// processorTime is what this process has used, in the kernel and outside.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkFullPass reads and judges a whole host.
func BenchmarkFullPass(b *testing.B) {
	for name, machine := range benchmarkMachines() {
		b.Run(name, func(b *testing.B) {
			a := readyAgent(b, machine)
			measure(b, func() { a.observe(b.Context(), &v1alpha1.LowLatencyNode{}) })
		})
	}
}

// BenchmarkDeltaPass reads and judges the counters.
func BenchmarkDeltaPass(b *testing.B) {
	for name, machine := range benchmarkMachines() {
		b.Run(name, func(b *testing.B) {
			a := readyAgent(b, machine)
			measure(b, func() {
				if !a.countersTellNothingNew(b.Context()) {
					b.Fatal("a host on which nothing happens tells something new")
				}
			})
		})
	}
}
