// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package gate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

func ourTaint() corev1.Taint {
	return corev1.Taint{Key: v1alpha1.TaintUnverified, Effect: corev1.TaintEffectNoSchedule}
}

func TestIsTainted(t *testing.T) {
	cases := map[string]struct {
		profile *objects.Profile
		report  *v1alpha1.LowLatencyNode
		want    bool
		wantWhy string
	}{
		"not selected":              {profile: objects.MakeProfile("other").Gated(), wantWhy: "no profile"},
		"no LowLatencyNode yet":     {profile: objects.MakeProfile("trading").Gated(), want: true, wantWhy: "Applied is Unknown: the agent has not reported"},
		"another profile":           {profile: objects.MakeProfile("other").Gated(), report: objects.MakeReport("n", "trading").Verified("h", "FFF").Obj(), wantWhy: "no profile"},
		"the gate only reports":     {profile: objects.MakeProfile("trading"), report: objects.MakeReport("n", "trading").Verified("h", "FFF").Obj(), wantWhy: "spec.verification.gate"},
		"nothing reported yet":      {profile: objects.MakeProfile("trading").Gated(), report: objects.MakeReport("n", "trading").Obj(), want: true, wantWhy: "Applied is Unknown: the agent has not reported"},
		"everything proven":         {profile: objects.MakeProfile("trading").Gated(), report: objects.MakeReport("n", "trading").Verified("h", "TTT").Obj(), wantWhy: "verified for plan h"},
		"not applied":               {profile: objects.MakeProfile("trading").Gated(), report: objects.MakeReport("n", "trading").Verified("h", "FTT").Obj(), want: true, wantWhy: "Applied is False"},
		"not de-jittered":           {profile: objects.MakeProfile("trading").Gated(), report: objects.MakeReport("n", "trading").Verified("h", "TFT").Obj(), want: true, wantWhy: "DeJittered is False: DeJittered is disproven by IRQ 142"},
		"alignment is unknown":      {profile: objects.MakeProfile("trading").Gated(), report: objects.MakeReport("n", "trading").Verified("h", "TTU").Obj(), want: true, wantWhy: "NUMAAligned is Unknown"},
		"verified for another plan": {profile: objects.MakeProfile("trading").Gated(), report: staleReport(), want: true, wantWhy: "has not verified plan new"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &World{Node: objects.MakeNode("n", "role", "trading"), Report: tc.report, Current: tc.report, Profiles: []v1alpha1.LowLatencyNodeProfile{*tc.profile.Obj()}}
			got, why := w.isTainted(w.Decide(noon()))
			if got != tc.want || !strings.Contains(why, tc.wantWhy) {
				t.Errorf("isTainted() = %v, %q, want %v, %q", got, why, tc.want, tc.wantWhy)
			}
		})
	}
}

// TestTaintOfAProfileThatIsDeleted goes from each node as soon as that has its plan no more, and from none before.
func TestTaintOfAProfileThatIsDeleted(t *testing.T) {
	profile := objects.MakeProfile("trading").Gated().Obj()
	profile.DeletionTimestamp = new(metav1.NewTime(noon()))
	for name, tc := range map[string]struct {
		report *v1alpha1.LowLatencyNode
		want   bool
	}{
		"given back":            {objects.MakeReport("n", "trading").Verified("h", "FFF").Obj(), false},
		"it has its plan":       {objects.MakeReport("n", "trading").Verified("h", "TFT").Obj(), true},
		"nobody knows":          {objects.MakeReport("n", "trading").Verified("h", "UUU").Obj(), true},
		"verified, as it waits": {objects.MakeReport("n", "trading").Verified("h", "TTT").Obj(), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := &World{Node: objects.MakeNode("n", "role", "trading"), Report: tc.report, Current: tc.report, Profiles: []v1alpha1.LowLatencyNodeProfile{*profile}}
			if got, why := w.isTainted(w.Decide(noon())); got != tc.want {
				t.Errorf("isTainted() = %v, %q, want %v", got, why, tc.want)
			}
		})
	}
}

// staleReport speaks of a plan that the node is not to have any more.
func staleReport() *v1alpha1.LowLatencyNode {
	report := objects.MakeReport("n", "trading").Verified("old", "TTT").Obj()
	report.Spec.PlanHash = "new"
	return report
}

