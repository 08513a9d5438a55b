// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/gate"
)

func ourTaint() corev1.Taint {
	return corev1.Taint{Key: v1alpha1.TaintUnverified, Effect: corev1.TaintEffectNoSchedule}
}

func TestIsGated(t *testing.T) {
	cases := map[string]struct {
		profile *profileWrapper
		report  *v1alpha1.LowLatencyNode
		want    bool
		wantWhy string
	}{
		"not selected":              {profile: makeProfile("other").gated(), wantWhy: "no profile"},
		"no LowLatencyNode yet":     {profile: makeProfile("trading").gated(), want: true, wantWhy: "Applied is Unknown: the agent has not reported"},
		"another profile":           {profile: makeProfile("other").gated(), report: makeReport("n", "trading").verified("h", "FFF").obj(), wantWhy: "no profile"},
		"the gate only reports":     {profile: makeProfile("trading"), report: makeReport("n", "trading").verified("h", "FFF").obj(), wantWhy: "spec.verification.gate"},
		"nothing reported yet":      {profile: makeProfile("trading").gated(), report: makeReport("n", "trading").obj(), want: true, wantWhy: "Applied is Unknown: the agent has not reported"},
		"everything proven":         {profile: makeProfile("trading").gated(), report: makeReport("n", "trading").verified("h", "TTT").obj(), wantWhy: "verified for plan h"},
		"not applied":               {profile: makeProfile("trading").gated(), report: makeReport("n", "trading").verified("h", "FTT").obj(), want: true, wantWhy: "Applied is False"},
		"not de-jittered":           {profile: makeProfile("trading").gated(), report: makeReport("n", "trading").verified("h", "TFT").obj(), want: true, wantWhy: "DeJittered is False: DeJittered is disproven by IRQ 142"},
		"alignment is unknown":      {profile: makeProfile("trading").gated(), report: makeReport("n", "trading").verified("h", "TTU").obj(), want: true, wantWhy: "NUMAAligned is Unknown"},
		"verified for another plan": {profile: makeProfile("trading").gated(), report: staleReport(), want: true, wantWhy: "has not verified plan new"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &nodeWorld{node: makeNode("n", "role", "trading"), report: tc.report, profiles: []v1alpha1.LowLatencyNodeProfile{*tc.profile.obj()}}
			got, why := isGated(w, newNodeReconciler(noon()).gateOf(w))
			if got != tc.want || !strings.Contains(why, tc.wantWhy) {
				t.Errorf("isGated() = %v, %q, want %v, %q", got, why, tc.want, tc.wantWhy)
			}
		})
	}
}

// staleReport speaks of a plan that the node is not to have any more.
func staleReport() *v1alpha1.LowLatencyNode {
	report := makeReport("n", "trading").verified("old", "TTT").obj()
	report.Spec.PlanHash = "new"
	return report
}

