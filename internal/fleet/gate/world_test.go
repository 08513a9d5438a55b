// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package gate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

const resourceX2 = "lowlatency.dev/x2"

// startingWorld is a node of a profile and a pool of the Solarflare NICs, verified for its plan in boot b1, whose agent
// has reported two healthy NICs.
func startingWorld(t *testing.T) *World {
	t.Helper()
	pool := &v1alpha1.BypassNICPool{}
	pool.Name, pool.Generation = "x2", 3
	pool.Spec.ResourceName, pool.Spec.NICs = resourceX2, []v1alpha1.NICSelector{{Vendor: "1924"}}
	report := objects.MakeReport("n", "trading").Verified("h", "TTT").Inventory(objects.InventoryOf(t, hosttree.Xeon())).Obj()
	report.Spec.BypassPools, report.Status.BootID = []string{"x2"}, "b1"
	for _, address := range []string{"0000:af:00.0", "0000:af:00.1"} {
		report.Status.BypassNICs = append(report.Status.BypassNICs, v1alpha1.NodeBypassNIC{
			Pool: "x2", PoolGeneration: 3, PCIAddress: address, Health: v1alpha1.NICHealthy, Units: 1,
		})
	}
	node := objects.MakeNode("n", "role", "trading")
	node.Status.NodeInfo.BootID = "b1"
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return &World{
		Node: node, Report: report, Current: report, Pools: []*v1alpha1.BypassNICPool{pool},
		Profiles: []v1alpha1.LowLatencyNodeProfile{*objects.MakeProfile("trading").Obj()},
	}
}

// reported makes all that the agent has written count.
func (w *World) reported() *World {
	w.Current = w.Report
	return w
}

func advertise(w *World, units string) {
	w.Node.Status.Allocatable = corev1.ResourceList{resourceX2: resource.MustParse(units)}
}

