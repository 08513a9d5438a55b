// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// TestClaimOfAPool: each pool has its own claim, and one that is not of the node an empty one.
func TestClaimOfAPool(t *testing.T) {
	first, second := objects.MakePool("first").Obj(), objects.MakePool("second").Obj()
	set := NewPoolSet([]*v1alpha1.BypassNICPool{first, second}, nil, nil).On(nil)
	for _, pool := range []string{"first", "second", "third"} {
		if got := set.claim(pool, nil).Pool; got != pool {
			t.Errorf("the claim of %s is that of %s", pool, got)
		}
	}
}

// TestIsOfMachine: a report without an owner is taken for that of the Node, one of another Node is not.
func TestIsOfMachine(t *testing.T) {
	owners := func(kindsAndUIDs ...string) *v1alpha1.LowLatencyNode {
		report := &v1alpha1.LowLatencyNode{}
		for i := 0; i < len(kindsAndUIDs); i += 2 {
			report.OwnerReferences = append(report.OwnerReferences, metav1.OwnerReference{Kind: kindsAndUIDs[i], UID: types.UID(kindsAndUIDs[i+1])})
		}
		return report
	}
	node := objects.MakeNode("n")
	node.UID = "new"
	for name, tc := range map[string]struct {
		report *v1alpha1.LowLatencyNode
		want   bool
	}{
		"nobody's":           {owners(), true},
		"the Node's":         {owners("Node", "new"), true},
		"a former Node's":    {owners("Node", "old"), false},
		"both":               {owners("Node", "old", "Node", "new"), true},
		"another kind's":     {owners("Profile", "old"), true},
		"another kind's UID": {owners("Profile", "new", "Node", "old"), false},
	} {
		if got := IsOfMachine(tc.report, node); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

func TestPoolIndex(t *testing.T) {
	first, second := objects.MakePool("first").Obj(), objects.MakePool("second").Selecting(v1alpha1.Labels{"second": "yes"}).Obj()
	index := NewPoolIndex([]*v1alpha1.BypassNICPool{first, second}, nil)
	cases := map[string]struct {
		labels []string
		want   []string
	}{
		"none":  {[]string{"role", "other"}, nil},
		"one":   {[]string{"role", "trading"}, []string{"first"}},
		"other": {[]string{"second", "yes"}, []string{"second"}},
		"both":  {[]string{"role", "trading", "second", "yes"}, []string{"first", "second"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, index.Of(objects.MakeNode("n", tc.labels...)).Names()); diff != "" {
				t.Errorf("pools mismatch (-want +got):\n%s", diff)
			}
		})
	}
	one, again := index.Of(objects.MakeNode("a", "role", "trading")), index.Of(objects.MakeNode("b", "role", "trading"))
	if one != again {
		t.Error("nodes of the same pools do not share a set")
	}
	first.Generation = 2
	if changed := NewPoolIndex([]*v1alpha1.BypassNICPool{first, second}, nil).Of(objects.MakeNode("a", "role", "trading")); changed.On(nil).key() == one.On(nil).key() {
		t.Error("a pool that has changed has the key that it had before")
	}
}

// What pools have had decides who has a NIC as soon as there are two; the memory of plans must tell them apart from there on.
func TestKeyOfPools(t *testing.T) {
	all := []*v1alpha1.BypassNICPool{objects.MakePool("a").Obj(), objects.MakePool("b").Obj(), objects.MakePool("c").Obj()}
	claim := func(pool string) *v1alpha1.LowLatencyNode {
		return &v1alpha1.LowLatencyNode{Spec: v1alpha1.LowLatencyNodeSpec{BypassNICs: []v1alpha1.BypassNICClaim{{PCIAddress: objects.FirstPort, Pool: pool}}}}
	}
	for count, want := range []bool{false, false, true, true} {
		set := NewPoolIndex(all[:count], nil).Of(objects.MakeNode("n", "role", "trading"))
		if got := set.On(claim("a")).key() != set.On(claim("b")).key(); got != want {
			t.Errorf("keys of %d pools that had other NICs differ: %t, want %t", count, got, want)
		}
	}
	before := NewPoolIndex(all[:2], nil).Of(objects.MakeNode("n", "role", "trading")).On(claim("a")).key()
	all[1].Generation = 2
	if after := NewPoolIndex(all[:2], nil).Of(objects.MakeNode("n", "role", "trading")).On(claim("a")).key(); after == before {
		t.Error("two pools of which one has changed have the key that they had before")
	}
	one := NewPoolIndex(all[:2], nil)
	if again := one.Of(objects.MakeNode("m", "role", "trading")); again != one.Of(objects.MakeNode("n", "role", "trading")) {
		t.Error("the same pools are another set")
	}
}

func TestPoolsPerNodeAreBounded(t *testing.T) {
	pools := make([]*v1alpha1.BypassNICPool, 0, v1alpha1.MaxPoolsPerNode+1)
	for i := range v1alpha1.MaxPoolsPerNode + 1 {
		pools = append(pools, objects.MakePool(fmt.Sprintf("pool-%02d", i)).Obj())
	}
	names := NewPoolIndex(pools, nil).Of(objects.MakeNode("n", "role", "trading")).Names()
	if len(names) != v1alpha1.MaxPoolsPerNode || names[0] != "pool-00" {
		t.Errorf("pools are %v, want the first %d", names, v1alpha1.MaxPoolsPerNode)
	}
}

func TestPlannedPools(t *testing.T) {
	hardware, err := topology.FromInventory(objects.InventoryOf(t, hosttree.Xeon()))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		pools []*v1alpha1.BypassNICPool
		want  map[string][]string
	}{
		"no pool": {nil, map[string][]string{}},
		"one pool": {
			[]*v1alpha1.BypassNICPool{objects.MakePool("a").Obj()},
			map[string][]string{"a": {objects.FirstPort, objects.SecondPort}},
		},
		"a NIC of two pools is the older one's": {
			[]*v1alpha1.BypassNICPool{objects.MakePool("a").Obj(), objects.MakePool("b").NICs(objects.SecondPort).Obj()},
			map[string][]string{"a": {objects.FirstPort, objects.SecondPort}, "b": nil},
		},
		"of pools with one resource name the older one has its NICs": {
			[]*v1alpha1.BypassNICPool{
				objects.MakePool("a").NICs(objects.FirstPort).Resource("x/y").Obj(), objects.MakePool("b").NICs(objects.SecondPort).Resource("x/y").Obj(),
			},
			map[string][]string{"a": {objects.FirstPort}, "b": nil},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := map[string][]string{}
			pools, _ := NewPoolIndex(tc.pools, nil).Of(objects.MakeNode("n", "role", "trading")).On(nil).planned(hardware.NICs)
			for _, planned := range pools {
				got[planned.Name] = nil
				for _, nic := range planned.NICs {
					got[planned.Name] = append(got[planned.Name], nic.PCIAddress)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("claims mismatch (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPoolPlansForItsNodesOnly(t *testing.T) {
	xeon := objects.InventoryOf(t, hosttree.Xeon())
	profile, plans := objects.MakeProfile("trading").Obj(), NewPlanner(plan.PlatformRules{})
	pool := objects.MakePool("x2").Selecting(v1alpha1.Labels{"pool": "yes"})
	pool.Spec.Hugepages = []v1alpha1.NICHugepages{{Size: "2Mi", CountPerNIC: 400}}
	w := worldOf(profile, nil, nil, objects.MakeReport("in", "trading").Inventory(xeon).Obj(), objects.MakeReport("out", "trading").Inventory(xeon).Obj())
	w.Nodes["in"], w.Nodes["out"] = objects.MakeNode("in", "role", "trading", "pool", "yes"), objects.MakeNode("out", "role", "trading")
	before := DecideProfile(w, plans)
	w.Pools = []*v1alpha1.BypassNICPool{pool.Obj()}
	after := DecideProfile(w, plans)
	if before.Members[1].Planned != after.Members[1].Planned {
		t.Error("a node outside the pool was planned for again")
	}
	if before.Members[0].PlanHash() == after.Members[0].PlanHash() {
		t.Error("the hugepages of the pool are not in the plan of its node")
	}
	spec := after.Members[0].WantedSpec("trading")
	if diff := cmp.Diff([]string{"x2"}, spec.BypassPools); diff != "" {
		t.Errorf("spec.bypassPools mismatch (-want +got):\n%s", diff)
	}
	report := &v1alpha1.LowLatencyNode{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelProfile: "trading"}, OwnerReferences: []metav1.OwnerReference{{UID: "uid-in"}}},
		Spec:       spec,
	}
	if !IsUpToDate(report, spec, w.Nodes["in"]) {
		t.Error("a LowLatencyNode that names the pool is written again")
	}
	report.Spec.BypassPools = nil
	if IsUpToDate(report, spec, w.Nodes["in"]) {
		t.Error("a LowLatencyNode that does not name the pool is left as it is")
	}
}

// TestRecord: a NIC that is away for a moment stays its pool's, one that is there belongs to who claims it now, and what a pool
// had that no longer selects the node is forgotten.
func TestRecord(t *testing.T) {
	const away = "0000:09:00.0"
	claim := func(address, pool string) v1alpha1.BypassNICClaim {
		return v1alpha1.BypassNICClaim{PCIAddress: address, Pool: pool}
	}
	there := &v1alpha1.Inventory{NICs: []v1alpha1.InventoryNIC{{PCIAddress: objects.FirstPort}, {PCIAddress: objects.SecondPort}}}
	now := []v1alpha1.BypassNICClaim{claim(objects.FirstPort, "a")}
	for name, tc := range map[string]struct {
		recorded  []v1alpha1.BypassNICClaim
		inventory *v1alpha1.Inventory
		want      []v1alpha1.BypassNICClaim
	}{
		"nothing before":            {nil, there, now},
		"a NIC that is away":        {[]v1alpha1.BypassNICClaim{claim(away, "a")}, there, []v1alpha1.BypassNICClaim{claim(away, "a"), claim(objects.FirstPort, "a")}},
		"a NIC that is there":       {[]v1alpha1.BypassNICClaim{claim(objects.SecondPort, "a")}, there, now},
		"a NIC of a pool that left": {[]v1alpha1.BypassNICClaim{claim(away, "gone")}, there, now},
		"no inventory":              {[]v1alpha1.BypassNICClaim{claim(away, "a")}, nil, []v1alpha1.BypassNICClaim{claim(away, "a"), claim(objects.FirstPort, "a")}},
		"a NIC that two pools share is away": {
			[]v1alpha1.BypassNICClaim{claim(away, "b"), claim(away, "a")}, there,
			[]v1alpha1.BypassNICClaim{claim(away, "a"), claim(away, "b"), claim(objects.FirstPort, "a")},
		},
		"two NICs, and one is away now": {[]v1alpha1.BypassNICClaim{claim(objects.SecondPort, "a"), claim(away, "a")}, there, []v1alpha1.BypassNICClaim{claim(away, "a"), claim(objects.FirstPort, "a")}},
	} {
		pools := NewPoolIndex([]*v1alpha1.BypassNICPool{objects.MakePool("a").Obj(), objects.MakePool("b").Obj()}, nil).Of(objects.MakeNode("n", "role", "trading"))
		report := &v1alpha1.LowLatencyNode{Spec: v1alpha1.LowLatencyNodeSpec{BypassNICs: tc.recorded}}
		if diff := cmp.Diff(tc.want, pools.On(report).Record(now, tc.inventory)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if len(now) != 1 {
		t.Errorf("the claims of now were changed: %v", now)
	}
}

// TestClaimsOfIncumbents: beside an older pool of the same resource name, the one that has had NICs of a node keeps its name, on
// all nodes.
func TestClaimsOfIncumbents(t *testing.T) {
	newcomer, served := objects.MakePool("a").Resource("x.example/same").Obj(), objects.MakePool("b").Resource("x.example/same").Obj()
	newcomer.CreationTimestamp = metav1.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	served.CreationTimestamp = metav1.Date(2026, 1, 1, 0, 0, 9, 0, time.UTC)
	world := &ProfileWorld{
		Profile: objects.MakeProfile("trading").Obj(),
		Pools:   []*v1alpha1.BypassNICPool{newcomer, served},
		Nodes:   map[string]*corev1.Node{"n1": tradingNode("n1")},
	}
	owners := func() []string {
		claimants := DecideProfile(world, NewPlanner(plan.PlatformRules{})).Members[0].Pools.claimants
		owners := make([]string, 0, len(claimants))
		for _, claimant := range claimants {
			owners = append(owners, claimant.Name+" of "+claimant.ResourceOwner)
		}
		return owners
	}
	if diff := cmp.Diff([]string{"a of ", "b of a"}, owners()); diff != "" {
		t.Errorf("owners of the name, when none has NICs (-want +got):\n%s", diff)
	}
	world.Incumbents = bypass.IncumbentsOf(&v1alpha1.LowLatencyNode{Spec: v1alpha1.LowLatencyNodeSpec{
		BypassNICs: []v1alpha1.BypassNICClaim{{PCIAddress: objects.FirstPort, Pool: "b"}},
	}})
	if diff := cmp.Diff([]string{"a of b", "b of "}, owners()); diff != "" {
		t.Errorf("owners of the name, when b has NICs (-want +got):\n%s", diff)
	}
}
