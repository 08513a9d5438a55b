// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

func TestPlannerShares(t *testing.T) {
	xeon, epyc := objects.InventoryOf(t, hosttree.Xeon()), objects.InventoryOf(t, hosttree.EPYC())
	profile := objects.MakeProfile("trading").Obj()
	changed := profile.DeepCopy()
	changed.Generation, changed.Spec.CPUs.Tick = 2, v1alpha1.TickPeriodic
	liar := epyc.DeepCopy()
	liar.Hash = xeon.Hash
	p := NewPlanner(plan.PlatformRules{})
	first := p.Plan(profile, NodePools{}, "n1", xeon)
	if first.Plan == nil || first.Hash == "" || first.Signature == "" || first.ConfigMap != "trading-"+first.Hash {
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
			got := p.Plan(tc.profile, NodePools{}, tc.node, tc.inventory)
			if (got == first) != tc.wantSame || (got.Hash == first.Hash) != tc.wantSame {
				t.Errorf("plan is %s, the first is %s, want the same: %v", got.Hash, first.Hash, tc.wantSame)
			}
		})
	}
	if honest := p.Plan(profile, NodePools{}, "n5", xeon); honest != first {
		t.Error("another node suffers from the claim")
	}
}

func TestPlannerMakesEqualPlansOneObject(t *testing.T) {
	xeon := objects.InventoryOf(t, hosttree.Xeon())
	rebooted := xeon.DeepCopy()
	rebooted.Hash, rebooted.KernelCommandLine = "other", rebooted.KernelCommandLine+" quiet"
	profile, p := objects.MakeProfile("trading").Obj(), NewPlanner(plan.PlatformRules{})
	first, again := p.Plan(profile, NodePools{}, "n1", xeon), p.Plan(profile, NodePools{}, "n1", rebooted)
	if again == first || again.Plan != first.Plan {
		t.Error("the plan is another object")
	}
}

func TestPlannerFindings(t *testing.T) {
	xeon := objects.InventoryOf(t, hosttree.Xeon())
	broken := xeon.DeepCopy()
	broken.Hash, broken.OnlineCPUs = "broken", "0-"
	greedy := objects.MakeProfile("trading").Obj()
	greedy.Spec.Memory.Hugepages = []v1alpha1.HugepageReservation{{Size: "1Gi", Count: 100000}}
	stopped := objects.MakeProfile("trading").Obj()
	stopped.Spec.System.StopServices = []v1alpha1.UnitName{"platform-agent.service"}
	rules := plan.PlatformRules{Services: []string{"platform-agent.service"}}
	cases := map[string]struct {
		profile   *v1alpha1.LowLatencyNodeProfile
		inventory *v1alpha1.Inventory
		want      string
	}{
		"an inventory that cannot be read": {objects.MakeProfile("trading").Obj(), broken, "status.inventory on node n6: the LowLatencyNode cannot be read"},
		"a plan that is impossible":        {greedy, xeon, "spec.memory.hugepages[0] on node n6"},
		"what the platform forbids":        {stopped, xeon, "platform-agent.service belongs to the platform"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := NewPlanner(rules).Plan(tc.profile, NodePools{}, "n6", tc.inventory)
			if got.Plan != nil || len(got.Findings) == 0 || !strings.Contains(got.Findings[0].Sentence("n6"), tc.want) {
				t.Errorf("plan is %+v, want %q", got, tc.want)
			}
			if severity := got.Findings[0].Severity; severity != v1alpha1.SeverityCritical {
				t.Errorf("what leaves the node without a plan is %s", severity)
			}
		})
	}
}

// TestClaimsOfAnInventoryThatCannotBeRead: pools keep the NICs that they have had until the inventory makes sense again.
func TestClaimsOfAnInventoryThatCannotBeRead(t *testing.T) {
	inventory := objects.InventoryOf(t, hosttree.Xeon())
	inventory.Hash, inventory.OnlineCPUs = "broken", "x"
	had := []v1alpha1.BypassNICClaim{{PCIAddress: objects.FirstPort, Pool: "a"}}
	pools := NewPoolIndex([]*v1alpha1.BypassNICPool{objects.MakePool("a").Obj()}, nil).Of(objects.MakeNode("n", "role", "trading")).
		On(&v1alpha1.LowLatencyNode{Spec: v1alpha1.LowLatencyNodeSpec{BypassNICs: had}})
	planned := NewPlanner(plan.PlatformRules{}).Plan(objects.MakeProfile("trading").Obj(), pools, "n", inventory)
	if diff := cmp.Diff(had, planned.Claimed); planned.Plan != nil || diff != "" {
		t.Errorf("plan %v, claims (-want +got):\n%s", planned.Plan, diff)
	}
}