func TestStartupTaint(t *testing.T) {
	cases := map[string]struct {
		change   func(*World)
		want     bool
		wantWhy  string
		wantNote string
	}{
		"nobody asked for a taint":       {func(*World) {}, false, "spec.verification.gate is not Taint", ""},
		"the gate waits for the plugins": {func(w *World) { w.Profiles[0].Spec.Verification.Gate = v1alpha1.GateTaint }, true, "advertises 0 of 2 units of lowlatency.dev/x2", ""},
		"the gate opens": {func(w *World) {
			w.Profiles[0].Spec.Verification.Gate = v1alpha1.GateTaint
			advertise(w, "2")
		}, false, "verified for plan h", "b1"},
		"the pool waits for its plugin": {func(w *World) { w.Pools[0].Spec.Startup = v1alpha1.StartupTaint }, true, "advertises 0 of 2 units", ""},
		"the pool waits for all units": {func(w *World) {
			w.Pools[0].Spec.Startup = v1alpha1.StartupTaint
			advertise(w, "1")
		}, true, "advertises 1 of 2 units", ""},
		"the pool does not wait for checks": {func(w *World) {
			w.Pools[0].Spec.Startup = v1alpha1.StartupTaint
			w.Report = w.Report.DeepCopy()
			w.Report.Status.Conditions[1].Status = metav1.ConditionFalse
			advertise(w, "2")
		}, false, "the device plugins of the node advertise", "b1"},
		"another pool asks, this one is late": {func(w *World) {
			other := w.Pools[0].DeepCopy()
			other.Name, other.Spec.ResourceName, other.Spec.Startup = "none", "lowlatency.dev/none", v1alpha1.StartupTaint
			other.Spec.NICs = []v1alpha1.NICSelector{{Vendor: "ffff"}}
			w.Pools = append(w.Pools, other)
			w.Report.Spec.BypassPools = []string{"none", "x2"}
		}, true, "BypassNICPool x2", ""},
		"a pool of other nodes": {func(w *World) {
			w.Pools[0].Spec.Startup = v1alpha1.StartupTaint
			w.Report.Spec.BypassPools = nil
		}, false, "not Taint", "b1"},
		"the agent speaks of the former spec": {func(w *World) {
			w.Pools[0].Spec.Startup, w.Pools[0].Generation = v1alpha1.StartupTaint, 4
			advertise(w, "2")
		}, true, "the agent has not reported the NICs of BypassNICPool x2", ""},
		"the agent speaks of the former boot": {func(w *World) {
			w.Pools[0].Spec.Startup, w.Node.Status.NodeInfo.BootID = v1alpha1.StartupTaint, "b2"
			w.Node.Annotations = map[string]string{v1alpha1.AnnotationStarted: "b1"}
			advertise(w, "2")
		}, true, "the agent has not reported the NICs", ""},
		"an unhealthy NIC is not waited for": {func(w *World) {
			w.Pools[0].Spec.Startup = v1alpha1.StartupTaint
			w.Report.Status.BypassNICs[0].Health = v1alpha1.NICUnhealthy
			advertise(w, "1")
		}, false, "advertise", "b1"},
		"a plugin that goes later": {func(w *World) {
			w.Pools[0].Spec.Startup = v1alpha1.StartupTaint
			w.Node.Annotations = map[string]string{v1alpha1.AnnotationStarted: "b1"}
			advertise(w, "0")
		}, false, "advertise", "b1"},
		"a node that goes": {func(w *World) {
			w.Pools[0].Spec.Startup = v1alpha1.StartupTaint
			w.Node.Annotations = map[string]string{v1alpha1.AnnotationStarted: "b1"}
			w.Node.Status.Conditions[0].Status = corev1.ConditionUnknown
			advertise(w, "2")
		}, true, "the condition Ready of the Node is Unknown", ""},
		"no profile any more": {func(w *World) {
			w.Profiles, w.Report = nil, nil
			w.Node.Annotations = map[string]string{v1alpha1.AnnotationStarted: "b1"}
		}, false, "no profile", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := startingWorld(t)
			tc.change(w)
			d := w.reported().Decide(noon())
			got, why := w.isTainted(d)
			if got != tc.want || !strings.Contains(why, tc.wantWhy) {
				t.Errorf("isTainted() = %v, %q, want %v, %q", got, why, tc.want, tc.wantWhy)
			}
			noted := w.Node.DeepCopy()
			w.noteStart(noted, d)
			if note := noted.Annotations[v1alpha1.AnnotationStarted]; note != tc.wantNote {
				t.Errorf("the note is %q, want %q", note, tc.wantNote)
			}
		})
	}
}

func TestConditionsSpeakOfTheBoot(t *testing.T) {
	w := startingWorld(t)
	statuses := func() []string {
		conditions := w.conditions()
		all := make([]string, 0, len(conditions))
		for _, condition := range conditions {
			all = append(all, string(condition.Status)+" "+condition.Reason)
		}
		return slices.Compact(all)
	}
	if diff := cmp.Diff([]string{"True Verified"}, statuses()); diff != "" {
		t.Errorf("in the boot of the report: %s", diff)
	}
	w.Node.Status.NodeInfo.BootID = "b2"
	if diff := cmp.Diff([]string{"Unknown AwaitingVerification"}, statuses()); diff != "" {
		t.Errorf("after a reboot: %s", diff)
	}
	w.Node.Status.NodeInfo.BootID = ""
	if diff := cmp.Diff([]string{"True Verified"}, statuses()); diff != "" {
		t.Errorf("where the kubelet tells no boot: %s", diff)
	}
}

