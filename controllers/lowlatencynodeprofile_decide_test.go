// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

func worldOf(profile *v1alpha1.LowLatencyNodeProfile, others []*v1alpha1.LowLatencyNodeProfile, nodes []*corev1.Node, reports ...*v1alpha1.LowLatencyNode) *profileWorld {
	w := &profileWorld{profile: profile, others: others, nodes: map[string]*corev1.Node{}, reports: map[string]*v1alpha1.LowLatencyNode{}}
	for _, node := range nodes {
		w.nodes[node.Name] = node
	}
	for _, report := range reports {
		w.reports[report.Name] = report
	}
	return w
}

func TestDecide(t *testing.T) {
	xeon, epyc := inventoryOf(t, hosttree.Xeon()), inventoryOf(t, hosttree.EPYC())
	broken := xeon.DeepCopy()
	broken.Hash, broken.OnlineCPUs = "broken", "x"
	w := worldOf(makeProfile("trading").obj(),
		[]*v1alpha1.LowLatencyNodeProfile{
			makeProfile("zeta").selecting(v1alpha1.Labels{"disputed": "yes"}).obj(),
			makeProfile("alpha").selecting(v1alpha1.Labels{"disputed": "yes"}).obj(),
		},
		[]*corev1.Node{
			makeNode("n1", "role", "trading"), makeNode("n2", "role", "trading"), makeNode("n3", "role", "trading"),
			makeNode("new", "role", "trading"), makeNode("silent", "role", "trading"), makeNode("broken", "role", "trading"),
			makeNode("disputed", "role", "trading", "disputed", "yes"),
			makeNode("leaving", v1alpha1.LabelProfile, "trading"),
			makeNode("taken", v1alpha1.LabelProfile, "trading", "disputed", "yes"),
			makeNode("stranger", "role", "other"),
		},
		makeReport("n1", "trading").inventory(xeon).obj(), makeReport("n2", "trading").inventory(epyc).obj(),
		makeReport("n3", "trading").inventory(xeon).obj(), makeReport("silent", "trading").obj(),
		makeReport("broken", "trading").inventory(broken).obj(),
		makeReport("disputed", "trading").inventory(xeon).obj(),
	)
	d := decide(w, newPlanner())
	wantHeld := map[string]string{
		"new":      "its agent has not reported an inventory yet",
		"silent":   "its agent has not reported an inventory yet",
		"broken":   "the profile cannot be met on it",
		"disputed": "profile alpha, zeta selects it, too",
		"taken":    "profile alpha is about to take it over",
	}
	if diff := cmp.Diff(wantHeld, d.intent.Held); diff != "" {
		t.Errorf("held nodes mismatch (-want +got):\n%s", diff)
	}
	wantSelected := []string{"broken", "disputed", "n1", "n2", "n3", "new", "silent"}
	if diff := cmp.Diff(wantSelected, d.intent.Selected); diff != "" {
		t.Errorf("selected nodes mismatch (-want +got):\n%s", diff)
	}
	nodes := map[string][]string{}
	for _, shape := range d.intent.Shapes {
		nodes[shape.Plan.Vendor] = shape.Nodes
	}
	if diff := cmp.Diff(map[string][]string{"Intel": {"n1", "n3"}, "AMD": {"n2"}}, nodes); diff != "" {
		t.Errorf("shapes mismatch (-want +got):\n%s", diff)
	}
	if d.intent.ReadOnly {
		t.Error("the intent is read-only, want it not to be")
	}
	if w.profile = makeProfile("trading").paused().obj(); !decide(w, newPlanner()).intent.ReadOnly {
		t.Error("a paused profile writes to the platform")
	}
}

func TestDecideReturn(t *testing.T) {
	w := worldOf(makeProfile("trading").obj(),
		[]*v1alpha1.LowLatencyNodeProfile{makeProfile("next").selecting(v1alpha1.Labels{"next": ""}).obj()},
		[]*corev1.Node{
			makeNode("n1", v1alpha1.LabelProfile, "trading"),
			makeNode("n2", v1alpha1.LabelProfile, "trading", "next", ""),
			makeNode("n3", v1alpha1.LabelProfile, "next", "next", ""),
		})
	want := map[string]string{"n2": "profile next is about to take it over"}
	if diff := cmp.Diff(want, decideReturn(w).intent.Held); diff != "" {
		t.Errorf("held nodes mismatch (-want +got):\n%s", diff)
	}
}

