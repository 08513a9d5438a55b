// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package gate

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

// askedWorld is a node in boot b1 that has proven its plan, of a profile with a taint that asks for tests/quiet, which has measured 9 µs.
func askedWorld(t *testing.T) *World {
	t.Helper()
	report := objects.MakeReport("n", "trading").Verified("h", "TTT").Inventory(&v1alpha1.Inventory{KernelRelease: "6.12"}).Obj()
	report.Status.BootID = "b1"
	node := objects.MakeNode("n", "role", "trading")
	node.Status.NodeInfo.BootID = "b1"
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	node.Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintUnverified, Effect: corev1.TaintEffectNoSchedule}}
	profile := objects.MakeProfile("trading").Obj()
	profile.Spec.Verification.Gate = v1alpha1.GateTaint
	profile.Spec.Verification.Qualification = &v1alpha1.Qualification{Tests: []v1alpha1.LatencyTestReference{{Namespace: "tests", Name: "quiet"}}}
	test := v1alpha1.LatencyTest{ObjectMeta: metav1.ObjectMeta{Namespace: "tests", Name: "quiet"}}
	test.Spec = v1alpha1.LatencyTestSpec{
		Kind: v1alpha1.LatencyTestJitter, Nodes: v1alpha1.LatencyTestNodes{Profile: "trading"}, Budget: &v1alpha1.LatencyBudget{MaximumNanoseconds: 10_000},
	}
	test.Status.Results = []v1alpha1.LatencyTestResult{{Node: "n", Activity: v1alpha1.LatencyIdle, Measured: &v1alpha1.LatencyMeasurement{
		CompletedTime: metav1.NewTime(noon()), Fingerprint: qualification.FingerprintOf(qualification.Told{Kernel: node.Status.NodeInfo.KernelVersion}, report), CPUs: "2",
		ParametersHash: qualification.ParametersOf(&test.Spec).Hash(), MaximumNanoseconds: 9_000,
	}}}
	return &World{
		Node: node, Report: report, Current: report, Profiles: []v1alpha1.LowLatencyNodeProfile{*profile}, Tests: []v1alpha1.LatencyTest{test},
	}
}

func unmeasured(w *World) { w.Tests[0].Status.Results = nil }

func missing(w *World) { w.Tests = nil }

func otherKernel(w *World) { w.Report.Status.Inventory.KernelRelease = "9.9" }

func failing(w *World) { w.Tests[0].Spec.Budget.MaximumNanoseconds = 1 }

// opened is a node whose gate was open in this boot.
func opened(w *World) {
	w.Node.Annotations = map[string]string{v1alpha1.AnnotationStarted: "b1", v1alpha1.AnnotationQualified: "b1"}
	w.Node.Spec.Taints = nil
}

// shownOpen is a node of which the condition alone says that its gate was open.
func shownOpen(w *World) {
	delete(w.Node.Annotations, v1alpha1.AnnotationQualified)
	w.Node.Status.Conditions = append(w.Node.Status.Conditions, corev1.NodeCondition{Type: v1alpha1.NodeConditionReady, Status: corev1.ConditionTrue})
}

