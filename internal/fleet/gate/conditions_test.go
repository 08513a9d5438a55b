// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package gate

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

func TestNodeConditions(t *testing.T) {
	report := objects.MakeReport("n", "trading").Verified("h", "TFT").Obj()
	w := &World{Node: objects.MakeNode("n"), Report: report, Current: report}
	want := []corev1.NodeCondition{
		{Type: "LowLatencyDeJittered", Status: "False", Reason: v1alpha1.ReasonChecksFailed, Message: "DeJittered is disproven by IRQ 142"},
		{Type: "LowLatencyNUMAAligned", Status: "True", Reason: v1alpha1.ReasonVerified, Message: "proven"},
		{Type: "LowLatencyReady", Status: "False", Reason: v1alpha1.ReasonSettling, Message: "wait"},
	}
	decision := &Decision{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonSettling, Message: "wait"}
	if diff := cmp.Diff(want, w.nodeConditions(decision)); diff != "" {
		t.Errorf("conditions mismatch (-want +got):\n%s", diff)
	}
	if got := (&World{Node: objects.MakeNode("n")}).nodeConditions(decision); len(got) > 0 {
		t.Errorf("a node without a LowLatencyNode gets %+v", got)
	}
	have := append([]corev1.NodeCondition{{Type: "Ready", Status: "True"}}, want...)
	if !sameConditions(have, want) {
		t.Error("conditions of others count")
	}
	have[1].Message = "IRQ 143"
	if sameConditions(have, want) {
		t.Error("another message does not count")
	}
}

func TestNothingToTell(t *testing.T) {
	profile := objects.MakeProfile("trading")
	cases := map[string]struct {
		profile *objects.Profile
		report  *objects.Report
		have    []corev1.NodeCondition
		want    bool
	}{
		"no agent has said anything":                {profile: profile, report: objects.MakeReport("n", "trading"), want: false},
		"no agent has, and pods are kept off":       {profile: objects.MakeProfile("trading").Gated(), report: objects.MakeReport("n", "trading"), want: true},
		"the plan is proven":                        {profile: profile, report: objects.MakeReport("n", "trading").Verified("h", "TTT"), want: true},
		"a fact is missing":                         {profile: profile, report: objects.MakeReport("n", "trading").Verified("h", "TUT"), want: true},
		"what was proven is of another agent's day": {profile: profile, report: objects.MakeReport("n", "trading"), have: []corev1.NodeCondition{{Type: v1alpha1.NodeConditionReady, Status: "True"}}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			node := objects.MakeNode("n", "role", "trading")
			node.Status.Conditions = tc.have
			w := &World{Node: node, Report: tc.report.Obj(), Current: tc.report.Obj(), Profiles: []v1alpha1.LowLatencyNodeProfile{*tc.profile.Obj()}}
			if _, got := w.NodeConditions(w.Decide(time.Unix(1000, 0)), time.Unix(1000, 0)); got != tc.want {
				t.Errorf("NodeConditions() are to be written: %v, want %v", got, tc.want)
			}
		})
	}
}

// TestPassing: of the states through which every node goes, the Node shows the first, unless one lasts.
func TestPassing(t *testing.T) {
	const minute = time.Minute
	shown := func(status corev1.ConditionStatus, reason string) []corev1.NodeCondition {
		kinds := []corev1.NodeConditionType{v1alpha1.NodeConditionDeJittered, v1alpha1.NodeConditionNUMAAligned, v1alpha1.NodeConditionReady}
		all := make([]corev1.NodeCondition, 0, len(kinds))
		for _, kind := range kinds {
			all = append(all, corev1.NodeCondition{Type: kind, Status: status, Reason: reason, Message: "m", LastTransitionTime: metav1.NewTime(noon())})
		}
		return all
	}
	says := func(status metav1.ConditionStatus, reason string) *v1alpha1.LowLatencyNode {
		report := objects.MakeReport("n", "trading").Verified("h", "TTT").Obj()
		for i := range report.Status.Conditions {
			report.Status.Conditions[i].Status, report.Status.Conditions[i].Reason = status, reason
		}
		report.CreationTimestamp = metav1.NewTime(noon())
		return report
	}
	pending, proven := says("False", v1alpha1.ReasonRebootPending), says("True", v1alpha1.ReasonVerified)
	failed := says("False", v1alpha1.ReasonChecksFailed)
	old := says("False", v1alpha1.ReasonRebootPending)
	old.CreationTimestamp = metav1.NewTime(noon().Add(-time.Hour))
	awaited := shown("Unknown", v1alpha1.ReasonAwaitingVerification)
	plain, gated := objects.MakeProfile("trading"), objects.MakeProfile("trading").Gated()
	cases := map[string]struct {
		have    []corev1.NodeCondition
		report  *v1alpha1.LowLatencyNode
		profile *objects.Profile
		after   time.Duration
		want    time.Duration
	}{
		"a reboot is due before the node has shown anything": {report: pending, after: minute, want: PassingTime - minute},
		"a reboot is due, and the plan was awaited":          {have: awaited, report: pending, after: minute, want: PassingTime - minute},
		"the node has shown it for a minute":                 {have: awaited, report: old, after: minute, want: PassingTime - minute},
		"the node has never shown it":                        {report: old, after: minute},
		"the reboot does not come":                           {have: awaited, report: pending, after: PassingTime},
		"pods are kept off":                                  {have: awaited, report: pending, profile: gated, after: minute},
		"the plan is proven":                                 {have: awaited, report: proven, after: minute},
		"a check fails":                                      {have: awaited, report: failed, after: minute},
		"what was proven is no more":                         {have: shown("True", v1alpha1.ReasonVerified), report: pending, after: minute},
		"a check that failed is not looked at any more":      {have: shown("False", v1alpha1.ReasonChecksFailed), report: pending, after: minute},
		"nothing more is to be shown":                        {have: awaited, after: minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.profile == nil {
				tc.profile = plain
			}
			node := objects.MakeNode("n", "role", "trading")
			node.Status.Conditions = tc.have
			w := &World{Node: node, Report: tc.report, Current: tc.report, Profiles: []v1alpha1.LowLatencyNodeProfile{*tc.profile.Obj()}}
			now := noon().Add(tc.after)
			d := w.Decide(now)
			if got := w.Passing(d, now); got != tc.want {
				t.Errorf("Passing() = %s, want %s", got, tc.want)
			}
			if _, got := w.NodeConditions(d, now); got != (tc.want == 0) {
				t.Errorf("NodeConditions() are to be written: %v while Passing() is %s", got, tc.want)
			}
		})
	}
}

