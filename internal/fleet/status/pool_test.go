// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package status

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/states"
)

// poolWorld is a world that tests change.
type poolWorld struct{ *fleet.PoolWorld }

// poolWorldOf is a world of one profile, trading, whose nodes have reported the hardware of the Xeon, and have the plan in force
// that was made with the pools.
func poolWorldOf(t *testing.T, pools []*v1alpha1.BypassNICPool, nodes ...*corev1.Node) poolWorld {
	t.Helper()
	w := poolWorld{&fleet.PoolWorld{
		Pool: pools[0], Pools: pools, Nodes: nodes, Reports: map[string]*v1alpha1.LowLatencyNode{},
		Profiles: []*v1alpha1.LowLatencyNodeProfile{objects.MakeProfile("trading").Obj()},
	}}
	xeon := objects.InventoryOf(t, hosttree.Xeon())
	for _, node := range nodes {
		report := objects.MakeReport(node.Name, "trading").Inventory(xeon).Verified("plan", "TTT").Obj()
		selecting := fleet.NewPoolIndex(pools, nil).Of(node)
		report.Spec.BypassPools, report.Spec.PlannedPools = selecting.Names(), selecting.Generations()
		w.Reports[node.Name] = report
	}
	return w
}

// says lets the agent of a node say something about NICs of the pool, whose units the kubelet advertises as far as they are
// healthy.
func (w poolWorld) says(node string, nics ...v1alpha1.NodeBypassNIC) poolWorld {
	var units int64
	for _, nic := range nics {
		if nic.Health == v1alpha1.NICHealthy {
			units += int64(nic.Units)
		}
	}
	w.advertises(node, units)
	for _, nic := range nics {
		nic.Pool, nic.PoolGeneration = w.Pool.Name, w.Pool.Generation
		w.Reports[node].Status.BypassNICs = append(w.Reports[node].Status.BypassNICs, nic)
	}
	return w
}

// advertises lets the kubelet of a node advertise units of the pool.
func (w poolWorld) advertises(node string, units int64) poolWorld {
	w.offers(node, units)
	for _, n := range w.Nodes {
		if n.Name == node {
			n.Status.Allocatable = corev1.ResourceList{corev1.ResourceName(w.Pool.Spec.ResourceName): *resource.NewQuantity(units, resource.DecimalSI)}
		}
	}
	return w
}

// offers lets the DRA driver of the pool publish.
func (w poolWorld) offers(node string, units int64) poolWorld {
	if w.Published == nil {
		w.Published = map[string]int64{}
	}
	w.Published[node] = units
	return w
}

// with changes what the LowLatencyNode of n1 says.
func (w poolWorld) with(change func(*v1alpha1.LowLatencyNode)) poolWorld {
	change(w.Reports["n1"])
	return w
}

func tradingNode(name string, labels ...string) *corev1.Node {
	return objects.MakeNode(name, append([]string{"role", "trading"}, labels...)...)
}

