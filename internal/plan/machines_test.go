// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

const gibibyte = int64(1) << 30

// layout describes a regular machine. CPUs are numbered as on most servers: the first threads of all
// cores, NUMA node after NUMA node, then the second threads in the same order.
type layout struct {
	architecture, vendor, release  string
	numaNodes, coresPerNode        int
	threads, cachesPerNode         int
	memoryPerNode                  int64
	first, stride                  int
	hugepageSizes                  []int64
	minimumFrequency, maxFrequency int64
}

func (l layout) topology() *topology.Topology {
	t := &topology.Topology{
		Architecture: l.architecture, Vendor: l.vendor, Model: "test", KernelRelease: l.release,
		KernelRealTime: new(false), CommandLine: "root=/dev/sda1 rw",
		MinimumFrequency: l.minimumFrequency, MaximumFrequency: l.maxFrequency,
	}
	if l.architecture == "amd64" {
		// The numbers of an Intel server of the Ice Lake generation.
		t.Family, t.ModelNumber = 6, 106
	}
	cores := l.numaNodes * l.coresPerNode
	number := func(core, thread int) int { return l.first + l.stride*(thread*cores+core) }
	for core := range cores {
		threads := make([]int, l.threads)
		for thread := range threads {
			threads[thread] = number(core, thread)
		}
		node, l3 := core/l.coresPerNode, unknown
		if l.cachesPerNode > 0 {
			l3 = core * l.cachesPerNode / l.coresPerNode
		}
		set := cpus.Of(threads...)
		t.Cores = append(t.Cores, topology.Core{CPUs: set, NUMANode: node, Package: 0, L3: l3})
		t.Online = t.Online.Union(set)
		if l3 >= 0 {
			t.L3Domains = grow(t.L3Domains, l3, set)
		}
		if len(t.NUMANodes) <= node {
			t.NUMANodes = append(t.NUMANodes, topology.NUMANode{ID: node, MemoryBytes: new(l.memoryPerNode),
				HugepageSizes: l.hugepageSizes})
		}
		t.NUMANodes[node].CPUs = t.NUMANodes[node].CPUs.Union(set)
	}
	t.Present = t.Online
	t.Packages = []cpus.Set{t.Online}
	return t
}

func grow(sets []cpus.Set, at int, set cpus.Set) []cpus.Set {
	for len(sets) <= at {
		sets = append(sets, cpus.Set{})
	}
	sets[at] = sets[at].Union(set)
	return sets
}

// xeon has two NUMA nodes with 20 cores of two threads: CPUs 0-19,40-59 and 20-39,60-79.
func xeon() *topology.Topology {
	t := layout{architecture: "amd64", vendor: "Intel", release: "5.14.0-427.el9.x86_64", numaNodes: 2, coresPerNode: 20,
		threads: 2, cachesPerNode: 1, memoryPerNode: 192 * gibibyte, stride: 1, hugepageSizes: []int64{2048, 1048576},
		minimumFrequency: 800000, maxFrequency: 3600000}.topology()
	t.NICs = []topology.NIC{
		nic("0000:3b:00.0", "ens1f0", "1924", new(0)),
		nic("0000:af:00.0", "ens2f0", "1924", new(1)),
		nic("0000:af:00.1", "ens2f1", "8086", new(1)),
	}
	return t
}

// epyc has 8 NUMA nodes with 8 cores of two threads and two L3 domains each.
func epyc() *topology.Topology {
	t := layout{architecture: "amd64", vendor: "AMD", release: "6.12.0-55.el10.x86_64", numaNodes: 8, coresPerNode: 8,
		threads: 2, cachesPerNode: 2, memoryPerNode: 64 * gibibyte, stride: 1, hugepageSizes: []int64{2048, 1048576},
		minimumFrequency: 1500000, maxFrequency: 3700000}.topology()
	t.NICs = []topology.NIC{nic("0000:61:00.0", "ens3", "15b3", new(2))}
	return t
}

// arm has two NUMA nodes with 64 cores of one thread and tells no caches.
func arm() *topology.Topology {
	t := layout{architecture: "arm64", vendor: "ARM", release: "5.14.0-427.el9.aarch64", numaNodes: 2, coresPerNode: 64,
		threads: 1, memoryPerNode: 256 * gibibyte, stride: 1, hugepageSizes: []int64{64, 2048, 32768, 1048576}}.topology()
	t.NICs = []topology.NIC{nic("0003:01:00.0", "enP3s1", "15b3", new(1))}
	return t
}

