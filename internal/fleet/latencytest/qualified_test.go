// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencytest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

func TestQualified(t *testing.T) {
	type world struct {
		*Subject
		tests []v1alpha1.LatencyTest
	}
	// rest is a second test, which measured another kernel at this time after the first one.
	rest := func(w *world, later time.Duration, maximum int64) *v1alpha1.LatencyTest {
		w.Profile.Spec.Verification.Qualification.Tests = append(w.Profile.Spec.Verification.Qualification.Tests, v1alpha1.LatencyTestReference{Namespace: "tests", Name: "rest"})
		w.tests = append(w.tests, measuredTest("rest", w.Subject, maximum))
		test := &w.tests[len(w.tests)-1]
		measured := test.Status.Results[0].Measured
		measured.CompletedTime, measured.Fingerprint.Kernel = metav1.NewTime(measured.CompletedTime.Add(later)), "6.13"
		return test
	}
	cases := map[string]struct {
		change func(*world)
		// want is the test and the kernel that it measured; "" for none.
		want, wantKernel string
	}{
		"nothing is asked for":     {func(w *world) { w.Profile.Spec.Verification.Qualification = nil }, "", ""},
		"passed":                   {func(*world) {}, "quiet", "6.12"},
		"passed, on a kernel ago":  {func(w *world) { w.Report.Status.Inventory.KernelRelease = "6.14" }, "quiet", "6.12"},
		"passed, with a plan ago":  {func(w *world) { w.Report.Spec.PlanHash = "plan-2" }, "quiet", "6.12"},
		"passed, and expired":      {func(w *world) { w.tests[0].Spec.ExpireAfterHours = 1 }, "quiet", "6.12"},
		"failed":                   {func(w *world) { w.tests[0].Spec.Budget.MaximumNanoseconds = 1 }, "", ""},
		"no budget":                {func(w *world) { w.tests[0].Spec.Budget = nil }, "", ""},
		"other parameters":         {func(w *world) { w.tests[0].Spec.DurationSeconds = 7 }, "", ""},
		"not measured":             {func(w *world) { w.tests[0].Status.Results[0].Measured = nil }, "", ""},
		"a node that was not seen": {func(w *world) { w.tests[0].Status.Results = nil }, "", ""},
		"a test that is not there": {func(w *world) { w.tests = nil }, "", ""},
		"a test of other nodes":    {func(w *world) { w.tests[0].Spec.Nodes.Names = []string{"n2"} }, "", ""},
		"a newer one":              {func(w *world) { rest(w, time.Minute, 9_000) }, "rest", "6.13"},
		"an older one":             {func(w *world) { rest(w, -time.Minute, 9_000) }, "quiet", "6.12"},
		"one at the same time":     {func(w *world) { rest(w, 0, 9_000) }, "quiet", "6.12"},
		"a newer one that failed":  {func(w *world) { rest(w, time.Minute, 90_000) }, "quiet", "6.12"},
		"a newer one of other nodes": {
			func(w *world) { rest(w, time.Minute, 9_000).Spec.Nodes.Names = []string{"n2"} }, "quiet", "6.12",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			subject, tests := asked(9_000)
			w := &world{subject, tests}
			tc.change(w)
			got := Qualified(w.Subject, w.tests)
			if tc.want == "" {
				if got != nil {
					t.Errorf("%+v, want none", got)
				}
				return
			}
			want := &v1alpha1.NodeQualification{Test: v1alpha1.LatencyTestReference{Namespace: "tests", Name: tc.want}}
			for i := range w.tests {
				if measured := w.tests[i].Status.Results[0].Measured; w.tests[i].Name == tc.want {
					want.CompletedTime, want.Fingerprint = measured.CompletedTime, measured.Fingerprint
				}
			}
			if diff := cmp.Diff(want, got); diff != "" || got.Fingerprint.Kernel != tc.wantKernel {
				t.Errorf("kernel %s, want %s; (-want +got):\n%s", got.Fingerprint.Kernel, tc.wantKernel, diff)
			}
		})
	}
}