func TestPoolConditions(t *testing.T) {
	const healthy, unhealthy = v1alpha1.NICHealthy, v1alpha1.NICUnhealthy
	x2 := []*v1alpha1.BypassNICPool{objects.MakePool("x2").Obj()}
	base := func(nodes ...*corev1.Node) poolWorld { return poolWorldOf(t, x2, nodes...) }
	cases := map[string]struct {
		world   poolWorld
		failure error
		// want are the statuses of Ready, Progressing and Degraded, and the reason of Ready.
		want        string
		wantMessage string
	}{
		"no node": {base(), nil, "True/False/False NoNodes", "selects no node"},
		"all healthy": {
			base(tradingNode("n1")).says("n1", objects.NIC(objects.FirstPort, healthy)), nil,
			"True/False/False NICsHealthy", "all 1 NICs are healthy and give 2 units of lowlatency.dev/x2",
		},
		"one node is awaited": {
			base(tradingNode("n1"), tradingNode("n2")).says("n1", objects.NIC(objects.FirstPort, healthy)), nil,
			"False/True/False AwaitingNodes", "the agents of nodes n2 have not reported",
		},
		"an unhealthy NIC, and a node that is awaited": {
			base(tradingNode("n1"), tradingNode("n2")).says("n1", objects.NIC(objects.FirstPort, unhealthy, "The link is down.")), nil,
			"False/True/True NICsUnhealthy", "NIC 0000:af:00.0 on node n1 is unhealthy: The link is down.",
		},
		"two unhealthy NICs": {
			base(tradingNode("n1")).says("n1", objects.NIC(objects.FirstPort, unhealthy), objects.NIC(objects.SecondPort, unhealthy)), nil,
			"False/False/True NICsUnhealthy", "the agent gives no reason (and 1 more)",
		},
		"an unknown NIC": {
			base(tradingNode("n1")).says("n1", objects.NIC(objects.FirstPort, healthy), objects.NIC(objects.SecondPort, v1alpha1.NICUnknown, "No fact.")), nil,
			"Unknown/False/False NICsUnknown", "NIC 0000:af:00.1 on node n1 is unknown: No fact.",
		},
		"one NIC is for management": {
			base(tradingNode("n1")).says("n1", objects.NIC(objects.FirstPort, healthy), objects.NIC(objects.SecondPort, v1alpha1.NICIneligible, "It carries the default route.")), nil,
			"True/False/False NICsHealthy", "all 1 NICs",
		},
		"all NICs are for management": {
			base(tradingNode("n1")).says("n1", objects.NIC(objects.FirstPort, v1alpha1.NICIneligible, "It carries the default route.")), nil,
			"False/False/False NoNICs", "is ineligible: It carries the default route.",
		},
		"no NIC matches": {
			poolWorldOf(t, []*v1alpha1.BypassNICPool{objects.MakePool("x2").NICs("0000:ff:00.0").Obj()}, tradingNode("n1")), nil,
			"False/False/False NoNICs", "match no NIC",
		},
		"a refused object": {
			base(tradingNode("n1")).says("n1", objects.NIC(objects.FirstPort, unhealthy)), errors.New("DaemonSet bypass-x2 is forbidden"),
			"False/False/True PlatformFailed", "DaemonSet bypass-x2 is forbidden (and 1 more)",
		},
		"a node of no profile": {
			base(tradingNode("n1"), objects.MakeNode("bare")).says("n1", objects.NIC(objects.FirstPort, healthy)), nil,
			"False/False/True NodesUngoverned", "no LowLatencyNodeProfile selects node bare",
		},
	}
	recorded := states.Recorder{}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newPoolSummary(tc.world.Pool, fleet.DecidePool(tc.world.PoolWorld, fleet.NewSelections()), tc.failure)
			status := s.status(metav1.NewTime(time.Unix(0, 0)))
			of := func(kind string) *metav1.Condition { return meta.FindStatusCondition(status.Conditions, kind) }
			ready := of(v1alpha1.ConditionReady)
			got := fmt.Sprintf("%s/%s/%s %s", ready.Status, of(v1alpha1.ConditionProgressing).Status, of(v1alpha1.ConditionDegraded).Status, ready.Reason)
			if got != tc.want || !strings.Contains(ready.Message, tc.wantMessage) {
				t.Errorf("conditions are %s (%s), want %s (%s)", got, ready.Message, tc.want, tc.wantMessage)
			}
			tc.world.Pool.Status = status
			if again := s.status(metav1.NewTime(time.Unix(99, 0))); !SamePool(&status, &again) {
				t.Error("the same world makes another status")
			}
			recorded.Record(name, status.Conditions)
		})
	}
	recorded.Assert(t, "BypassNICPool")
}

