// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

// running is the DaemonSet of a pool whose program runs with these arguments on all of two nodes.
func running(arguments ...string) *appsv1.DaemonSet {
	set := &appsv1.DaemonSet{Status: appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 2, NumberReady: 2, UpdatedNumberScheduled: 2}}
	set.Generation = 2
	set.Spec.Template.Spec.Containers = []corev1.Container{{Args: arguments}}
	return set
}

// TestDraining: a DRA driver that is to go stays as long as a container may need it.
func TestDraining(t *testing.T) {
	type world struct {
		pool *v1alpha1.BypassNICPool
		set  *appsv1.DaemonSet
		node *PoolNode
	}
	cases := map[string]struct {
		change func(*world)
		want   bool
	}{
		"every one of its pods drains, and nobody holds a claim": {func(*world) {}, false},
		"no DaemonSet":                           {func(w *world) { w.set = nil }, false},
		"the pool is to have it":                 {func(w *world) { w.pool.Spec.Allocation = v1alpha1.AllocationDynamic }, false},
		"a device plugin":                        {func(w *world) { w.set = running("device-plugin") }, false},
		"a device plugin, starting":              {func(w *world) { w.set = running("device-plugin"); w.set.Status.NumberReady = 1 }, false},
		"it does not drain yet":                  {func(w *world) { w.set = running("dra-driver") }, true},
		"its controller has not seen the change": {func(w *world) { w.set.Status.ObservedGeneration = 1 }, true},
		"one of its pods is old":                 {func(w *world) { w.set.Status.UpdatedNumberScheduled = 1 }, true},
		"an agent has not reported":              {func(w *world) { w.node.NICs[0].PoolGeneration = 0 }, true},
		"an agent that has nothing to report":    {func(w *world) { w.node.NICs[0].PoolGeneration, w.node.Profiles = 0, nil }, false},
		"a container has a claim":                {func(w *world) { w.node.NICs[0].Users = []v1alpha1.NICUser{objects.User(v1alpha1.AllocationDynamic)} }, true},
		"a container has a device": {func(w *world) {
			w.node.NICs[0].Users = []v1alpha1.NICUser{objects.User(v1alpha1.AllocationDevicePlugin)}
		}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pool := objects.MakePool("x2").Obj()
			pool.Spec.Allocation = v1alpha1.AllocationDevicePlugin
			at := poolWorldOf(t, []*v1alpha1.BypassNICPool{pool}, tradingNode("n1"))
			at.Reports["n1"].Status.BypassNICs = saidFor(objects.NIC(objects.FirstPort, v1alpha1.NICHealthy), pool.Generation)
			d := DecidePool(at.PoolWorld, NewSelections())
			w := &world{pool: pool, set: running("dra-driver", "--drain"), node: &d.Nodes[0]}
			tc.change(w)
			at.DaemonSet, d.Plugins = w.set, countPlugins(w.set)
			if again := DecidePool(at.PoolWorld, NewSelections()); again.Draining != isDraining(at.PoolWorld, again) || again.Nameless != isNameless(at.Pool, again) {
				t.Errorf("the decision says draining %t, nameless %t", again.Draining, again.Nameless)
			}
			if got := isDraining(at.PoolWorld, d); got != tc.want {
				t.Errorf("isDraining() = %v, want %v", got, tc.want)
			}
		})
	}
}

