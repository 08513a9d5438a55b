// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

// poolWorld is a world that tests change.
type poolWorld struct{ *PoolWorld }

// poolWorldOf is a world of one profile, trading, whose nodes have reported the hardware of the Xeon.
func poolWorldOf(t *testing.T, pools []*v1alpha1.BypassNICPool, nodes ...*corev1.Node) poolWorld {
	t.Helper()
	w := poolWorld{&PoolWorld{
		Pool: pools[0], Pools: pools, Nodes: nodes, Reports: map[string]*v1alpha1.LowLatencyNode{},
		Profiles: []*v1alpha1.LowLatencyNodeProfile{objects.MakeProfile("trading").Obj()},
	}}
	xeon := objects.InventoryOf(t, hosttree.Xeon())
	for _, node := range nodes {
		report := objects.MakeReport(node.Name, "trading").Inventory(xeon).Obj()
		report.Spec.BypassPools = NewPoolIndex(pools, nil).Of(node).Names()
		w.Reports[node.Name] = report
	}
	return w
}

func tradingNode(name string) *corev1.Node { return objects.MakeNode(name, "role", "trading") }

func TestReporting(t *testing.T) {
	pool := objects.MakePool("x2").Obj()
	linkUp := pool.DeepCopy()
	linkUp.Spec.NICs[0].Link = v1alpha1.LinkUp
	old := objects.NIC(objects.FirstPort, v1alpha1.NICHealthy)
	cases := map[string]struct {
		pool   *v1alpha1.BypassNICPool
		change func(*v1alpha1.LowLatencyNode)
		want   bool
	}{
		"nothing said about a NIC that is there":  {pool, func(*v1alpha1.LowLatencyNode) {}, false},
		"nothing said where a link is asked for":  {linkUp, func(*v1alpha1.LowLatencyNode) {}, true},
		"said for the current spec":               {pool, func(r *v1alpha1.LowLatencyNode) { r.Status.BypassNICs = saidFor(old, 1) }, true},
		"said for an older spec":                  {pool, func(r *v1alpha1.LowLatencyNode) { r.Status.BypassNICs = saidFor(old, 0) }, false},
		"not asked to report the pool":            {pool, func(r *v1alpha1.LowLatencyNode) { r.Spec.BypassPools, r.Status.BypassNICs = nil, saidFor(old, 1) }, false},
		"no inventory":                            {pool, func(r *v1alpha1.LowLatencyNode) { r.Status.Inventory = nil }, false},
		"an inventory that nobody can read":       {pool, func(r *v1alpha1.LowLatencyNode) { r.Status.Inventory = &v1alpha1.Inventory{OnlineCPUs: "x"} }, true},
		"an inventory without NICs, nothing said": {pool, func(r *v1alpha1.LowLatencyNode) { r.Status.Inventory.NICs = nil }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := poolWorldOf(t, []*v1alpha1.BypassNICPool{tc.pool}, tradingNode("n1"))
			tc.change(w.Reports["n1"])
			d := DecidePool(w.PoolWorld, NewSelections())
			if got := d.Nodes[0].IsReporting(tc.pool); got != tc.want {
				t.Errorf("IsReporting() = %v, want %v", got, tc.want)
			}
			if got := IsReported(tc.pool, d.Nodes[0].Node, w.Reports["n1"]); got != tc.want {
				t.Errorf("IsReported() = %v, want %v", got, tc.want)
			}
		})
	}
}

func saidFor(nic v1alpha1.NodeBypassNIC, generation int64) []v1alpha1.NodeBypassNIC {
	nic.Pool, nic.PoolGeneration = "x2", generation
	return []v1alpha1.NodeBypassNIC{nic}
}

// TestClaimWithoutInventory: a pool has its own claim on a node whose hardware nobody has reported yet.
func TestClaimWithoutInventory(t *testing.T) {
	w := poolWorldOf(t, []*v1alpha1.BypassNICPool{objects.MakePool("x2").Obj()}, tradingNode("n1"))
	w.Reports["n1"].Status.Inventory = nil
	if got := DecidePool(w.PoolWorld, NewSelections()).Nodes[0].Selection.Claim.Pool; got != "x2" {
		t.Errorf("the claim is of pool %q, want x2", got)
	}
}

