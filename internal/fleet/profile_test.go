// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

func worldOf(profile *v1alpha1.LowLatencyNodeProfile, others []*v1alpha1.LowLatencyNodeProfile, nodes []*corev1.Node, reports ...*v1alpha1.LowLatencyNode) *ProfileWorld {
	w := &ProfileWorld{Profile: profile, Others: others, Nodes: map[string]*corev1.Node{}, Reports: map[string]*v1alpha1.LowLatencyNode{}}
	for _, node := range nodes {
		w.Nodes[node.Name] = node
	}
	for _, report := range reports {
		w.Reports[report.Name] = report
	}
	return w
}

func TestDecide(t *testing.T) {
	xeon, epyc := objects.InventoryOf(t, hosttree.Xeon()), objects.InventoryOf(t, hosttree.EPYC())
	broken := xeon.DeepCopy()
	broken.Hash, broken.OnlineCPUs = "broken", "x"
	w := worldOf(objects.MakeProfile("trading").Obj(),
		[]*v1alpha1.LowLatencyNodeProfile{
			objects.MakeProfile("zeta").Selecting(v1alpha1.Labels{"disputed": "yes"}).Obj(),
			objects.MakeProfile("alpha").Selecting(v1alpha1.Labels{"disputed": "yes"}).Obj(),
			objects.MakeProfile("gamma").Selecting(v1alpha1.Labels{"given": "yes"}).Obj(),
		},
		[]*corev1.Node{
			objects.MakeNode("n1", "role", "trading"), objects.MakeNode("n2", "role", "trading"), objects.MakeNode("n3", "role", "trading"),
			objects.MakeNode("new", "role", "trading"), objects.MakeNode("unread", "role", "trading"), objects.MakeNode("broken", "role", "trading"),
			objects.MakeNode("disputed", "role", "trading", "disputed", "yes"),
			objects.MakeNode("contested", "role", "trading", "given", "yes"),
			objects.MakeNode("leaving", v1alpha1.LabelProfile, "trading"),
			objects.MakeNode("taken", v1alpha1.LabelProfile, "trading", "disputed", "yes"),
			objects.MakeNode("given", v1alpha1.LabelProfile, "trading", "given", "yes"),
			objects.MakeNode("stranger", "role", "other"),
		},
		objects.MakeReport("n1", "trading").Inventory(xeon).Obj(), objects.MakeReport("n2", "trading").Inventory(epyc).Obj(),
		objects.MakeReport("n3", "trading").Inventory(xeon).Obj(), objects.MakeReport("unread", "trading").Obj(),
		objects.MakeReport("broken", "trading").Inventory(broken).Obj(),
		objects.MakeReport("disputed", "trading").Inventory(xeon).Obj(), objects.MakeReport("contested", "trading").Inventory(xeon).Obj(),
	)
	w.Reports["n2"].Spec.PlanHash = "another"
	d := DecideProfile(w, NewPlanner(plan.PlatformRules{}))
	if diff := cmp.Diff(map[string]bool{"n2": true}, d.Intent.Pending); diff != "" {
		t.Errorf("pending nodes mismatch (-want +got):\n%s", diff)
	}
	wantHeld := map[string]string{
		"new":       "its agent has not reported an inventory yet",
		"unread":    "its agent has not reported an inventory yet",
		"broken":    "the profile cannot be met on it",
		"disputed":  "profile alpha, zeta selects it, too",
		"contested": "profile gamma selects it, too",
		"taken":     "profile alpha is about to take it over",
		"given":     "profile gamma is about to take it over",
	}
	if diff := cmp.Diff(wantHeld, d.Intent.Held); diff != "" {
		t.Errorf("held nodes mismatch (-want +got):\n%s", diff)
	}
	wantSelected := []string{"broken", "contested", "disputed", "n1", "n2", "n3", "new", "unread"}
	if diff := cmp.Diff(wantSelected, d.Intent.Selected); diff != "" {
		t.Errorf("selected nodes mismatch (-want +got):\n%s", diff)
	}
	nodes := map[string][]string{}
	for _, shape := range d.Intent.Shapes {
		nodes[shape.Plan.Vendor] = shape.Nodes
	}
	if diff := cmp.Diff(map[string][]string{"Intel": {"n1", "n3"}, "AMD": {"n2"}}, nodes); diff != "" {
		t.Errorf("shapes mismatch (-want +got):\n%s", diff)
	}
	if d.Intent.ReadOnly {
		t.Error("the intent is read-only, want it not to be")
	}
	if w.Profile = objects.MakeProfile("trading").Paused().Obj(); !DecideProfile(w, NewPlanner(plan.PlatformRules{})).Intent.ReadOnly {
		t.Error("a paused profile writes to the platform")
	}
}

func TestDecideReturn(t *testing.T) {
	w := worldOf(objects.MakeProfile("trading").Obj(),
		[]*v1alpha1.LowLatencyNodeProfile{objects.MakeProfile("next").Selecting(v1alpha1.Labels{"next": ""}).Obj()},
		[]*corev1.Node{
			objects.MakeNode("n1", v1alpha1.LabelProfile, "trading"),
			objects.MakeNode("n2", v1alpha1.LabelProfile, "trading", "next", ""),
			objects.MakeNode("n3", v1alpha1.LabelProfile, "next", "next", ""),
		})
	want := map[string]string{"n2": "profile next is about to take it over"}
	if diff := cmp.Diff(want, DecideReturn(w).Intent.Held); diff != "" {
		t.Errorf("held nodes mismatch (-want +got):\n%s", diff)
	}
}
