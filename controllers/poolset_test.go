// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// firstPort and secondPort are the Solarflare NICs of the simulated Xeon.
const (
	firstPort  = "0000:af:00.0"
	secondPort = "0000:af:00.1"
)

// poolWrapper builds BypassNICPools.
type poolWrapper struct {
	v1alpha1.BypassNICPool
}

// makePool makes a pool of the Solarflare NICs on nodes with the label role=trading.
func makePool(name string) *poolWrapper {
	p := &poolWrapper{}
	p.Name, p.UID, p.Generation = name, types.UID("uid-"+name), 1
	p.Spec.NodeSelector.MatchLabels = v1alpha1.Labels{"role": "trading"}
	p.Spec.NICs = []v1alpha1.NICTerm{{Vendor: "1924"}}
	p.Spec.ResourceName = "lowlatency.dev/" + name
	p.Spec.Stack = v1alpha1.BypassStack{Type: v1alpha1.StackVFIO, VFIO: &v1alpha1.VFIOStack{}}
	return p
}

func (p *poolWrapper) selecting(labels v1alpha1.Labels) *poolWrapper {
	p.Spec.NodeSelector.MatchLabels = labels
	return p
}

func (p *poolWrapper) nics(addresses ...v1alpha1.PCIAddress) *poolWrapper {
	p.Spec.NICs = []v1alpha1.NICTerm{{PCIAddresses: addresses}}
	return p
}

func (p *poolWrapper) resource(name string) *poolWrapper {
	p.Spec.ResourceName = name
	return p
}

func (p *poolWrapper) obj() *v1alpha1.BypassNICPool { return p.DeepCopy() }

func TestPoolIndex(t *testing.T) {
	first, second := makePool("first").obj(), makePool("second").selecting(v1alpha1.Labels{"second": "yes"}).obj()
	index := newPoolIndex([]*v1alpha1.BypassNICPool{first, second})
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
			if diff := cmp.Diff(tc.want, index.of(makeNode("n", tc.labels...)).names()); diff != "" {
				t.Errorf("pools mismatch (-want +got):\n%s", diff)
			}
		})
	}
	one, again := index.of(makeNode("a", "role", "trading")), index.of(makeNode("b", "role", "trading"))
	if one != again {
		t.Error("nodes of the same pools do not share a set")
	}
	first.Generation = 2
	if changed := newPoolIndex([]*v1alpha1.BypassNICPool{first, second}).of(makeNode("a", "role", "trading")); changed.key() == one.key() {
		t.Error("a pool that has changed has the key that it had before")
	}
}

func TestPoolsPerNodeAreBounded(t *testing.T) {
	pools := make([]*v1alpha1.BypassNICPool, 0, v1alpha1.MaxPoolsPerNode+1)
	for i := range v1alpha1.MaxPoolsPerNode + 1 {
		pools = append(pools, makePool(fmt.Sprintf("pool-%02d", i)).obj())
	}
	names := newPoolIndex(pools).of(makeNode("n", "role", "trading")).names()
	if len(names) != v1alpha1.MaxPoolsPerNode || names[0] != "pool-00" {
		t.Errorf("pools are %v, want the first %d", names, v1alpha1.MaxPoolsPerNode)
	}
}

func TestPlannedPools(t *testing.T) {
	hardware, err := topology.FromInventory(inventoryOf(t, hosttree.Xeon()))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		pools []*v1alpha1.BypassNICPool
		want  map[string][]string
	}{
		"no pool": {nil, map[string][]string{}},
		"one pool": {
			[]*v1alpha1.BypassNICPool{makePool("a").obj()},
			map[string][]string{"a": {firstPort, secondPort}},
		},
		"a NIC of two pools is neither's": {
			[]*v1alpha1.BypassNICPool{makePool("a").obj(), makePool("b").nics(secondPort).obj()},
			map[string][]string{"a": {firstPort}, "b": nil},
		},
		"of pools with one resource name none has a NIC": {
			[]*v1alpha1.BypassNICPool{
				makePool("a").nics(firstPort).resource("x/y").obj(), makePool("b").nics(secondPort).resource("x/y").obj(),
			},
			map[string][]string{"a": nil, "b": nil},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := map[string][]string{}
			for _, planned := range newPoolIndex(tc.pools).of(makeNode("n", "role", "trading")).planned(hardware.NICs) {
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
	xeon := inventoryOf(t, hosttree.Xeon())
	profile, plans := makeProfile("trading").obj(), newPlanner()
	pool := makePool("x2").selecting(v1alpha1.Labels{"pool": "yes"})
	pool.Spec.Hugepages = []v1alpha1.NICHugepages{{Size: "2Mi", CountPerNIC: 400}}
	w := worldOf(profile, nil, nil, makeReport("in", "trading").inventory(xeon).obj(), makeReport("out", "trading").inventory(xeon).obj())
	w.nodes["in"], w.nodes["out"] = makeNode("in", "role", "trading", "pool", "yes"), makeNode("out", "role", "trading")
	before := decide(w, plans)
	w.pools = []*v1alpha1.BypassNICPool{pool.obj()}
	after := decide(w, plans)
	if before.members[1].planned != after.members[1].planned {
		t.Error("a node outside the pool was planned for again")
	}
	if before.members[0].planHash() == after.members[0].planHash() {
		t.Error("the hugepages of the pool are not in the plan of its node")
	}
	spec := wantedSpec("trading", &after.members[0])
	if diff := cmp.Diff([]string{"x2"}, spec.BypassPools); diff != "" {
		t.Errorf("spec.bypassPools mismatch (-want +got):\n%s", diff)
	}
	report := &v1alpha1.LowLatencyNode{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelProfile: "trading"}, OwnerReferences: []metav1.OwnerReference{{UID: "uid-in"}}},
		Spec:       spec,
	}
	if !isReport(report, spec, w.nodes["in"]) {
		t.Error("a LowLatencyNode that names the pool is written again")
	}
	report.Spec.BypassPools = nil
	if isReport(report, spec, w.nodes["in"]) {
		t.Error("a LowLatencyNode that does not name the pool is left as it is")
	}
}
