// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package status

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

const fleetSize = 5000

// fiveMachines are machines of five shapes.
func fiveMachines() []hosttree.Machine {
	smallXeon, smallEPYC := hosttree.Xeon(), hosttree.EPYC()
	smallXeon.CoresPerNUMANode /= 2
	smallEPYC.CoresPerNUMANode /= 2
	return []hosttree.Machine{hosttree.Xeon(), hosttree.EPYC(), hosttree.Arm(), smallXeon, smallEPYC}
}

// fleetWorld is a world of 5,000 nodes of five shapes whose agents have reported everything. With distinct, no
// two nodes have equal inventories, as when each kernel command line names its own disk.
func fleetWorld(tb testing.TB, distinct bool) *fleet.ProfileWorld {
	tb.Helper()
	machines := fiveMachines()
	inventories := make([]*v1alpha1.Inventory, 0, len(machines))
	for _, machine := range machines {
		inventories = append(inventories, objects.InventoryOf(tb, machine))
	}
	w := &fleet.ProfileWorld{
		Profile: objects.MakeProfile("trading").Obj(), Others: []*v1alpha1.LowLatencyNodeProfile{objects.MakeProfile("other").Obj()},
		Nodes: map[string]*corev1.Node{}, Reports: map[string]*v1alpha1.LowLatencyNode{},
	}
	for i := range fleetSize {
		name := fmt.Sprintf("node-%04d", i)
		inventory := inventories[i%len(inventories)]
		if distinct {
			inventory = inventory.DeepCopy()
			inventory.Hash = name
			inventory.KernelCommandLine += " root=UUID=" + name
		}
		w.Nodes[name] = objects.MakeNode(name, "role", "trading", v1alpha1.LabelProfile, "trading")
		w.Reports[name] = objects.MakeReport(name, "trading").Inventory(inventory).Obj()
	}
	d := fleet.DecideProfile(w, fleet.NewPlanner(plan.PlatformRules{}))
	if len(d.Intent.Shapes) != len(inventories) {
		tb.Fatalf("the fleet has %d shapes, want %d", len(d.Intent.Shapes), len(inventories))
	}
	for i := range d.Members {
		m := &d.Members[i]
		verified := objects.MakeReport(m.Name(), "trading").Inventory(m.Report.Status.Inventory).Verified(m.PlanHash(), "TTT")
		verified.Spec.PlanConfigMap = m.Planned.ConfigMap
		w.Reports[m.Name()] = verified.Obj()
	}
	return w
}

// handle is what one event of a node costs: everything between reading the cache and writing.
func handle(w *fleet.ProfileWorld, plans *fleet.Planner, outcome fleet.Outcome) v1alpha1.LowLatencyNodeProfileStatus {
	d := fleet.DecideProfile(w, plans)
	return OfProfile(d, outcome, time.Unix(0, 0))
}

func perNode(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/fleetSize, "ns/node")
}

// BenchmarkOneNodeChanges is the work for the status of one node of 5,000.
func BenchmarkOneNodeChanges(b *testing.B) {
	w, plans := fleetWorld(b, true), fleet.NewPlanner(plan.PlatformRules{})
	w.Profile.Status = handle(w, plans, inForce())
	broken := w.Reports["node-0042"].DeepCopy()
	broken.Status.Conditions[1].Status = metav1.ConditionFalse
	broken.Status.Findings = []v1alpha1.Finding{{
		Check: "irq.affinity", Severity: v1alpha1.SeverityCritical, Outcome: v1alpha1.OutcomeFailed, Message: "IRQ 142",
	}}
	healthy := w.Reports["node-0042"]
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		w.Reports["node-0042"] = healthy
		if i%2 == 0 {
			w.Reports["node-0042"] = broken
		}
		if next := handle(w, plans, inForce()); SameProfile(&w.Profile.Status, &next) != (i%2 == 1) {
			b.Fatal("the status does not follow the node")
		}
	}
	perNode(b)
}

// BenchmarkOneNodeReboots is the work when one node of 5,000 reports another inventory, which has to be planned for.
func BenchmarkOneNodeReboots(b *testing.B) {
	w, plans := fleetWorld(b, true), fleet.NewPlanner(plan.PlatformRules{})
	handle(w, plans, inForce())
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		report := w.Reports["node-0042"].DeepCopy()
		report.Status.Inventory.Hash = fmt.Sprint("boot", i)
		report.Status.Inventory.KernelCommandLine = fmt.Sprint("boot=", i)
		w.Reports["node-0042"] = report
		handle(w, plans, inForce())
	}
	perNode(b)
}

// BenchmarkProfileChanges is the work when a profile of 5,000 nodes changes, so that every node is planned for.
func BenchmarkProfileChanges(b *testing.B) {
	for name, distinct := range map[string]bool{"EqualInventories": false, "DistinctInventories": true} {
		b.Run(name, func(b *testing.B) {
			w, plans := fleetWorld(b, distinct), fleet.NewPlanner(plan.PlatformRules{})
			b.ReportAllocs()
			for b.Loop() {
				w.Profile.Generation++
				handle(w, plans, inForce())
			}
			perNode(b)
		})
	}
}