// TestPoolIsReadyWhenPodsCanUseIt: a healthy NIC is not enough. The plan that holds what the pool asks for must be in force, and
// the kubelet must know the units; and what only that plan brings is no problem before.
func TestPoolIsReadyWhenPodsCanUseIt(t *testing.T) {
	served := func(health v1alpha1.NICHealth) poolWorld {
		return poolWorldOf(t, []*v1alpha1.BypassNICPool{objects.MakePool("x2").Obj()}, tradingNode("n1")).says("n1", objects.NIC(objects.FirstPort, health, "Why."))
	}
	condition := func(kind string, status metav1.ConditionStatus, reason string) func(*v1alpha1.LowLatencyNode) {
		return func(report *v1alpha1.LowLatencyNode) {
			report.Status.Conditions = []metav1.Condition{{Type: kind, Status: status, Reason: reason, Message: "it says so"}}
		}
	}
	applied := func(status metav1.ConditionStatus, reason string) func(*v1alpha1.LowLatencyNode) {
		return condition(v1alpha1.ConditionApplied, status, reason)
	}
	paused := served(v1alpha1.NICHealthy).with(applied(metav1.ConditionFalse, v1alpha1.ReasonRebootPending))
	paused.Profiles[0].Spec.Rollout.State = v1alpha1.RolloutPaused
	dynamic, silent := served(v1alpha1.NICHealthy).advertises("n1", 0).offers("n1", 2), served(v1alpha1.NICHealthy).offers("n1", 0)
	dynamic.Pool.Spec.Allocation, silent.Pool.Spec.Allocation = v1alpha1.AllocationDynamic, v1alpha1.AllocationDynamic
	const healthy, unhealthy = v1alpha1.NICHealthy, v1alpha1.NICUnhealthy
	cases := map[string]struct {
		world poolWorld
		// want are the statuses of Ready, Progressing and Degraded, and the reason of Ready.
		want        string
		wantMessage string
	}{
		"no plan was made with the pool": {
			served(healthy).with(func(r *v1alpha1.LowLatencyNode) { r.Spec.PlannedPools = nil }),
			"False/True/False AwaitingPlan", "node n1: the node has no plan yet that was made with the current spec of this pool",
		},
		"the plan was made with the former spec": {
			served(healthy).with(func(r *v1alpha1.LowLatencyNode) { r.Spec.PlannedPools[0].Generation = 0 }), "False/True/False AwaitingPlan", "node n1",
		},
		"the agent has verified another plan": {
			served(healthy).with(func(r *v1alpha1.LowLatencyNode) { r.Status.VerifiedPlanHash = "former" }),
			"False/True/False AwaitingVerification", "node n1",
		},
		"the reboot is to come": {
			served(healthy).with(applied(metav1.ConditionFalse, v1alpha1.ReasonRebootPending)), "False/True/False RebootPending", "node n1: it says so",
		},
		"the reboot is to come, and brings what the NIC lacks": {
			served(unhealthy).with(applied(metav1.ConditionFalse, v1alpha1.ReasonRebootPending)), "False/True/False RebootPending", "node n1: it says so",
		},
		"the rollout is paused": {paused, "False/False/False Paused", "spec.rollout.state of profile trading is Paused; node n1: it says so"},
		"hugepages are missing": {
			served(healthy).with(applied(metav1.ConditionFalse, v1alpha1.ReasonChecksFailed)), "False/False/False ChecksFailed", "node n1: it says so",
		},
		"the heartbeat is stale": {served(healthy).with(applied(metav1.ConditionUnknown, v1alpha1.ReasonHeartbeatStale)), "True/False/False NICsHealthy", "all 1 NICs"},
		"the kubelet does not know the units": {
			served(healthy).advertises("n1", 1), "False/True/False AwaitingPlugins", "the kubelet of node n1 advertises 1 of 2 units of lowlatency.dev/x2",
		},
		"no kubelet counts the units of a driver": {dynamic, "True/False/False NICsHealthy", "all 1 NICs"},
		"a DRA driver that has published nothing": {
			silent, "False/True/False AwaitingPlugins", "the DRA driver offers in the ResourceSlices of node n1 0 of 2 units of lowlatency.dev/x2",
		},
		"an unhealthy NIC under the plan in force": {served(unhealthy), "False/False/True NICsUnhealthy", "Why."},
	}
	recorded := states.Recorder{}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := newPoolSummary(tc.world.Pool, fleet.DecidePool(tc.world.PoolWorld, fleet.NewSelections()), nil).status(metav1.Now())
			of := func(kind string) *metav1.Condition { return meta.FindStatusCondition(status.Conditions, kind) }
			ready := of(v1alpha1.ConditionReady)
			got := fmt.Sprintf("%s/%s/%s %s", ready.Status, of(v1alpha1.ConditionProgressing).Status, of(v1alpha1.ConditionDegraded).Status, ready.Reason)
			if got != tc.want || !strings.Contains(ready.Message, tc.wantMessage) {
				t.Errorf("conditions are %s (%s), want %s (%s)", got, ready.Message, tc.want, tc.wantMessage)
			}
			recorded.Record(name, status.Conditions)
		})
	}
	recorded.Assert(t, "BypassNICPool")
}