func TestTaintsWith(t *testing.T) {
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
			if diff := cmp.Diff(tc.want, taintsWith(tc.have, tc.tainted)); diff != "" {
				t.Errorf("taints mismatch (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCloses: a gate closes where the taint is wanted and is not there in any effect.
func TestCloses(t *testing.T) {
	profile := *objects.MakeProfile("trading").Gated().Obj()
	for name, tc := range map[string]struct {
		statuses string
		taints   []corev1.Taint
		want     bool
	}{
		"wanted and missing":      {"TFT", nil, true},
		"wanted and there":        {"TFT", []corev1.Taint{ourTaint()}, false},
		"not wanted, and missing": {"TTT", nil, false},
		"not wanted, and there":   {"TTT", []corev1.Taint{ourTaint()}, false},
	} {
		report := objects.MakeReport("n", "trading").Verified("h", tc.statuses).Obj()
		w := &World{Node: objects.MakeNode("n", "role", "trading"), Report: report, Current: report, Profiles: []v1alpha1.LowLatencyNodeProfile{profile}}
		w.Node.Spec.Taints = tc.taints
		if got := w.Closes(w.Decide(noon())); got != tc.want {
			t.Errorf("%s: Closes() = %t, want %t", name, got, tc.want)
		}
	}
}

// TestMarkedTellsOfTheTaint: that the gate closed or opened is told when the taint moves, with what it means.
func TestMarkedTellsOfTheTaint(t *testing.T) {
	profile := *objects.MakeProfile("trading").Gated().Obj()
	for name, tc := range map[string]struct {
		statuses string
		taints   []corev1.Taint
		want     string
	}{
		"closed":     {"TFT", nil, "Warning GateClosed"},
		"stays shut": {"TFT", []corev1.Taint{ourTaint()}, ""},
		"opened":     {"TTT", []corev1.Taint{ourTaint()}, "Normal GateOpened"},
		"stays open": {"TTT", nil, ""},
	} {
		report := objects.MakeReport("n", "trading").Verified("h", tc.statuses).Obj()
		w := &World{Node: objects.MakeNode("n", "role", "trading"), Report: report, Current: report, Profiles: []v1alpha1.LowLatencyNodeProfile{profile}}
		w.Node.Spec.Taints = tc.taints
		_, about := w.Marked(w.Decide(noon()))
		got := ""
		if about != nil {
			got = about.Kind + " " + about.Reason
		}
		if got != tc.want {
			t.Errorf("%s: told %q, want %q", name, got, tc.want)
		}
	}
}

// TestMarkedIsSilentAboutWhatIsOrdinary: a fleet that reboots tells nothing of each node, and the end of a failure is told.
func TestMarkedIsSilentAboutWhatIsOrdinary(t *testing.T) {
	profile := *objects.MakeProfile("trading").Gated().Obj()
	shut := func(reason string) *World {
		report := objects.MakeReport("n", "trading").Verified("h", "TTT").Obj()
		w := &World{Node: objects.MakeNode("n", "role", "trading"), Report: report, Current: report, Profiles: []v1alpha1.LowLatencyNodeProfile{profile}}
		w.Node.Spec.Taints = []corev1.Taint{ourTaint()}
		w.Node.Status.Conditions = []corev1.NodeCondition{{Type: v1alpha1.NodeConditionReady, Status: corev1.ConditionFalse, Reason: reason}}
		return w
	}
	for reason, wantTold := range map[string]bool{
		v1alpha1.ReasonRebootPending: false, v1alpha1.ReasonAwaitingVerification: false, v1alpha1.ReasonAwaitingPlugins: false,
		v1alpha1.ReasonNodeNotReady: false, v1alpha1.ReasonChecksFailed: true, v1alpha1.ReasonSettling: true,
	} {
		w := shut(reason)
		next, about := w.Marked(w.Decide(noon()))
		if len(next.Spec.Taints) != 0 || (about != nil) != wantTold {
			t.Errorf("shut by %s: taints %v, told %+v", reason, next.Spec.Taints, about)
		}
	}
	next, about := shut(v1alpha1.ReasonRebootPending).Marked(nil)
	if len(next.Spec.Taints) != 0 || about == nil || about.Reason != "GateOpened" {
		t.Errorf("a node that no profile governs: taints %v, told %+v", next.Spec.Taints, about)
	}
}

// TestMarkedNotesTheStart: for which boot the device plugins have advertised stands on the Node as long as that is so.
func TestMarkedNotesTheStart(t *testing.T) {
	for name, tc := range map[string]struct {
		before   string
		decision *Decision
		want     string
	}{
		"started in this boot":        {"", &Decision{Status: metav1.ConditionTrue}, "b2"},
		"started in a former boot":    {"b1", &Decision{Status: metav1.ConditionTrue}, "b2"},
		"failed since it has started": {"b1", &Decision{Status: metav1.ConditionFalse}, "b2"},
		"starts":                      {"b1", &Decision{Status: metav1.ConditionFalse, Waiting: "the kubelet advertises 0 of 1"}, ""},
		"no profile governs it":       {"b1", nil, ""},
	} {
		w := &World{Node: objects.MakeNode("n"), Report: objects.MakeReport("n", "trading").Obj()}
		w.Node.Status.NodeInfo.BootID = "b2"
		if tc.before != "" {
			w.Node.Annotations = map[string]string{v1alpha1.AnnotationStarted: tc.before}
		}
		next, _ := w.Marked(tc.decision)
		if got := next.Annotations[v1alpha1.AnnotationStarted]; got != tc.want {
			t.Errorf("%s: the note is %q, want %q", name, got, tc.want)
		}
		if got := w.Node.Annotations[v1alpha1.AnnotationStarted]; got != tc.before {
			t.Errorf("%s: the note on the given node became %q", name, got)
		}
	}
}

// TestMarkedClosesInSilence: what every node goes through is told of none; a check that failed is.
func TestMarkedClosesInSilence(t *testing.T) {
	profile := *objects.MakeProfile("trading").Gated().Obj()
	for name, tc := range map[string]struct {
		decision Decision
		wantTold bool
	}{
		"the plan is another":               {Decision{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonAwaitingVerification}, false},
		"its plugins have not registered":   {Decision{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonAwaitingPlugins, Waiting: "0 of 1"}, false},
		"it starts, and a check has failed": {Decision{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonChecksFailed, Waiting: "0 of 1"}, false},
		"a check has failed":                {Decision{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonChecksFailed}, true},
	} {
		w := &World{Node: objects.MakeNode("n", "role", "trading"), Report: objects.MakeReport("n", "trading").Obj(), Profiles: []v1alpha1.LowLatencyNodeProfile{profile}}
		next, about := w.Marked(&tc.decision)
		if len(next.Spec.Taints) != 1 || (about != nil) != tc.wantTold {
			t.Errorf("%s: taints %v, told %+v", name, next.Spec.Taints, about)
		}
	}
}