func TestNoteJoining(t *testing.T) {
	node := objects.MakeNode("n", "role", "trading")
	node.Status.NodeInfo.BootID = "b1"
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
	NoteJoining(node)
	if note, found := node.Annotations[v1alpha1.AnnotationStarted]; found {
		t.Errorf("a node that is not ready has the note %q", note)
	}
	node.Status.Conditions[0].Status = corev1.ConditionTrue
	NoteJoining(node)
	if note := node.Annotations[v1alpha1.AnnotationStarted]; note != "b1" {
		t.Errorf("the note is %q, want the boot", note)
	}
	report := objects.MakeReport("n", "trading").Obj()
	w := &World{Node: node, Report: report, Current: report, Profiles: []v1alpha1.LowLatencyNodeProfile{*objects.MakeProfile("trading").Obj()}}
	report.Status.BootID = "b1"
	if next, _ := w.Marked(w.Decide(noon())); next != node {
		t.Errorf("the node is marked again: %v", next.Annotations)
	}
}

func TestWithTransitions(t *testing.T) {
	before, now := metav1.NewTime(time.Unix(1000, 0)), metav1.NewTime(time.Unix(2000, 0))
	have := []corev1.NodeCondition{{Type: "A", Status: "True", LastTransitionTime: before}, {Type: "B", Status: "True", LastTransitionTime: before}, {Type: "D", Status: "True"}}
	want := []corev1.NodeCondition{{Type: "A", Status: "True"}, {Type: "B", Status: "False"}, {Type: "C", Status: "True"}, {Type: "D", Status: "True"}}
	times := map[corev1.NodeConditionType]metav1.Time{"A": before, "B": now, "C": now, "D": now}
	for _, condition := range withTransitions(have, want, now) {
		if !condition.LastTransitionTime.Time.Equal(times[condition.Type].Time) {
			t.Errorf("%s changed at %s, want %s", condition.Type, condition.LastTransitionTime, times[condition.Type])
		}
	}
}