func TestPoolStatusIsBounded(t *testing.T) {
	nodes := make([]*corev1.Node, 0, v1alpha1.MaxPoolMembers+10)
	for i := range v1alpha1.MaxPoolMembers + 10 {
		nodes = append(nodes, tradingNode(fmt.Sprintf("n%03d", i)))
	}
	w := poolWorldOf(t, []*v1alpha1.BypassNICPool{objects.MakePool("x2").Obj()}, nodes...)
	for _, node := range nodes {
		health := v1alpha1.NICUnhealthy
		if node.Name < "n100" {
			health = v1alpha1.NICHealthy
		}
		w.says(node.Name, objects.NIC(objects.FirstPort, health, strings.Repeat("x", 600), strings.Repeat("y", 600)))
	}
	status := newPoolSummary(w.Pool, fleet.DecidePool(w.PoolWorld, fleet.NewSelections()), nil).status(metav1.Now())
	if len(status.Members) != v1alpha1.MaxPoolMembers || status.Members[0].Node != "n100" {
		t.Errorf("%d members from %s on, want %d, those with an unhealthy NIC first", len(status.Members), status.Members[0].Node, v1alpha1.MaxPoolMembers)
	}
	nic := objects.NIC(objects.FirstPort, v1alpha1.NICUnhealthy)
	member := v1alpha1.PoolMember{Node: "n100", NICs: []v1alpha1.PoolNIC{{
		PCIAddress: nic.PCIAddress, NUMANode: nic.NUMANode, Health: v1alpha1.NICUnhealthy, Units: nic.Units, Allocated: int32(len(nic.Users)),
	}}}
	if diff := cmp.Diff(member, status.Members[0]); diff != "" {
		t.Errorf("the first member (-want +got):\n%s", diff)
	}
	if len(status.Findings) != v1alpha1.MaxPoolFindings || len(status.Findings[0].Message) > v1alpha1.MaxFindingMessageLength {
		t.Errorf("%d findings, the first of %d bytes", len(status.Findings), len(status.Findings[0].Message))
	}
	want := &v1alpha1.PoolNICCounts{Found: 266, Eligible: 266, Healthy: 100, Units: 200}
	if diff := cmp.Diff(want, status.NICs); diff != "" {
		t.Errorf("counts mismatch (-want +got):\n%s", diff)
	}
}

// TestConflictFindings: both sides of a conflict tell of it, with node, NIC and pool, and the pool that has what both claim is
// not degraded.
func TestConflictFindings(t *testing.T) {
	older := objects.MakePool("x2").Age(2).Obj()
	younger := objects.MakePool("newcomer").NICs(objects.SecondPort).Selecting(v1alpha1.Labels{"other": "yes"}).Age(1).Obj()
	namesake := objects.MakePool("namesake").Resource(older.Spec.ResourceName).Selecting(v1alpha1.Labels{"none": "yes"}).Obj()
	pools := []*v1alpha1.BypassNICPool{namesake, younger, older}
	const nic = "NIC " + objects.SecondPort + " (ens2f1np1) on node contested "
	cases := map[string]struct {
		pool *v1alpha1.BypassNICPool
		held []v1alpha1.BypassNICClaim
		// want are the findings as "NODE ADDRESS POOLS: MESSAGE", and the condition Degraded.
		want     []string
		degraded string
	}{
		"the older pool keeps NIC and name": {
			pool: older,
			want: []string{
				"  [namesake]: resource name lowlatency.dev/x2 is also that of BypassNICPool namesake, which hands out nothing; this pool keeps it: " +
					"create the other one again with another spec.resourceName",
				"contested " + objects.SecondPort + " [newcomer]: " + nic + "is also claimed by BypassNICPool newcomer, which does not get it; " +
					"this pool keeps it: narrow spec.nics or spec.nodeSelector of one of them",
			},
			degraded: "False NICClaimConflict",
		},
		"the younger pool does not get the NIC": {
			pool: younger,
			want: []string{"contested " + objects.SecondPort + " [x2]: " + nic + "belongs to BypassNICPool x2, which had it first, so this pool does not " +
				"hand it out: narrow spec.nics or spec.nodeSelector of one of them"},
			degraded: "True NICClaimConflict",
		},
		"the younger pool keeps what it has had": {
			pool: younger, held: []v1alpha1.BypassNICClaim{{PCIAddress: objects.SecondPort, Pool: "newcomer"}},
			want: []string{"contested " + objects.SecondPort + " [x2]: " + nic + "is also claimed by BypassNICPool x2, which does not get it; " +
				"this pool keeps it: narrow spec.nics or spec.nodeSelector of one of them"},
			degraded: "False NICClaimConflict",
		},
		"a resource name is another pool's on whatever nodes": {
			pool: namesake,
			want: []string{"  [x2]: resource name lowlatency.dev/x2 belongs to BypassNICPool x2, which had it first, so this pool hands out nothing: " +
				"create it again with another spec.resourceName"},
			degraded: "True NICClaimConflict",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := poolWorldOf(t, pools, tradingNode("alone"), tradingNode("contested", "other", "yes"))
			w.Pool, w.Nodes = tc.pool, slices.DeleteFunc(w.Nodes, func(node *corev1.Node) bool { return !fleet.Selects(tc.pool.Spec.NodeSelector, node) })
			w.Reports["contested"].Spec.BypassNICs = tc.held
			for _, node := range w.Nodes {
				w.says(node.Name, objects.NIC(objects.SecondPort, v1alpha1.NICHealthy))
			}
			status := newPoolSummary(w.Pool, fleet.DecidePool(w.PoolWorld, fleet.NewSelections()), nil).status(metav1.Now())
			got := make([]string, 0, len(status.Findings))
			for _, f := range status.Findings {
				got = append(got, fmt.Sprintf("%s %s %v: %s", f.Node, f.PCIAddress, f.ConflictingPools, f.Message))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("findings mismatch (-want +got):\n%s", diff)
			}
			degraded := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionDegraded)
			if got := fmt.Sprintf("%s %s", degraded.Status, degraded.Reason); got != tc.degraded {
				t.Errorf("Degraded is %s (%s), want %s", got, degraded.Message, tc.degraded)
			}
		})
	}
}