func TestGateLooksAgain(t *testing.T) {
	w := startingWorld(t)
	w.Profiles[0].Spec.Verification.Gate = v1alpha1.GateTaint
	advertise(w, "2")
	at := func(seconds int) metav1.Time {
		return metav1.NewTime(noon().Add(-time.Duration(seconds) * time.Second))
	}
	w.Report.Status.Transitions = []v1alpha1.NodeTransition{
		{Time: at(20), Condition: v1alpha1.ConditionDeJittered, From: metav1.ConditionFalse, To: metav1.ConditionTrue, Reason: v1alpha1.ReasonVerified},
		{Time: at(90), Condition: v1alpha1.ConditionDeJittered, From: metav1.ConditionTrue, To: metav1.ConditionFalse, Reason: v1alpha1.ReasonChecksFailed},
	}
	for now, want := range map[time.Time]time.Duration{
		noon(): 40 * time.Second, noon().Add(SettleTime): 0,
	} {
		d := w.Decide(now)
		if d.RetryAfter != want || d.IsOpen() != (want == 0) {
			t.Errorf("at %v the gate looks again after %v (open: %v), want %v", now, d.RetryAfter, d.IsOpen(), want)
		}
	}
}

func TestIsAbandoned(t *testing.T) {
	deleting := objects.MakeProfile("trading").Obj()
	deleting.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)}
	cases := map[string]struct {
		node     *corev1.Node
		profiles []v1alpha1.LowLatencyNodeProfile
		want     bool
	}{
		"no node":                      {nil, []v1alpha1.LowLatencyNodeProfile{*objects.MakeProfile("trading").Obj()}, true},
		"a profile selects the node":   {objects.MakeNode("n", "role", "trading"), []v1alpha1.LowLatencyNodeProfile{*objects.MakeProfile("trading").Obj()}, false},
		"no profile selects it":        {objects.MakeNode("n", "role", "other"), []v1alpha1.LowLatencyNodeProfile{*objects.MakeProfile("trading").Obj()}, true},
		"the profile is being deleted": {objects.MakeNode("n", "role", "trading"), []v1alpha1.LowLatencyNodeProfile{*deleting}, false},
		"a profile has not given it back": {
			objects.MakeNode("n", "role", "other", v1alpha1.LabelProfile, "trading"), []v1alpha1.LowLatencyNodeProfile{*objects.MakeProfile("trading").Obj()}, false,
		},
		"a profile that is gone has not given it back": {
			objects.MakeNode("n", "role", "other", v1alpha1.LabelProfile, "former"), []v1alpha1.LowLatencyNodeProfile{*objects.MakeProfile("trading").Obj()}, true,
		},
		"no profile": {objects.MakeNode("n", "role", "trading"), nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &World{Node: tc.node, Report: objects.MakeReport("n", "trading").Obj(), Profiles: tc.profiles}
			if got := w.IsAbandoned(); got != tc.want {
				t.Errorf("IsAbandoned() = %v, want %v", got, tc.want)
			}
		})
	}
}

// TestStartupOfADriver: a node does not wait for a kubelet that will advertise nothing.
func TestStartupOfADriver(t *testing.T) {
	w := startingWorld(t)
	if got := len(w.startup().Pools); got != 1 {
		t.Fatalf("%d pools are waited for, want the one with a device plugin", got)
	}
	w.Pools[0].Spec.Allocation = v1alpha1.AllocationDynamic
	if waited := w.startup().Pools; len(waited) > 0 {
		t.Errorf("pools %+v are waited for", waited)
	}
}

// TestForgetFormerMachine: a report about the machine that the Node's machine has replaced counts for nothing.
func TestForgetFormerMachine(t *testing.T) {
	for name, tc := range map[string]struct {
		owner types.UID
		want  bool
	}{"its own machine": {"now", true}, "a former machine": {"then", false}} {
		node, report := objects.MakeNode("n"), objects.MakeReport("n", "trading").Obj()
		node.UID = "now"
		report.OwnerReferences[0].UID = tc.owner
		w := &World{Node: node, Report: report}
		w.ForgetFormerMachine()
		if got := w.Report != nil; got != tc.want {
			t.Errorf("%s: the report is there: %t, want %t", name, got, tc.want)
		}
	}
	for _, w := range []*World{{}, {Node: objects.MakeNode("n")}, {Report: objects.MakeReport("n", "trading").Obj()}} {
		report := w.Report
		if w.ForgetFormerMachine(); w.Report != report {
			t.Error("a report that nothing is compared with is forgotten")
		}
	}
}
