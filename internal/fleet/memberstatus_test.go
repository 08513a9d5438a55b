// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

// TestMemberStatus: a condition counts for the plan by which the node is judged, and for no other.
func TestMemberStatus(t *testing.T) {
	verified := objects.MakeReport("n", "p").Verified("h", "TFU")
	other, rebooted := verified.Obj(), verified.Obj()
	rebooted.Status.BootID = "b1"
	other.Status.VerifiedPlanHash = "before"
	wanted := &Planned{Plan: &plan.NodePlan{}, Hash: "h"}
	cases := map[string]struct {
		member Member
		kind   string
		want   metav1.ConditionStatus
	}{
		"true for the plan":              {Member{Report: verified.Obj(), Planned: wanted}, v1alpha1.ConditionApplied, metav1.ConditionTrue},
		"false for the plan":             {Member{Report: verified.Obj(), Planned: wanted}, v1alpha1.ConditionDeJittered, metav1.ConditionFalse},
		"unknown for the plan":           {Member{Report: verified.Obj(), Planned: wanted}, v1alpha1.ConditionNUMAAligned, metav1.ConditionUnknown},
		"a condition that nobody judged": {Member{Report: verified.Obj(), Planned: wanted}, v1alpha1.ConditionReady, metav1.ConditionUnknown},
		"true for another plan":          {Member{Report: other, Planned: wanted}, v1alpha1.ConditionApplied, metav1.ConditionUnknown},
		"the platform has turned the node to another plan": {
			Member{Report: verified.Obj(), Planned: &Planned{Plan: &plan.NodePlan{}, Hash: "next"}, Turned: true}, v1alpha1.ConditionApplied, metav1.ConditionUnknown,
		},
		"true before the last boot":     {Member{Report: rebooted, Planned: wanted}, v1alpha1.ConditionApplied, metav1.ConditionUnknown},
		"no plan, and nothing reported": {Member{}, v1alpha1.ConditionApplied, metav1.ConditionUnknown},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.member.Node = objects.MakeNode("n")
			if tc.member.Report == rebooted {
				tc.member.Node.Status.NodeInfo.BootID = "b2"
			}
			if got := tc.member.Status(tc.kind); got != tc.want {
				t.Errorf("%s is %s, want %s", tc.kind, got, tc.want)
			}
			if got := tc.member.Is(tc.kind); got != (tc.want == metav1.ConditionTrue) {
				t.Errorf("Is(%s) is %t", tc.kind, got)
			}
		})
	}
}

// TestIsInForce: the plan that the profile wants is in force where the node is judged by it and its agent has found it applied.
func TestIsInForce(t *testing.T) {
	wants := func(hash string) *Planned { return &Planned{Plan: &plan.NodePlan{}, Hash: hash} }
	applied, missing := objects.MakeReport("n", "p").Verified("h", "TTT").Obj(), objects.MakeReport("n", "p").Verified("h", "FTT").Obj()
	cases := map[string]struct {
		member Member
		want   bool
	}{
		"applied":               {Member{Report: applied, Planned: wants("h")}, true},
		"not applied":           {Member{Report: missing, Planned: wants("h")}, false},
		"another one is wanted": {Member{Report: applied, Planned: wants("next")}, false},
		"none is wanted":        {Member{Report: applied}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.member.Node = objects.MakeNode("n")
			if got := tc.member.IsInForce(); got != tc.want {
				t.Errorf("IsInForce() = %t, want %t", got, tc.want)
			}
		})
	}
}

// TestPlannerComparesContent: inventories that say the same have one plan, whatever their agents call them.
func TestPlannerComparesContent(t *testing.T) {
	xeon := objects.InventoryOf(t, hosttree.Xeon())
	renamed := xeon.DeepCopy()
	renamed.Hash = "of another release of the agent"
	profile, p := objects.MakeProfile("trading").Obj(), NewPlanner(plan.PlatformRules{})
	if first, again := p.Plan(profile, NodePools{}, "n1", xeon), p.Plan(profile, NodePools{}, "n2", renamed); again != first {
		t.Errorf("plans %s and %s", first.Hash, again.Hash)
	}
}
