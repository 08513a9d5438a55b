// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"strings"
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

func TestMemo(t *testing.T) {
	m := newMemo[int, string](2)
	for i, text := range []string{"a", "b", "c"} {
		m.put(i, text)
	}
	if got, found := m.get(0); !found || got != "a" {
		t.Errorf("get(0) = %q, %v, want a", got, found)
	}
	m.put(3, "d")
	if _, found := m.get(1); found {
		t.Error("what was not asked for is still remembered")
	}
	for i, want := range map[int]string{0: "a", 2: "c", 3: "d"} {
		if got, found := m.get(i); !found || got != want {
			t.Errorf("get(%d) = %q, %v, want %s", i, got, found, want)
		}
	}
	for i := range 1000 {
		m.put(i, "x")
		if size := len(m.young) + len(m.old); size > 4 {
			t.Fatalf("%d values are remembered, want at most 4", size)
		}
	}
}

func TestPlannerShares(t *testing.T) {
	xeon, epyc := inventoryOf(t, hosttree.Xeon()), inventoryOf(t, hosttree.EPYC())
	profile := makeProfile("trading").obj()
	changed := profile.DeepCopy()
	changed.Generation, changed.Spec.CPUs.Tick = 2, v1alpha1.TickPeriodic
	liar := epyc.DeepCopy()
	liar.Hash = xeon.Hash
	p := newPlanner()
	first := p.plan(profile, nil, "n1", xeon)
	if first.plan == nil || first.hash == "" || first.signature == "" || first.configMap != "trading-"+first.hash {
		t.Fatalf("plan is %+v, want a complete one", first)
	}
	cases := map[string]struct {
		profile   *v1alpha1.LowLatencyNodeProfile
		node      string
		inventory *v1alpha1.Inventory
		wantSame  bool
	}{
		"the same node again":               {profile, "n1", xeon, true},
		"another node of equal inventory":   {profile, "n2", xeon.DeepCopy(), true},
		"other hardware":                    {profile, "n3", epyc, false},
		"a node that claims another's hash": {profile, "n4", liar, false},
		"a new generation":                  {changed, "n1", xeon, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := p.plan(tc.profile, nil, tc.node, tc.inventory)
			if (got == first) != tc.wantSame || (got.hash == first.hash) != tc.wantSame {
				t.Errorf("plan is %s, the first is %s, want the same: %v", got.hash, first.hash, tc.wantSame)
			}
		})
	}
	if honest := p.plan(profile, nil, "n5", xeon); honest != first {
		t.Error("another node suffers from the claim")
	}
}

func TestPlannerMakesEqualPlansOneObject(t *testing.T) {
	xeon := inventoryOf(t, hosttree.Xeon())
	rebooted := xeon.DeepCopy()
	rebooted.Hash, rebooted.KernelCommandLine = "other", rebooted.KernelCommandLine+" quiet"
	profile, p := makeProfile("trading").obj(), newPlanner()
	first, again := p.plan(profile, nil, "n1", xeon), p.plan(profile, nil, "n1", rebooted)
	if again == first || again.plan != first.plan {
		t.Error("the plan is another object")
	}
}

func TestPlannerFindings(t *testing.T) {
	xeon := inventoryOf(t, hosttree.Xeon())
	broken := xeon.DeepCopy()
	broken.Hash, broken.OnlineCPUs = "broken", "0-"
	greedy := makeProfile("trading").obj()
	greedy.Spec.Memory.Hugepages = []v1alpha1.HugepageReservation{{Size: "1Gi", Count: 100000}}
	cases := map[string]struct {
		profile   *v1alpha1.LowLatencyNodeProfile
		inventory *v1alpha1.Inventory
		want      string
	}{
		"an inventory that cannot be read": {makeProfile("trading").obj(), broken, "status.inventory on node n6: the LowLatencyNode cannot be read"},
		"a plan that is impossible":        {greedy, xeon, "spec.memory.hugepages[0] on node n6"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := newPlanner().plan(tc.profile, nil, "n6", tc.inventory)
			if got.plan != nil || len(got.findings) == 0 || !strings.Contains(got.findings[0].Sentence("n6"), tc.want) {
				t.Errorf("plan is %+v, want %q", got, tc.want)
			}
		})
	}
}
