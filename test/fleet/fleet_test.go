// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package fleet measures what a large fleet costs.
package fleet

import (
	"os"
	"runtime"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift/manifests"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

const nodes = 5000

// machines are five classes of hardware whose plans differ.
func machines() []hosttree.Machine {
	interleaved := hosttree.Xeon()
	interleaved.Numbering = hosttree.NumberingInterleaved
	small := hosttree.EPYC()
	small.CoresPerNUMANode /= 2
	return []hosttree.Machine{hosttree.Xeon(), hosttree.EPYC(), hosttree.Arm(), interleaved, small}
}

// inventories are what the agents of the five classes report.
func inventories(tb testing.TB) []*v1alpha1.Inventory {
	tb.Helper()
	classes := machines()
	all := make([]*v1alpha1.Inventory, len(classes))
	for i, machine := range classes {
		dir := tb.TempDir()
		if err := machine.Write(dir); err != nil {
			tb.Fatalf("building a host: %v", err)
		}
		opened, err := host.Open(dir)
		if err != nil {
			tb.Fatalf("opening a host: %v", err)
		}
		facts, err := opened.Read(tb.Context())
		if err != nil {
			tb.Fatalf("reading a host: %v", err)
		}
		if err := opened.Close(); err != nil {
			tb.Fatalf("closing a host: %v", err)
		}
		hardware, err := topology.FromFacts(facts)
		if err != nil {
			tb.Fatalf("deriving a topology: %v", err)
		}
		all[i] = topology.Inventory(facts, hardware)
	}
	return all
}

func profile(tb testing.TB) *v1alpha1.LowLatencyNodeProfile {
	tb.Helper()
	text, err := os.ReadFile("../../hack/demo/trading.yaml")
	if err != nil {
		tb.Fatalf("reading the profile: %v", err)
	}
	parsed := &v1alpha1.LowLatencyNodeProfile{}
	if err := yaml.UnmarshalStrict(text, parsed); err != nil {
		tb.Fatalf("reading the profile: %v", err)
	}
	return parsed
}

// planAndRender takes every node's inventory to a plan, without any memory of nodes before, and every
// distinct plan to its objects. It returns the number of nodes by plan.
func planAndRender(tb testing.TB, wanted *v1alpha1.LowLatencyNodeProfile, reported []*v1alpha1.Inventory, count int) map[string]int {
	tb.Helper()
	shapes := map[string]int{}
	for i := range count {
		hardware, err := topology.FromInventory(reported[i%len(reported)])
		if err != nil {
			tb.Fatalf("reading an inventory: %v", err)
		}
		planned, findings := plan.New(plan.Input{Profile: wanted, Topology: hardware})
		if planned == nil {
			tb.Fatalf("no plan: %v", findings)
		}
		hash := planned.Hash()
		if shapes[hash]++; shapes[hash] > 1 {
			continue
		}
		pool := manifests.MachineConfigPool{Name: "trading-" + hardware.Signature()[:8], Management: v1alpha1.PoolsManaged}
		if _, err := manifests.Objects(manifests.Input{Plan: planned, MachineConfigPool: pool, Namespace: "operator"}); err != nil {
			tb.Fatalf("rendering: %v", err)
		}
	}
	return shapes
}

func TestFiveShapes(t *testing.T) {
	shapes := planAndRender(t, profile(t), inventories(t), 50)
	if len(shapes) != 5 {
		t.Fatalf("%d shapes, want 5", len(shapes))
	}
	for hash, count := range shapes {
		if count != 10 {
			t.Errorf("shape %s has %d nodes, want 10", hash, count)
		}
	}
}

// BenchmarkPlanAndRender takes 5,000 nodes of five shapes from inventories to rendered objects.
func BenchmarkPlanAndRender(b *testing.B) {
	wanted, reported := profile(b), inventories(b)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for b.Loop() {
		planAndRender(b, wanted, reported, nodes)
	}
	runtime.ReadMemStats(&after)
	perNode := float64(b.N) * nodes
	b.ReportMetric(float64(b.Elapsed().Microseconds())/perNode, "µs/node")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/perNode, "allocs/node")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/perNode/1024, "KiB/node")
}
