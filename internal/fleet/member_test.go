// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

func TestCurrentCondition(t *testing.T) {
	const kind = v1alpha1.ConditionDeJittered
	boots := func(reported string) *v1alpha1.LowLatencyNode {
		report := objects.MakeReport("n", "p").Verified("h", "TTT").Obj()
		report.Status.BootID = reported
		return report
	}
	cases := map[string]struct {
		report     *v1alpha1.LowLatencyNode
		hash       string
		wantStatus metav1.ConditionStatus
		wantReason string
	}{
		"no LowLatencyNode":         {nil, "h", metav1.ConditionUnknown, v1alpha1.ReasonAwaitingInventory},
		"no inventory":              {objects.MakeReport("n", "p").Obj(), "h", metav1.ConditionUnknown, v1alpha1.ReasonAwaitingInventory},
		"no plan":                   {objects.MakeReport("n", "p").Verified("h", "TTT").Obj(), "", metav1.ConditionUnknown, v1alpha1.ReasonAwaitingPlan},
		"verified for another plan": {objects.MakeReport("n", "p").Verified("old", "TTT").Obj(), "h", metav1.ConditionUnknown, v1alpha1.ReasonAwaitingVerification},
		"verified in this boot":     {boots("b2"), "h", metav1.ConditionTrue, v1alpha1.ReasonVerified},
		"verified in a former boot": {boots("b1"), "h", metav1.ConditionUnknown, v1alpha1.ReasonAwaitingVerification},
		"verified and true":         {objects.MakeReport("n", "p").Verified("h", "TTT").Obj(), "h", metav1.ConditionTrue, v1alpha1.ReasonVerified},
		"verified and false":        {objects.MakeReport("n", "p").Verified("h", "TFT").Obj(), "h", metav1.ConditionFalse, v1alpha1.ReasonChecksFailed},
		"verified and unknown":      {objects.MakeReport("n", "p").Verified("h", "TUT").Obj(), "h", metav1.ConditionUnknown, v1alpha1.ReasonChecksUnknown},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			node := objects.MakeNode("n")
			if tc.report != nil && tc.report.Status.BootID != "" {
				node.Status.NodeInfo.BootID = "b2"
			}
			got := CurrentCondition(node, tc.report, tc.hash, kind)
			if got.Status != tc.wantStatus || got.Reason != tc.wantReason || got.Message == "" {
				t.Errorf("CurrentCondition() = %+v, want %s %s", got, tc.wantStatus, tc.wantReason)
			}
		})
	}
	incomplete := objects.MakeReport("n", "p").Verified("h", "TTT").Obj()
	incomplete.Status.Conditions = nil
	if got := CurrentCondition(objects.MakeNode("n"), incomplete, "h", kind); got.Status != metav1.ConditionUnknown || got.Reason != v1alpha1.ReasonAwaitingVerification {
		t.Errorf("a missing condition is %+v, want Unknown", got)
	}
}

func TestIsUpToDate(t *testing.T) {
	node := objects.MakeNode("n")
	spec := v1alpha1.LowLatencyNodeSpec{Profile: "p", PlanHash: "h", PlanConfigMap: "p-h"}
	base := func() *v1alpha1.LowLatencyNode {
		r := objects.MakeReport("n", "p").Obj()
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
			if got := IsUpToDate(report, spec, node); got != tc.want {
				t.Errorf("IsUpToDate() = %v, want %v", got, tc.want)
			}
		})
	}
	if IsUpToDate(nil, spec, node) {
		t.Error("a LowLatencyNode that does not exist is as wanted")
	}
}

// TestPlannedPoolsOfAMember: a node that keeps another plan until its turn comes is judged with the pools of that plan.
func TestPlannedPoolsOfAMember(t *testing.T) {
	now, then := []v1alpha1.PlannedPool{{Name: "x2", Generation: 7}}, []v1alpha1.PlannedPool{{Name: "x2", Generation: 6}}
	pool := objects.MakePool("x2").Obj()
	pool.Generation = 7
	node := objects.MakeNode("n", "role", "trading")
	pools := NewPoolIndex([]*v1alpha1.BypassNICPool{pool}, nil).Of(node)
	report := func(hash string) *v1alpha1.LowLatencyNode {
		r := objects.MakeReport("n", "p").Obj()
		r.Spec = v1alpha1.LowLatencyNodeSpec{Profile: "p", PlanHash: hash, PlanConfigMap: "p-" + hash, PlannedPools: then}
		return r
	}
	planned := &Planned{Plan: &plan.NodePlan{}, Hash: "new", ConfigMap: "p-new"}
	for name, tc := range map[string]struct {
		member Member
		want   []v1alpha1.PlannedPool
	}{
		"the wanted plan":                    {Member{Report: report("new"), Planned: planned}, now},
		"the first plan":                     {Member{Planned: planned}, now},
		"another plan until the turn":        {Member{Report: report("old"), Planned: planned}, then},
		"another plan whose turn has come":   {Member{Report: report("old"), Planned: planned, Turned: true}, now},
		"the profile cannot be met":          {Member{Report: report("old"), Planned: &Planned{}}, then},
		"no inventory yet":                   {Member{Report: report("old")}, then},
		"no LowLatencyNode and no inventory": {Member{}, nil},
	} {
		tc.member.Node, tc.member.Pools = node, pools
		if diff := cmp.Diff(tc.want, tc.member.WantedSpec("p").PlannedPools); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestPoolToKeep: a machine config pool into which somebody else put the node is none of ours to keep.
func TestPoolToKeep(t *testing.T) {
	for name, tc := range map[string]struct {
		labels []string
		want   string
	}{
		"no label":                         {nil, ""},
		"a pool of the profile":            {[]string{v1alpha1.LabelProfile, "p", v1alpha1.LabelPool, "p-1"}, "p-1"},
		"a pool of the profile before":     {[]string{v1alpha1.LabelProfile, "former", v1alpha1.LabelPool, "former-1"}, "former-1"},
		"a pool that somebody else chose":  {[]string{v1alpha1.LabelPool, "stranger"}, ""},
		"a profile, and not yet in a pool": {[]string{v1alpha1.LabelProfile, "p"}, ""},
	} {
		member := Member{Node: objects.MakeNode("n", tc.labels...)}
		if got := member.PoolToKeep(); got != tc.want {
			t.Errorf("%s: PoolToKeep() = %q, want %q", name, got, tc.want)
		}
	}
}