// small is a virtual machine without NUMA.
func small(cores, threads int) *topology.Topology {
	return layout{architecture: "amd64", vendor: "Intel", release: "6.1.0-21-amd64", numaNodes: 1, coresPerNode: cores,
		threads: threads, cachesPerNode: 1, memoryPerNode: 16 * gibibyte, stride: 1,
		hugepageSizes: []int64{2048, 1048576}}.topology()
}

// large has 512 CPUs.
func large() *topology.Topology {
	return layout{architecture: "amd64", vendor: "AMD", release: "6.12.0", numaNodes: 2, coresPerNode: 128, threads: 2,
		cachesPerNode: 16, memoryPerNode: 768 * gibibyte, stride: 1}.topology()
}

func nic(address, name, vendor string, numa *int) topology.NIC {
	return topology.NIC{PCIAddress: address, Name: name, Vendor: vendor, Device: "0b03", Driver: "test", NUMANode: numa}
}

// withMemoryNode adds a NUMA node that has memory only.
func withMemoryNode(t *topology.Topology) *topology.Topology {
	t.NUMANodes = append(t.NUMANodes, topology.NUMANode{ID: len(t.NUMANodes), MemoryBytes: new(128 * gibibyte)})
	return t
}

// withoutSMT is the machine after it was booted with nosmt. The firmware may or may not let the kernel
// name the offline siblings.
func withoutSMT(t *topology.Topology, siblingsTold bool) *topology.Topology {
	t.CommandLine += " nosmt"
	for i, c := range t.Cores {
		first := cpus.Of(c.CPUs.First())
		t.Offline = t.Offline.Union(c.CPUs.Difference(first))
		if !siblingsTold {
			t.Cores[i].CPUs = first
		}
	}
	t.Online = t.Online.Difference(t.Offline)
	for i := range t.NUMANodes {
		t.NUMANodes[i].CPUs = t.NUMANodes[i].CPUs.Intersection(t.Online)
	}
	for i := range t.L3Domains {
		t.L3Domains[i] = t.L3Domains[i].Intersection(t.Online)
	}
	return t
}

// profileWith makes a profile.
func profileWith(change ...func(*v1alpha1.LowLatencyNodeProfileSpec)) *v1alpha1.LowLatencyNodeProfile {
	profile := &v1alpha1.LowLatencyNodeProfile{ObjectMeta: metav1.ObjectMeta{Name: "trading"}}
	for _, c := range change {
		c(&profile.Spec)
	}
	return profile
}

func derived(d v1alpha1.DerivedCPUs) func(*v1alpha1.LowLatencyNodeProfileSpec) {
	return func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.CPUs.Derived = &d }
}

func explicit(x v1alpha1.ExplicitCPUs) func(*v1alpha1.LowLatencyNodeProfileSpec) {
	return func(s *v1alpha1.LowLatencyNodeProfileSpec) {
		s.CPUs.Partition, s.CPUs.Explicit = v1alpha1.PartitionExplicit, &x
	}
}

func smtDisabled(s *v1alpha1.LowLatencyNodeProfileSpec) {
	s.CPUs.SimultaneousMultithreading = v1alpha1.SMTDisabled
}

func solarflare(s *v1alpha1.LowLatencyNodeProfileSpec) {
	s.Network.NICs = []v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"ens2f0"}}}
}

// planOf plans and fails when there is a Critical finding.
func planOf(t testingT, machine *topology.Topology, change ...func(*v1alpha1.LowLatencyNodeProfileSpec)) *NodePlan {
	t.Helper()
	plan, findings := New(Input{Profile: profileWith(change...), Topology: machine})
	if plan == nil {
		t.Fatalf("no plan: %s", describe(findings))
	}
	return plan
}

// findingsOf plans and returns the findings, written as "rule severity field".
func findingsOf(machine *topology.Topology, change ...func(*v1alpha1.LowLatencyNodeProfileSpec)) []string {
	_, findings := New(Input{Profile: profileWith(change...), Topology: machine})
	return list(findings, func(f Finding) string { return fmt.Sprintf("%s %s %s", f.Rule, f.Severity, f.Field) })
}

func describe(findings []Finding) string {
	return joined(findings, func(f Finding) string { return f.Message })
}

// arguments are the kernel arguments of a plan.
func arguments(plan *NodePlan) []string {
	return list(plan.KernelArguments, func(a Argument) string { return a.Text })
}

// list describes each item; nil for none.
func list[T any](items []T, describe func(T) string) []string {
	if len(items) == 0 {
		return nil
	}
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = describe(item)
	}
	return texts
}

// testingT is what tests, benchmarks and fuzz targets have in common.
type testingT interface {
	Helper()
	Fatalf(format string, values ...any)
}