func TestCountPlugins(t *testing.T) {
	for command, program := range map[string]string{"device-plugin": "device plugin", "dra-driver": "driver for Dynamic Resource Allocation"} {
		daemonSet := &appsv1.DaemonSet{Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 5, NumberReady: 4, UpdatedNumberScheduled: 3}}
		daemonSet.Spec.Template.Spec.Containers = []corev1.Container{{Args: []string{command}}}
		if got, want := countPlugins(daemonSet), (PluginCounts{Wanted: 5, Ready: 3, Program: program}); got != want || !got.Starting() {
			t.Errorf("countPlugins() = %+v, want %+v", got, want)
		}
	}
	if got := countPlugins(nil); got.Starting() {
		t.Errorf("without a DaemonSet countPlugins() = %+v", got)
	}
}

// A paused rollout is that of a profile which governs the node.
func TestPausedNodesOfAPool(t *testing.T) {
	w := poolWorldOf(t, []*v1alpha1.BypassNICPool{objects.MakePool("x2").Obj()}, tradingNode("n1"))
	other := objects.MakeProfile("other").Selecting(v1alpha1.Labels{"role": "other"}).Paused().Obj()
	for paused, profiles := range map[bool][]*v1alpha1.LowLatencyNodeProfile{
		false: {objects.MakeProfile("trading").Obj(), other}, true: {objects.MakeProfile("trading").Paused().Obj()},
	} {
		w.Profiles = profiles
		if got := DecidePool(w.PoolWorld, NewSelections()).Nodes[0].Paused; got != paused {
			t.Errorf("paused is %t, want %t", got, paused)
		}
	}
}

// Each node that holds a NIC for a pool is told, once.
func TestHoldingsNameEveryNode(t *testing.T) {
	pools := []*v1alpha1.BypassNICPool{objects.MakePool("a").Obj(), objects.MakePool("b").Obj()}
	w := poolWorldOf(t, pools, tradingNode("n1"), tradingNode("n2"))
	for _, report := range w.Reports {
		report.Spec.BypassNICs = []v1alpha1.BypassNICClaim{{PCIAddress: objects.FirstPort, Pool: "a"}, {PCIAddress: objects.SecondPort, Pool: "b"}}
	}
	got := DecidePool(w.PoolWorld, NewSelections()).Content.Holdings
	if len(got) == 0 {
		t.Fatal("two pools claim the same NICs, and nobody is told who has them")
	}
	for _, holding := range got {
		if diff := cmp.Diff([]string{"n1", "n2"}, holding.Nodes); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", holding, diff)
		}
	}
}

// TestHoldingsNameThosePoolsThatShare: a node is told of all pools that share a NIC where another one claims it, too.
func TestHoldingsNameThosePoolsThatShare(t *testing.T) {
	sharing := func(name, with string, age int64) *v1alpha1.BypassNICPool {
		pool := objects.MakePool(name).Age(age).Obj()
		pool.Spec.Sharing = v1alpha1.SharingSpec{Mode: v1alpha1.SharingShared, MaximumSharesPerNIC: 4, WithPools: []string{with}}
		return pool
	}
	w := poolWorldOf(t, []*v1alpha1.BypassNICPool{sharing("a", "c", 1), objects.MakePool("b").Age(3).Obj(), sharing("c", "a", 2)}, tradingNode("n1"))
	w.Reports["n1"].Spec.BypassNICs = []v1alpha1.BypassNICClaim{{PCIAddress: objects.FirstPort, Pool: "a"}, {PCIAddress: objects.FirstPort, Pool: "c"}}
	var holders []string
	for _, holding := range DecidePool(w.PoolWorld, NewSelections()).Content.Holdings {
		if holding.PCIAddress == objects.FirstPort {
			holders = append(holders, holding.Pool)
		}
	}
	if diff := cmp.Diff([]string{"a", "c"}, holders); diff != "" {
		t.Errorf("holders (-want +got):\n%s", diff)
	}
}

func TestRemainderIsDone(t *testing.T) {
	for name, tc := range map[string]struct {
		rest Remainder
		want bool
	}{
		"nothing": {Remainder{}, true}, "later": {Remainder{RetryAfter: 1}, true}, "a node": {Remainder{Nodes: []string{"n"}}, false},
		"an object": {Remainder{Objects: []string{"o"}}, false}, "a wait": {Remainder{Waiting: "w"}, false},
		"a node and a wait": {Remainder{Nodes: []string{"n"}, Waiting: "w"}, false},
	} {
		if got := tc.rest.Done(); got != tc.want {
			t.Errorf("%s: done %t", name, got)
		}
	}
}