func TestNodeAnnouncement(t *testing.T) {
	m := mirroredConditions()[0]
	condition := func(status corev1.ConditionStatus, reason string) *corev1.NodeCondition {
		return &corev1.NodeCondition{Status: status, Reason: reason}
	}
	proven, failed := condition("True", v1alpha1.ReasonVerified), condition("False", v1alpha1.ReasonChecksFailed)
	stale, pending := condition("Unknown", v1alpha1.ReasonHeartbeatStale), condition("False", v1alpha1.ReasonRebootPending)
	awaited := condition("Unknown", v1alpha1.ReasonAwaitingVerification)
	none, mended := fleet.Announcement{}, fleet.Announcement{Kind: corev1.EventTypeNormal, Reason: "DeJittered"}
	broken := fleet.Announcement{Kind: corev1.EventTypeWarning, Reason: "NotDeJittered"}
	lost := fleet.Announcement{Kind: corev1.EventTypeNormal, Reason: "DeJitteredUnknown"}
	cases := map[string]struct {
		before, after *corev1.NodeCondition
		want          fleet.Announcement
	}{
		"unchanged":                          {proven, proven, none},
		"a node joins":                       {nil, awaited, none},
		"a node joins with a stale agent":    {nil, stale, none},
		"a node that joins is proven":        {nil, proven, none},
		"another plan":                       {proven, awaited, none},
		"a reboot is due":                    {awaited, pending, none},
		"the reboot has brought the plan":    {pending, proven, none},
		"the plan is proven":                 {awaited, proven, none},
		"a check fails":                      {proven, failed, broken},
		"a fact is missing after the reboot": {pending, condition("Unknown", v1alpha1.ReasonChecksUnknown), lost},
		"a check fails on a node that came":  {nil, failed, broken},
		"the agent dies":                     {proven, stale, lost},
		"the agent dies with a failure":      {failed, stale, lost},
		"the agent is back":                  {stale, proven, mended},
		"a failure is mended":                {failed, proven, mended},
		"another plan after a failure":       {failed, awaited, none},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, worth := m.announcement(tc.before, tc.after)
			if worth != (tc.want != none) || worth && got != tc.want {
				t.Errorf("announcement() = %+v, %t, want %+v", got, worth, tc.want)
			}
		})
	}
}

// TestIsPassing: each thing that a condition says counts, and only what every node goes through may wait.
func TestIsPassing(t *testing.T) {
	condition := func(status corev1.ConditionStatus, reason, message string) *corev1.NodeCondition {
		return &corev1.NodeCondition{Status: status, Reason: reason, Message: message}
	}
	failed := condition("False", v1alpha1.ReasonChecksFailed, "a")
	pending, awaited := condition("False", v1alpha1.ReasonRebootPending, "b"), condition("Unknown", v1alpha1.ReasonAwaitingVerification, "c")
	for name, tc := range map[string]struct {
		shown, next *corev1.NodeCondition
		want        bool
	}{
		"the same":                    {failed, condition("False", v1alpha1.ReasonChecksFailed, "a"), true},
		"another message":             {failed, condition("False", v1alpha1.ReasonChecksFailed, "x"), false},
		"another reason":              {failed, condition("False", v1alpha1.ReasonHeartbeatStale, "a"), false},
		"another status":              {failed, condition("Unknown", v1alpha1.ReasonChecksFailed, "a"), false},
		"from one state to another":   {awaited, pending, true},
		"from a failure to a state":   {failed, pending, false},
		"from a state to a failure":   {pending, failed, false},
		"a state is shown first":      {nil, awaited, true},
		"a failure is shown first":    {nil, failed, false},
		"True is never on the way":    {pending, condition("True", v1alpha1.ReasonRebootPending, "b"), false},
		"True is shown at once first": {nil, condition("True", v1alpha1.ReasonVerified, "v"), false},
	} {
		if got := isPassing(tc.shown, tc.next); got != tc.want {
			t.Errorf("%s: isPassing() = %t, want %t", name, got, tc.want)
		}
	}
}

// TestConditionsMoved looks at what the operator's own conditions say, and not at times nor at the conditions of others.
func TestConditionsMoved(t *testing.T) {
	node := func(status corev1.ConditionStatus, at int64, others ...corev1.NodeCondition) *corev1.Node {
		n := objects.MakeNode("n")
		own := corev1.NodeCondition{
			Type: v1alpha1.NodeConditionDeJittered, Status: status, Reason: "R", Message: "m", LastTransitionTime: metav1.NewTime(time.Unix(at, 0)),
		}
		n.Status.Conditions = slices.Concat(others, []corev1.NodeCondition{own})
		return n
	}
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue}
	for name, tc := range map[string]struct {
		before, after *corev1.Node
		want          bool
	}{
		"the same":          {node("True", 1), node("True", 1), false},
		"another time":      {node("True", 1), node("True", 2), false},
		"that of another":   {node("True", 1), node("True", 1, ready), false},
		"another status":    {node("True", 1), node("False", 1), true},
		"none any more":     {node("True", 1), objects.MakeNode("n"), true},
		"the first":         {objects.MakeNode("n"), node("True", 1), true},
		"none, as before":   {objects.MakeNode("n"), objects.MakeNode("n"), false},
		"none of ours ever": {objects.MakeNode("n"), objects.MakeNode("m"), false},
	} {
		if got := ConditionsMoved(tc.before, tc.after); got != tc.want {
			t.Errorf("%s: ConditionsMoved() = %t, want %t", name, got, tc.want)
		}
	}
}

// TestPassingWithoutAReport: a Node of which no agent has reported has nothing to show, now or later.
func TestPassingWithoutAReport(t *testing.T) {
	w := &World{Node: objects.MakeNode("n", "role", "trading")}
	if left := w.Passing(&Decision{Status: metav1.ConditionTrue}, noon()); left != 0 {
		t.Errorf("Passing() = %s, want 0", left)
	}
}