// TestManagementInterruptsOfQualified: they are those of the newest measurement that asked, and the node is compared with the newest of all.
func TestManagementInterruptsOfQualified(t *testing.T) {
	counts := func(n int64) *v1alpha1.LatencyManagementInterrupts {
		return &v1alpha1.LatencyManagementInterrupts{State: v1alpha1.StateCounted, Count: &n}
	}
	type smis = *v1alpha1.LatencyManagementInterrupts
	for name, tc := range map[string]struct {
		older, newer, want smis
		newerMaximum       int64
	}{
		"nobody asked":                {nil, nil, nil, 9_000},
		"both asked":                  {counts(0), counts(2), counts(2), 9_000},
		"the newer one did not ask":   {counts(1), nil, counts(1), 9_000},
		"the newer one does not know": {counts(0), &v1alpha1.LatencyManagementInterrupts{State: v1alpha1.StateUnknown, UnknownReason: "no"}, &v1alpha1.LatencyManagementInterrupts{State: v1alpha1.StateUnknown, UnknownReason: "no"}, 9_000},
		"the newer one failed":        {counts(1), counts(2), counts(1), 90_000},
	} {
		subject, tests := asked(9_000)
		subject.Profile.Spec.Verification.Qualification.Tests = append(subject.Profile.Spec.Verification.Qualification.Tests, v1alpha1.LatencyTestReference{Namespace: "tests", Name: "rest"})
		tests = append(tests, measuredTest("rest", subject, tc.newerMaximum))
		older, newer := tests[0].Status.Results[0].Measured, tests[1].Status.Results[0].Measured
		older.ManagementInterrupts, newer.ManagementInterrupts = tc.older, tc.newer
		newer.CompletedTime = metav1.NewTime(newer.CompletedTime.Add(time.Minute))
		if diff := cmp.Diff(tc.want, Qualified(subject, tests).ManagementInterrupts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestQualifyIsWhatStaleIsJudgedBy: what the operator writes for the agent differs from what the node is exactly where the standing says
// that the node has changed.
func TestQualifyIsWhatStaleIsJudgedBy(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.LowLatencyNode)
		want   State
	}{
		"nothing":              {func(*v1alpha1.LowLatencyNode) {}, StatePassed},
		"the kernel":           {func(r *v1alpha1.LowLatencyNode) { r.Status.Inventory.KernelRelease = "6.13" }, StateStale},
		"mitigations are told": {func(r *v1alpha1.LowLatencyNode) { r.Status.Inventory.MitigationsHash = "m" }, StatePassed},
		"the plan":             {func(r *v1alpha1.LowLatencyNode) { r.Spec.PlanHash = "plan-2" }, StateAwaited},
	} {
		t.Run(name, func(t *testing.T) {
			subject, tests := asked(9_000)
			tc.change(subject.Report)
			if standings := Standings(subject, tests, begin()); standings[0].State != tc.want {
				t.Fatalf("%+v", standings)
			}
			members := []fleet.Member{{Node: subject.Node, Report: subject.Report}}
			Qualify(&fleet.ProfileWorld{Profile: subject.Profile}, members, tests)
			now := qualification.FingerprintOfInventory(subject.Report.Spec.PlanHash, subject.Report.Status.Inventory, subject.Report.Status.BypassNICs)
			changed := qualification.HostChanges(members[0].Qualification.Fingerprint, now)
			if (len(changed) > 0) != (tc.want == StateStale) {
				t.Errorf("the agent sees that %v changed", changed)
			}
		})
	}
	subject, tests := asked(9_000)
	unknown := []fleet.Member{{Node: subject.Node, Report: &v1alpha1.LowLatencyNode{}, Qualification: &v1alpha1.NodeQualification{}}}
	if Qualify(&fleet.ProfileWorld{Profile: subject.Profile}, unknown, tests); unknown[0].Qualification != nil {
		t.Errorf("a node without an inventory is qualified: %+v", unknown[0].Qualification)
	}
}