func TestGatedTaints(t *testing.T) {
	other := corev1.Taint{Key: "dedicated", Effect: corev1.TaintEffectNoExecute}
	wrong := corev1.Taint{Key: v1alpha1.TaintUnverified, Effect: corev1.TaintEffectPreferNoSchedule}
	cases := map[string]struct {
		have    []corev1.Taint
		tainted bool
		want    []corev1.Taint
	}{
		"put on":            {[]corev1.Taint{other}, true, []corev1.Taint{other, ourTaint()}},
		"is there":          {[]corev1.Taint{ourTaint(), other}, true, []corev1.Taint{ourTaint(), other}},
		"of another effect": {[]corev1.Taint{wrong}, true, []corev1.Taint{ourTaint()}},
		"taken away":        {[]corev1.Taint{ourTaint(), other}, false, []corev1.Taint{other}},
		"is not there":      {[]corev1.Taint{other}, false, []corev1.Taint{other}},
		"none":              {nil, false, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, gatedTaints(tc.have, tc.tainted)); diff != "" {
				t.Errorf("taints mismatch (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNodeConditions(t *testing.T) {
	w := &nodeWorld{node: makeNode("n"), report: makeReport("n", "trading").verified("h", "TFT").obj()}
	want := []corev1.NodeCondition{
		{Type: "LowLatencyDeJittered", Status: "False", Reason: v1alpha1.ReasonChecksFailed, Message: "DeJittered is disproven by IRQ 142"},
		{Type: "LowLatencyNUMAAligned", Status: "True", Reason: v1alpha1.ReasonVerified, Message: "proven"},
		{Type: "LowLatencyReady", Status: "False", Reason: v1alpha1.ReasonSettling, Message: "wait"},
	}
	decision := &gate.Decision{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonSettling, Message: "wait"}
	if diff := cmp.Diff(want, nodeConditions(w, decision)); diff != "" {
		t.Errorf("conditions mismatch (-want +got):\n%s", diff)
	}
	if got := nodeConditions(&nodeWorld{node: makeNode("n")}, decision); len(got) > 0 {
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
		want          announcement
	}{
		"unchanged":        {condition("True"), condition("True"), announcement{}},
		"first unknown":    {nil, condition("Unknown"), announcement{}},
		"first true":       {nil, condition("True"), announcement{corev1.EventTypeNormal, "DeJittered"}},
		"true to false":    {condition("True"), condition("False"), announcement{corev1.EventTypeWarning, "NotDeJittered"}},
		"false to unknown": {condition("False"), condition("Unknown"), announcement{corev1.EventTypeNormal, "DeJitteredUnknown"}},
		"unknown to true":  {condition("Unknown"), condition("True"), announcement{corev1.EventTypeNormal, "DeJittered"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, worth := nodeAnnouncement(tc.before, tc.after, m)
			if got != tc.want || worth != (tc.want != announcement{}) {
				t.Errorf("nodeAnnouncement() = %+v, %v, want %+v", got, worth, tc.want)
			}
		})
	}
}

func TestProfileAnnouncement(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, reason string) *metav1.Condition {
		return &metav1.Condition{Type: kind, Status: status, Reason: reason}
	}
	cases := map[string]struct {
		before, after *metav1.Condition
		want          announcement
		wantNone      bool
	}{
		"ready at last":         {condition("Ready", "False", "RollingOut"), condition("Ready", "True", "Verified"), announcement{corev1.EventTypeNormal, "Verified"}, false},
		"no longer ready":       {condition("Ready", "True", "Verified"), condition("Ready", "False", "RollingOut"), announcement{}, true},
		"broken":                {condition("Degraded", "False", "AsExpected"), condition("Degraded", "True", "PoolConflict"), announcement{corev1.EventTypeWarning, "PoolConflict"}, false},
		"broken at once":        {nil, condition("Degraded", "True", "PoolConflict"), announcement{corev1.EventTypeWarning, "PoolConflict"}, false},
		"broken in another way": {condition("Degraded", "True", "PoolConflict"), condition("Degraded", "True", "ChecksFailed"), announcement{corev1.EventTypeWarning, "ChecksFailed"}, false},
		"still broken":          {condition("Degraded", "True", "PoolConflict"), condition("Degraded", "True", "PoolConflict"), announcement{}, true},
		"still fine":            {condition("Degraded", "False", "AsExpected"), condition("Degraded", "False", "AsExpected"), announcement{}, true},
		"mended":                {condition("Degraded", "True", "PoolConflict"), condition("Degraded", "False", "AsExpected"), announcement{corev1.EventTypeNormal, "Recovered"}, false},
		"fine at first":         {nil, condition("Degraded", "False", "AsExpected"), announcement{}, true},
		"a rollout begins":      {condition("Progressing", "False", "RolloutComplete"), condition("Progressing", "True", "RollingOut"), announcement{corev1.EventTypeNormal, "RollingOut"}, false},
		"a rollout follows":     {condition("Progressing", "True", "AwaitingInventory"), condition("Progressing", "True", "RollingOut"), announcement{corev1.EventTypeNormal, "RollingOut"}, false},
		"a rollout goes on":     {condition("Progressing", "True", "RollingOut"), condition("Progressing", "True", "RollingOut"), announcement{}, true},
		"a rollout ends":        {condition("Progressing", "True", "RollingOut"), condition("Progressing", "False", "RolloutComplete"), announcement{}, true},
		"de-jittered":           {condition("DeJittered", "False", "x"), condition("DeJittered", "True", "Verified"), announcement{}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, worth := profileAnnouncement(tc.before, tc.after)
			if worth == tc.wantNone || worth && got != tc.want {
				t.Errorf("profileAnnouncement() = %+v, %v, want %+v, %v", got, worth, tc.want, !tc.wantNone)
			}
		})
	}
}

func TestIsAbandoned(t *testing.T) {
	deleting := makeProfile("trading").obj()
	deleting.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)}
	cases := map[string]struct {
		node     *corev1.Node
		profiles []v1alpha1.LowLatencyNodeProfile
		want     bool
	}{
		"no node":                      {nil, []v1alpha1.LowLatencyNodeProfile{*makeProfile("trading").obj()}, true},
		"a profile selects the node":   {makeNode("n", "role", "trading"), []v1alpha1.LowLatencyNodeProfile{*makeProfile("trading").obj()}, false},
		"no profile selects it":        {makeNode("n", "role", "other"), []v1alpha1.LowLatencyNodeProfile{*makeProfile("trading").obj()}, true},
		"the profile is being deleted": {makeNode("n", "role", "trading"), []v1alpha1.LowLatencyNodeProfile{*deleting}, false},
		"no profile":                   {makeNode("n", "role", "trading"), nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &nodeWorld{node: tc.node, report: makeReport("n", "trading").obj(), profiles: tc.profiles}
			if got := w.isAbandoned(); got != tc.want {
				t.Errorf("isAbandoned() = %v, want %v", got, tc.want)
			}
		})
	}
}
