// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

func TestMemory(t *testing.T) {
	m := memory[int, string]{}
	for _, node := range []string{"n1", "n2", "n3"} {
		m.put("trading", node, 1, "first of "+node)
	}
	m.put("other", "n9", 1, "first of n9")
	m.put("trading", "n1", 2, "second of n1")
	if got, found := m.get("trading", "n1", 1); found {
		t.Errorf("get returns %q, which was replaced", got)
	}
	m.retain("trading", []string{"n1", "n2", "n4"})
	if _, found := m.get("trading", "n3", 1); !found {
		t.Error("as many nodes as there are were not remembered")
	}
	m.retain("trading", []string{"n1", "n4"})
	want := memory[int, string]{
		"trading": {"n1": {from: 2, value: "second of n1"}}, "other": {"n9": {from: 1, value: "first of n9"}},
	}
	if diff := cmp.Diff(want, m, cmp.AllowUnexported(remembered[int, string]{})); diff != "" {
		t.Errorf("memory (-want +got):\n%s", diff)
	}
	m.retain("trading", nil)
	if _, found := m["trading"]; found {
		t.Error("an owner without nodes is remembered")
	}
}

func TestSharedForgetsWhatNobodyKeeps(t *testing.T) {
	var s shared[string, []byte]
	kept := new(make([]byte, 16))
	s.put("kept", kept)
	for i := range 100 * minimumShared {
		s.put(strconv.Itoa(i), new(make([]byte, 16)))
		if i%minimumShared == 0 {
			runtime.GC()
		}
		if len(s.values) > 4*minimumShared {
			t.Fatalf("%d values are known after %d, of which one is in use", len(s.values), i)
		}
	}
	runtime.GC()
	if s.get("kept") != kept {
		t.Error("a value in use is not found")
	}
	if got := s.get("1"); got != nil {
		t.Error("a value that nobody keeps is found")
	}
	runtime.KeepAlive(kept)
}

// TestReplacedNodesAreForgotten gives nodes new names and profiles new generations, as a cluster does that lives long.
func TestReplacedNodesAreForgotten(t *testing.T) {
	xeon, profile := objects.InventoryOf(t, hosttree.Xeon()), objects.MakeProfile("trading").Obj()
	plans, selections := NewPlanner(plan.PlatformRules{}), NewSelections()
	for generation := range int64(5) {
		profile.Generation = generation
		name := "n" + strconv.FormatInt(generation, 10)
		DecideProfile(worldOf(profile, nil, []*corev1.Node{tradingNode(name)}, objects.MakeReport(name, "trading").Inventory(xeon).Obj()), plans)
		w := poolWorldOf(t, []*v1alpha1.BypassNICPool{objects.MakePool("x2").Obj()}, tradingNode(name))
		DecidePool(w.PoolWorld, selections)
		if len(plans.byNode["trading"]) != 1 || len(selections.known["x2"]) != 1 {
			t.Fatalf("%d plans and %d selections are remembered of one node", len(plans.byNode["trading"]), len(selections.known["x2"]))
		}
	}
	plans.Retain("trading")
	selections.Retain("x2")
	if len(plans.byNode)+len(selections.known) > 0 {
		t.Error("a profile or a pool that is gone is remembered")
	}
}