func TestSelectsNode(t *testing.T) {
	cases := map[string]struct {
		selector v1alpha1.Labels
		node     *corev1.Node
		want     bool
	}{
		"all labels":      {v1alpha1.Labels{"a": "1", "b": ""}, makeNode("n", "a", "1", "b", "", "c", "3"), true},
		"another value":   {v1alpha1.Labels{"a": "1"}, makeNode("n", "a", "2"), false},
		"a missing label": {v1alpha1.Labels{"a": ""}, makeNode("n", "b", ""), false},
		"no selector":     {nil, makeNode("n", "a", "1"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := selectsNode(makeProfile("p").selecting(tc.selector).obj(), tc.node); got != tc.want {
				t.Errorf("selectsNode() = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestCurrentCondition(t *testing.T) {
	const kind = v1alpha1.ConditionDeJittered
	cases := map[string]struct {
		report     *v1alpha1.LowLatencyNode
		hash       string
		wantStatus metav1.ConditionStatus
		wantReason string
	}{
		"no LowLatencyNode":         {nil, "h", metav1.ConditionUnknown, v1alpha1.ReasonAwaitingInventory},
		"no inventory":              {makeReport("n", "p").obj(), "h", metav1.ConditionUnknown, v1alpha1.ReasonAwaitingInventory},
		"no plan":                   {makeReport("n", "p").verified("h", "TTT").obj(), "", metav1.ConditionUnknown, v1alpha1.ReasonAwaitingPlan},
		"verified for another plan": {makeReport("n", "p").verified("old", "TTT").obj(), "h", metav1.ConditionUnknown, v1alpha1.ReasonAwaitingVerification},
		"verified and true":         {makeReport("n", "p").verified("h", "TTT").obj(), "h", metav1.ConditionTrue, v1alpha1.ReasonVerified},
		"verified and false":        {makeReport("n", "p").verified("h", "TFT").obj(), "h", metav1.ConditionFalse, v1alpha1.ReasonChecksFailed},
		"verified and unknown":      {makeReport("n", "p").verified("h", "TUT").obj(), "h", metav1.ConditionUnknown, v1alpha1.ReasonChecksUnknown},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := currentCondition(tc.report, tc.hash, kind)
			if got.Status != tc.wantStatus || got.Reason != tc.wantReason || got.Message == "" {
				t.Errorf("currentCondition() = %+v, want %s %s", got, tc.wantStatus, tc.wantReason)
			}
		})
	}
	silent := makeReport("n", "p").verified("h", "TTT").obj()
	silent.Status.Conditions = nil
	if got := currentCondition(silent, "h", kind); got.Status != metav1.ConditionUnknown || got.Reason != v1alpha1.ReasonAwaitingVerification {
		t.Errorf("a missing condition is %+v, want Unknown", got)
	}
}

func TestIsReport(t *testing.T) {
	node := makeNode("n")
	spec := v1alpha1.LowLatencyNodeSpec{Profile: "p", PlanHash: "h", PlanConfigMap: "p-h"}
	base := func() *v1alpha1.LowLatencyNode {
		r := makeReport("n", "p").obj()
		r.Spec = spec
		return r
	}
	cases := map[string]struct {
		change func(*v1alpha1.LowLatencyNode)
		want   bool
	}{
		"equal":               {func(*v1alpha1.LowLatencyNode) {}, true},
		"another plan":        {func(r *v1alpha1.LowLatencyNode) { r.Spec.PlanHash = "x" }, false},
		"another profile":     {func(r *v1alpha1.LowLatencyNode) { r.Spec.Profile = "x" }, false},
		"a missing label":     {func(r *v1alpha1.LowLatencyNode) { r.Labels = nil }, false},
		"owner of older node": {func(r *v1alpha1.LowLatencyNode) { r.OwnerReferences[0].UID = "old" }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			report := base()
			tc.change(report)
			if got := isReport(report, spec, node); got != tc.want {
				t.Errorf("isReport() = %v, want %v", got, tc.want)
			}
		})
	}
	if isReport(nil, spec, node) {
		t.Error("a LowLatencyNode that does not exist is as wanted")
	}
}