func TestQualification(t *testing.T) {
	cases := map[string]struct {
		changes    []func(*World)
		wantReason string
		wantText   string
		// wantTaint says that pods are kept off, wantNote what is noted.
		wantTaint bool
		wantNote  string
	}{
		"passed": {nil, v1alpha1.ReasonVerified, "verified for plan h; LatencyTest tests/quiet: within the budget", false, "b1"},
		"waits the first time": {
			[]func(*World){unmeasured}, v1alpha1.ReasonAwaitingQualification, "LatencyTest tests/quiet has not measured the node yet", true, "",
		},
		"a wrong name, and never open": {[]func(*World){missing}, v1alpha1.ReasonQualificationMissing, "tests/quiet, which", true, ""},
		"failed":                       {[]func(*World){failing}, v1alpha1.ReasonQualificationFailed, "9 µs, more than 1 ns", true, ""},
		"stale":                        {[]func(*World){otherKernel}, v1alpha1.ReasonQualificationStale, "the kernel (9.9, was 6.12)", true, ""},
		"open, and the test is asked for now": {
			[]func(*World){opened, unmeasured}, v1alpha1.ReasonVerified, "it stays open in this boot, although LatencyTest tests/quiet has not measured", false, "b1",
		},
		"open, and a wrong name is asked for": {[]func(*World){opened, missing}, v1alpha1.ReasonVerified, "it stays open in this boot, although", false, "b1"},
		"open, and the test changes": {
			[]func(*World){opened, func(w *World) { w.Tests[0].Spec.DurationSeconds = 7 }}, v1alpha1.ReasonVerified, "measures something else now", false, "b1",
		},
		"open, and fails":               {[]func(*World){opened, failing}, v1alpha1.ReasonQualificationFailed, "9 µs", true, ""},
		"open, and a driver is another": {[]func(*World){opened, otherKernel}, v1alpha1.ReasonQualificationStale, "stale", true, ""},
		"open in the boot before": {
			[]func(*World){opened, unmeasured, func(w *World) { w.Node.Annotations[v1alpha1.AnnotationQualified] = "b0" }},
			v1alpha1.ReasonAwaitingQualification, "has not measured", true, "b0",
		},
		"open before anybody noted it": {
			[]func(*World){opened, shownOpen, missing}, v1alpha1.ReasonVerified, "it stays open in this boot, although", false, "b1",
		},
		"open before anybody noted it, and fails": {[]func(*World){opened, shownOpen, failing}, v1alpha1.ReasonQualificationFailed, "9 µs", true, ""},
		"a check fails, and the test, too": {
			[]func(*World){opened, failing, func(w *World) {
				w.Report.Status.Conditions[1].Status, w.Report.Status.Conditions[1].Reason = metav1.ConditionFalse, v1alpha1.ReasonChecksFailed
			}},
			v1alpha1.ReasonChecksFailed, "", true, "",
		},
		"a check fails, and the test has gone": {
			[]func(*World){opened, missing, func(w *World) {
				w.Report.Status.Conditions[1].Status, w.Report.Status.Conditions[1].Reason = metav1.ConditionFalse, v1alpha1.ReasonChecksFailed
			}},
			v1alpha1.ReasonChecksFailed, "", true, "b1",
		},
		"the profile only reports": {
			[]func(*World){unmeasured, func(w *World) { w.Profiles[0].Spec.Verification.Gate = v1alpha1.GateReportOnly }},
			v1alpha1.ReasonAwaitingQualification, "", false, "",
		},
		"the profile only reports, and asks for nothing": {
			[]func(*World){func(w *World) { w.Profiles[0].Spec.Verification = v1alpha1.VerificationSpec{} }}, v1alpha1.ReasonVerified, "", false, "",
		},
		"a kubelet that does not say its boot": {
			[]func(*World){opened, missing, func(w *World) {
				w.Node.Status.NodeInfo.BootID, w.Node.Annotations[v1alpha1.AnnotationQualified] = "", ""
			}}, v1alpha1.ReasonQualificationMissing, "", true, "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := askedWorld(t)
			for _, change := range tc.changes {
				change(w)
			}
			d := w.Decide(noon())
			if d.Reason != tc.wantReason || !strings.Contains(d.Message, tc.wantText) || d.IsOpen() != (tc.wantReason == v1alpha1.ReasonVerified) {
				t.Errorf("%+v", d)
			}
			marked, _ := w.Marked(d)
			if tainted := slices.ContainsFunc(marked.Spec.Taints, isOurTaint); tainted != tc.wantTaint {
				t.Errorf("tainted is %t", tainted)
			}
			if note := marked.Annotations[v1alpha1.AnnotationQualified]; note != tc.wantNote {
				t.Errorf("the note is %q, want %q", note, tc.wantNote)
			}
		})
	}
}

// TestQualificationIsRememberedNoLongerThanItHolds: a test that has failed and is then deleted leaves the gate closed.
func TestQualificationIsRememberedNoLongerThanItHolds(t *testing.T) {
	w := askedWorld(t)
	opened(w)
	failing(w)
	w.Node, _ = w.Marked(w.Decide(noon()))
	missing(w)
	if d := w.Decide(noon()); d.Reason != v1alpha1.ReasonQualificationMissing {
		t.Errorf("%+v", d)
	}
}

func TestQualificationExpires(t *testing.T) {
	w := askedWorld(t)
	w.Tests[0].Spec.ExpireAfterHours = 2
	if d := w.Decide(noon().Add(time.Hour)); !d.IsOpen() || d.RetryAfter != time.Hour {
		t.Errorf("%+v", d)
	}
	if d := w.Decide(noon().Add(2 * time.Hour)); d.Reason != v1alpha1.ReasonQualificationStale {
		t.Errorf("%+v", d)
	}
}
