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
			if !worth {
				got = none
			}
			if got != tc.want {
				t.Errorf("announcement() = %+v, want %+v", got, tc.want)
			}
		})
	}
}
