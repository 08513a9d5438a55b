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
	condition := func(status corev1.ConditionStatus) *corev1.NodeCondition {
		return &corev1.NodeCondition{Status: status}
	}
	cases := map[string]struct {
		before, after *corev1.NodeCondition
		want          fleet.Announcement
	}{
		"unchanged":        {condition("True"), condition("True"), fleet.Announcement{}},
		"first unknown":    {nil, condition("Unknown"), fleet.Announcement{}},
		"first true":       {nil, condition("True"), fleet.Announcement{Kind: corev1.EventTypeNormal, Reason: "DeJittered"}},
		"true to false":    {condition("True"), condition("False"), fleet.Announcement{Kind: corev1.EventTypeWarning, Reason: "NotDeJittered"}},
		"false to unknown": {condition("False"), condition("Unknown"), fleet.Announcement{Kind: corev1.EventTypeNormal, Reason: "DeJitteredUnknown"}},
		"unknown to true":  {condition("Unknown"), condition("True"), fleet.Announcement{Kind: corev1.EventTypeNormal, Reason: "DeJittered"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, worth := m.announcement(tc.before, tc.after)
			if got != tc.want || worth != (tc.want != fleet.Announcement{}) {
				t.Errorf("announcement() = %+v, %v, want %+v", got, worth, tc.want)
			}
		})
	}
}
