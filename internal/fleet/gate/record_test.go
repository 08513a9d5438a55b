// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package gate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

// TestRecords decides from records that say little, or not all.
func TestRecords(t *testing.T) {
	open := outcome{metav1.ConditionTrue, v1alpha1.ReasonVerified, 0}
	all := conditions("TTT")
	cases := map[string]struct {
		conditions  []metav1.Condition
		transitions []v1alpha1.NodeTransition
		want        outcome
	}{
		"a gap between proof and loss is no trust": {
			conditions("TUT"), story(step{seconds: 300, what: "DUT"}, step{seconds: 30, what: "DFU"}),
			outcome{metav1.ConditionUnknown, v1alpha1.ReasonChecksUnknown, 0},
		},
		"what failed while it was not known whether the plan is applied does not count": {
			conditions("UTT"), after(step{seconds: 30, what: "ATU"}, step{seconds: 20, what: "DTF"}, step{seconds: 10, what: "DFT"}),
			outcome{metav1.ConditionTrue, v1alpha1.ReasonVerified, 90 * time.Second},
		},
		"nobody says whether the plan is applied": {
			all[1:], story(step{seconds: 20, what: "DTF"}, step{seconds: 10, what: "DFT"}), open,
		},
		"a failure of just an hour ago counts": {
			all, after(step{seconds: 3600, what: "DTF"}, step{seconds: 30, what: "DFT"}),
			outcome{metav1.ConditionFalse, v1alpha1.ReasonSettling, 30 * time.Second},
		},
		"a failure of more than an hour ago does not": {
			all, after(step{seconds: 3601, what: "DTF"}, step{seconds: 30, what: "DFT"}), open,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Decide(Input{Conditions: tc.conditions, Transitions: tc.transitions, PlanHash: "p1", Startup: started(), Now: noon()})
			if diff := cmp.Diff(tc.want, outcome{got.Status, got.Reason, got.RetryAfter}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", got.Message, diff)
			}
		})
	}
}

// TestGovernor: before a node has a LowLatencyNode, the profile governs it that is about to create one.
func TestGovernor(t *testing.T) {
	ours := v1alpha1.Labels{"role": "trading"}
	leaving := objects.MakeProfile("a").Selecting(ours).Obj()
	leaving.DeletionTimestamp = &metav1.Time{Time: noon()}
	staying, other := objects.MakeProfile("b").Selecting(ours).Obj(), objects.MakeProfile("c").Selecting(v1alpha1.Labels{"role": "storage"}).Obj()
	cases := map[string]struct {
		profiles []*v1alpha1.LowLatencyNodeProfile
		report   *v1alpha1.LowLatencyNode
		want     string
	}{
		"the one that selects the node":                 {[]*v1alpha1.LowLatencyNodeProfile{other, staying}, nil, "b"},
		"one that is being deleted creates nothing":     {[]*v1alpha1.LowLatencyNodeProfile{leaving}, nil, ""},
		"another selects it, too":                       {[]*v1alpha1.LowLatencyNodeProfile{leaving, staying}, nil, "b"},
		"one that is being deleted has created it":      {[]*v1alpha1.LowLatencyNodeProfile{leaving, staying}, objects.MakeReport("n", "a").Obj(), "a"},
		"one that no longer selects it has created it":  {[]*v1alpha1.LowLatencyNodeProfile{staying, other}, objects.MakeReport("n", "c").Obj(), "c"},
		"the one that has created it is gone":           {[]*v1alpha1.LowLatencyNodeProfile{staying}, objects.MakeReport("n", "a").Obj(), ""},
		"none selects the node, and nobody has created": {[]*v1alpha1.LowLatencyNodeProfile{other}, nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &World{Node: objects.MakeNode("n", "role", "trading"), Report: tc.report, Current: tc.report}
			for _, profile := range tc.profiles {
				w.Profiles = append(w.Profiles, *profile)
			}
			got := ""
			if governor := w.governor(); governor != nil {
				got = governor.Name
			}
			if got != tc.want {
				t.Errorf("profile %q governs the node, want %q", got, tc.want)
			}
			if decided := w.Decide(noon()) != nil; decided != (tc.want != "") {
				t.Errorf("decided: %v", decided)
			}
		})
	}
}

func TestHasMarks(t *testing.T) {
	cases := map[string]struct {
		change func(*corev1.Node)
		want   bool
	}{
		"none":       {func(*corev1.Node) {}, false},
		"our taint":  {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{ourTaint()} }, true},
		"our note":   {func(n *corev1.Node) { n.Annotations = map[string]string{v1alpha1.AnnotationStarted: "b1"} }, true},
		"empty note": {func(n *corev1.Node) { n.Annotations = map[string]string{v1alpha1.AnnotationStarted: ""} }, false},
		"our condition": {func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: v1alpha1.NodeConditionReady}}
		}, true},
		"what others have put on it": {func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
			n.Annotations = map[string]string{"owner": "b1"}
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady}}
		}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			node := objects.MakeNode("n")
			tc.change(node)
			if got := HasMarks(node); got != tc.want {
				t.Errorf("HasMarks() = %v, want %v", got, tc.want)
			}
		})
	}
}

// TestEventReasons: every event about a node has one of the reasons that are documented.
func TestEventReasons(t *testing.T) {
	want := []string{
		"GateClosed", "GateOpened", "DeJittered", "NotDeJittered", "DeJitteredUnknown", "NUMAAligned", "NotNUMAAligned", "NUMAAlignedUnknown",
	}
	if diff := cmp.Diff(want, EventReasons()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnnouncements(t *testing.T) {
	aligned := []corev1.NodeCondition{{Type: v1alpha1.NodeConditionNUMAAligned, Status: corev1.ConditionTrue, Reason: "Verified", Message: "proven"}}
	want := []fleet.Announcement{{Kind: corev1.EventTypeNormal, Reason: "NUMAAligned", Message: "proven"}}
	failed := []corev1.NodeCondition{{Type: v1alpha1.NodeConditionNUMAAligned, Status: corev1.ConditionFalse, Reason: "ChecksFailed"}}
	if diff := cmp.Diff(want, Announcements(failed, aligned)); diff != "" {
		t.Errorf("the Node shows one condition alone (-want +got):\n%s", diff)
	}
	if got := Announcements(aligned, nil); len(got) > 0 {
		t.Errorf("the conditions are gone: %+v", got)
	}
}

// TestNodeConditionsOfTheNode: what the Node shows already is not written again.
func TestNodeConditionsOfTheNode(t *testing.T) {
	report := objects.MakeReport("n", "trading").Verified("h", "TTT").Obj()
	w := &World{Node: objects.MakeNode("n"), Report: report, Current: report}
	first, moved := w.NodeConditions(nil, noon())
	if len(first) != 2 || !moved {
		t.Fatalf("got %+v, %v, want two conditions to write", first, moved)
	}
	w.Node.Status.Conditions = first
	if again, moved := w.NodeConditions(nil, noon().Add(time.Hour)); again != nil || moved {
		t.Errorf("got %+v, %v, want nothing to write", again, moved)
	}
}