// TestPoolContent: the nodes are told which pools are older, and which pool has what several claim.
func TestPoolContent(t *testing.T) {
	older, younger := objects.MakePool("x2").Age(2).Obj(), objects.MakePool("newcomer").NICs(objects.SecondPort).Selecting(v1alpha1.Labels{"other": "yes"}).Age(1).Obj()
	w := poolWorldOf(t, []*v1alpha1.BypassNICPool{younger, older}, tradingNode("a", "other", "yes"), tradingNode("b", "other", "yes"), tradingNode("c"))
	w.Reports["b"].Spec.BypassNICs = []v1alpha1.BypassNICClaim{{PCIAddress: objects.SecondPort, Pool: "newcomer"}}
	want := []bypass.Holding{
		{PCIAddress: objects.SecondPort, Pool: "newcomer", Nodes: []string{"b"}}, {PCIAddress: objects.SecondPort, Pool: "x2", Nodes: []string{"a"}},
	}
	for _, pool := range w.Pools {
		w.Pool, w.Nodes = pool, []*corev1.Node{tradingNode("a", "other", "yes"), tradingNode("b", "other", "yes")}
		content := fleet.DecidePool(w.PoolWorld, fleet.NewSelections()).Content
		if diff := cmp.Diff(want, content.Holdings); diff != "" {
			t.Errorf("holdings in the words of %s (-want +got):\n%s", pool.Name, diff)
		}
		other := content.OtherPools[0]
		if !content.Created.Equal(&pool.CreationTimestamp) || other.Created == nil || other.Created.Equal(content.Created) {
			t.Errorf("%s was created at %v, %s at %v", pool.Name, content.Created, other.Name, other.Created)
		}
	}
}

func TestUnservedNodes(t *testing.T) {
	last := objects.MakePool("zz").Obj()
	pools := make([]*v1alpha1.BypassNICPool, 0, v1alpha1.MaxPoolsPerNode+1)
	for i := range v1alpha1.MaxPoolsPerNode {
		pools = append(pools, objects.MakePool(fmt.Sprintf("pool-%02d", i)).Obj())
	}
	crowded := poolWorldOf(t, append([]*v1alpha1.BypassNICPool{last}, pools...), tradingNode("n1"))
	crowded.Pools = slices.Concat(pools, []*v1alpha1.BypassNICPool{last})
	disputed := poolWorldOf(t, []*v1alpha1.BypassNICPool{last}, tradingNode("n1"))
	disputed.Profiles = append(disputed.Profiles, objects.MakeProfile("other").Selecting(v1alpha1.Labels{"role": "trading"}).Obj())
	for want, w := range map[string]poolWorld{
		"is selected by more than 16 BypassNICPools":                   crowded,
		"is selected by profiles other, trading and left as it is":     disputed,
		"no LowLatencyNodeProfile selects node bare, so none of its N": poolWorldOf(t, []*v1alpha1.BypassNICPool{last}, objects.MakeNode("bare")),
	} {
		findings := newPoolSummary(w.Pool, fleet.DecidePool(w.PoolWorld, fleet.NewSelections()), nil).findings
		if len(findings) != 1 || findings[0].reason != v1alpha1.ReasonNodesUngoverned || !strings.Contains(findings[0].text, want) {
			t.Errorf("findings are %+v, want %q", findings, want)
		}
	}
}
