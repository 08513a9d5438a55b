// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"strings"
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/hosttree"
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

func TestPlanner(t *testing.T) {
	xeon, epyc := inventoryOf(t, hosttree.Xeon()), inventoryOf(t, hosttree.EPYC())
	profile := makeProfile("trading").obj()
	p := newPlanner()
	first := p.plan(profile, "n1", xeon)
	if first.plan == nil || first.hash == "" || first.signature == "" || first.configMap != "trading-"+first.hash {
		t.Fatalf("plan is %+v, want a complete one", first)
	}
	t.Run("nodes with equal inventories share a plan", func(t *testing.T) {
		if again := p.plan(profile, "n2", xeon.DeepCopy()); again != first {
			t.Error("the plan was made again")
		}
	})
	t.Run("other hardware has another plan", func(t *testing.T) {
		if other := p.plan(profile, "n3", epyc); other.hash == first.hash {
			t.Errorf("both plans have the hash %s", other.hash)
		}
	})
	t.Run("a node that claims another's hash plans for itself only", func(t *testing.T) {
		liar := epyc.DeepCopy()
		liar.Hash = xeon.Hash
		if lied := p.plan(profile, "n4", liar); lied.hash == first.hash {
			t.Error("the claim was believed")
		}
		if honest := p.plan(profile, "n5", xeon); honest != first {
			t.Error("another node suffers from the claim")
		}
	})
	t.Run("equal plans are one object although the inventories differ", func(t *testing.T) {
		rebooted := xeon.DeepCopy()
		rebooted.Hash, rebooted.KernelCommandLine = "other", rebooted.KernelCommandLine+" quiet"
		if again := p.plan(profile, "n1", rebooted); again == first || again.plan != first.plan {
			t.Error("the plan is another object")
		}
	})
	t.Run("a new generation is planned anew", func(t *testing.T) {
		changed := profile.DeepCopy()
		changed.Generation, changed.Spec.CPUs.Tick = 2, v1alpha1.TickPeriodic
		if next := p.plan(changed, "n1", xeon); next.hash == first.hash {
			t.Error("the plan is that of the old generation")
		}
	})
	t.Run("an inventory that cannot be read is a finding", func(t *testing.T) {
		broken := xeon.DeepCopy()
		broken.Hash, broken.OnlineCPUs = "broken", "0-"
		got := p.plan(profile, "n6", broken)
		if got.plan != nil || len(got.findings) != 1 || !strings.Contains(onNode(got.findings[0].text, "n6"), "LowLatencyNode n6 cannot be read") {
			t.Errorf("plan is %+v, want a finding", got)
		}
	})
	t.Run("a plan that is impossible has findings for any node", func(t *testing.T) {
		greedy := profile.DeepCopy()
		greedy.Generation = 3
		greedy.Spec.Memory.Hugepages = []v1alpha1.HugepageReservation{{Size: "1Gi", Count: 100000}}
		got := p.plan(greedy, "n1", xeon)
		if got.plan != nil || len(got.findings) == 0 || !strings.Contains(got.findings[0].text, anyNode) {
			t.Errorf("plan is %+v, want findings about %s", got, anyNode)
		}
	})
}
