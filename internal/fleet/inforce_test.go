// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

func TestWantedSpec(t *testing.T) {
	report := func(hash string) *v1alpha1.LowLatencyNode {
		r := objects.MakeReport("n", "p").Obj()
		if hash != "" {
			r.Spec.PlanHash, r.Spec.PlanConfigMap = hash, "p-"+hash
		}
		return r
	}
	planned := &Planned{Plan: &plan.NodePlan{}, Hash: "new", ConfigMap: "p-new"}
	spec := func(hash, pending string) v1alpha1.LowLatencyNodeSpec {
		s := v1alpha1.LowLatencyNodeSpec{Profile: "p", PendingPlanHash: pending}
		if hash != "" {
			s.PlanHash, s.PlanConfigMap = hash, "p-"+hash
		}
		return s
	}
	passed := &v1alpha1.NodeQualification{Test: v1alpha1.LatencyTestReference{Namespace: "tests", Name: "quiet"}}
	qualified := spec("new", "")
	qualified.Qualification = passed
	cases := map[string]struct {
		member Member
		want   v1alpha1.LowLatencyNodeSpec
	}{
		"nothing is known":                      {Member{}, spec("", "")},
		"the agent has not reported":            {Member{Report: report("")}, spec("", "")},
		"the first plan needs no turn":          {Member{Report: report(""), Planned: planned}, spec("new", "")},
		"the plan in force is wanted":           {Member{Report: report("new"), Planned: planned}, spec("new", "")},
		"the node has passed a measurement":     {Member{Report: report("new"), Planned: planned, Qualification: passed}, qualified},
		"another plan waits for the turn":       {Member{Report: report("old"), Planned: planned}, spec("old", "new")},
		"another plan whose turn has come":      {Member{Report: report("old"), Planned: planned, Turned: true}, spec("new", "")},
		"the profile cannot be met":             {Member{Report: report("old"), Planned: &Planned{}}, spec("old", "")},
		"the profile cannot be met, nothing is": {Member{Report: report(""), Planned: &Planned{}}, spec("", "")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.member.WantedSpec("p")); diff != "" {
				t.Errorf("WantedSpec() mismatch (-want +got):\n%s", diff)
			}
			if got, want := tc.member.IsPending(), tc.want.PendingPlanHash != ""; got != want {
				t.Errorf("IsPending() = %v, want %v", got, want)
			}
		})
	}
}

func TestTakeTurns(t *testing.T) {
	d := &ProfileDecision{Members: []Member{{Node: objects.MakeNode("n1"), Turned: true}, {Node: objects.MakeNode("n2")}}}
	d.TakeTurns(map[string]bool{"n2": true})
	if d.Members[0].Turned || !d.Members[1].Turned {
		t.Errorf("turns are %v, %v, want that of n2", d.Members[0].Turned, d.Members[1].Turned)
	}
}