// TestNameless: pods cannot ask a DRA driver by the name of a resource of which a kubelet still counts devices.
func TestNameless(t *testing.T) {
	ready := func(status corev1.ConditionStatus) []corev1.NodeCondition {
		return []corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse}, {Type: corev1.NodeReady, Status: status}}
	}
	cases := map[string]struct {
		change func(*v1alpha1.BypassNICPool, *PoolNode)
		want   bool
	}{
		"the kubelet has forgotten the device plugin":         {func(_ *v1alpha1.BypassNICPool, n *PoolNode) { n.Node.Status.Capacity = nil }, false},
		"it counts devices":                                   {func(*v1alpha1.BypassNICPool, *PoolNode) {}, true},
		"it counts none":                                      {func(p *v1alpha1.BypassNICPool, n *PoolNode) { count(p, n, "0") }, false},
		"it counts one":                                       {func(p *v1alpha1.BypassNICPool, n *PoolNode) { count(p, n, "1") }, true},
		"it is not ready":                                     {func(_ *v1alpha1.BypassNICPool, n *PoolNode) { n.Node.Status.Conditions = ready(corev1.ConditionFalse) }, false},
		"a container holds a device":                          {holding(v1alpha1.AllocationDevicePlugin), true},
		"a container holds one, says an agent without a word": {holding(""), true},
		"a container has a claim":                             {holding(v1alpha1.AllocationDynamic), false},
		"the pool has a device plugin": {
			func(p *v1alpha1.BypassNICPool, _ *PoolNode) { p.Spec.Allocation = v1alpha1.AllocationDevicePlugin }, false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pool := objects.MakePool("x2").Obj()
			pool.Spec.Allocation = v1alpha1.AllocationDynamic
			n := PoolNode{Node: tradingNode("n1")}
			n.Node.Status.Conditions = ready(corev1.ConditionTrue)
			count(pool, &n, "4")
			tc.change(pool, &n)
			if got := isNameless(pool, &PoolDecision{Nodes: []PoolNode{n}}); got != tc.want {
				t.Errorf("isNameless() = %v, want %v", got, tc.want)
			}
		})
	}
}

// count lets the kubelet of a node count devices of a pool.
func count(pool *v1alpha1.BypassNICPool, n *PoolNode, devices string) {
	n.Node.Status.Capacity = corev1.ResourceList{corev1.ResourceName(pool.Spec.ResourceName): resource.MustParse(devices)}
}

// holding lets a container hold a NIC of which the kubelet counts no devices.
func holding(way v1alpha1.AllocationType) func(*v1alpha1.BypassNICPool, *PoolNode) {
	return func(_ *v1alpha1.BypassNICPool, n *PoolNode) {
		n.Node.Status.Capacity = nil
		n.NICs = []*v1alpha1.NodeBypassNIC{{Users: []v1alpha1.NICUser{objects.User(way)}}}
	}
}

// TestPoolContent: nodes are told of other pools that select some of them, and of no others.
func TestPoolContent(t *testing.T) {
	pool := objects.MakePool("x2").Obj()
	near, far := objects.MakePool("near").Resource("lowlatency.dev/near").Obj(), objects.MakePool("far").Obj()
	far.Spec.NodeSelector = v1alpha1.NodeSelector{MatchLabels: v1alpha1.Labels{"role": "storage"}}
	pools := []*v1alpha1.BypassNICPool{far, near, pool}
	at := poolWorldOf(t, []*v1alpha1.BypassNICPool{pool}, tradingNode("n1"), tradingNode("n2"))
	at.Pools = pools
	content := DecidePool(at.PoolWorld, NewSelections()).Content
	told := map[string][]string{}
	for _, other := range content.OtherPools {
		told[other.Name] = other.Nodes
	}
	if diff := cmp.Diff(map[string][]string{"near": {"n1", "n2"}}, told); diff != "" {
		t.Errorf("other pools (-want +got):\n%s", diff)
	}
	rival := objects.MakePool("rival").Resource(pool.Spec.ResourceName).Obj()
	rival.CreationTimestamp = metav1.NewTime(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	older := pool.DeepCopy()
	older.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	want := bypass.Standing{Created: &older.CreationTimestamp, SameResource: []string{"rival"}}
	nobody := func(*v1alpha1.BypassNICPool) []string { return nil }
	if diff := cmp.Diff(want, PoolContent(older, []*v1alpha1.BypassNICPool{rival, older}, nil, nobody).Standing); diff != "" {
		t.Errorf("standing (-want +got):\n%s", diff)
	}
	at.Pools, at.Incumbents = []*v1alpha1.BypassNICPool{rival, older}, bypass.Incumbents{"rival": true}
	if owner := DecidePool(at.PoolWorld, NewSelections()).Content.ResourceOwner; owner != "rival" {
		t.Errorf("the resource name of x2 belongs to %q, and rival has NICs under it", owner)
	}
	if content.Name != "x2" || content.Generation != pool.Generation {
		t.Errorf("content of pool %s, generation %d", content.Name, content.Generation)
	}
}
