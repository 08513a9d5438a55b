// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package view

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// TestOnlyRun: a result that stands from an earlier run is no pass of the run that was asked for.
func TestOnlyRun(t *testing.T) {
	for run, want := range map[int32]metav1.ConditionStatus{0: metav1.ConditionTrue, 1: metav1.ConditionTrue, 2: metav1.ConditionUnknown} {
		v := OfLatencyTest(&v1alpha1.LatencyTest{Status: v1alpha1.LatencyTestStatus{Results: []v1alpha1.LatencyTestResult{{
			Node: "n1", Outcome: v1alpha1.LatencyPassed, Freshness: v1alpha1.LatencyFresh, Measured: &v1alpha1.LatencyMeasurement{Run: 1},
		}}}})
		v.OnlyRun(run)
		if got := v.Status(); got != want {
			t.Errorf("run %d: %s (%s), want %s", run, got, v.Nodes[0].Message, want)
		}
	}
}

// TestStatusOfUndecidedTests: what a test measured before it was changed, or before it came to a stand, is no pass of it. A failure stays
// one.
func TestStatusOfUndecidedTests(t *testing.T) {
	stalled := func(status metav1.ConditionStatus) func(*v1alpha1.LatencyTest) {
		return func(test *v1alpha1.LatencyTest) {
			test.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: status, Message: "no node"}}
		}
	}
	failed := func(test *v1alpha1.LatencyTest) {
		test.Generation, test.Status.Results[0].Outcome = 3, v1alpha1.LatencyFailed
	}
	cases := map[string]struct {
		change    func(*v1alpha1.LatencyTest)
		want      metav1.ConditionStatus
		undecided string
	}{
		"current":           {func(*v1alpha1.LatencyTest) {}, metav1.ConditionTrue, ""},
		"changed":           {func(test *v1alpha1.LatencyTest) { test.Generation = 3 }, metav1.ConditionUnknown, "the operator has not looked at the last change of the test"},
		"stalled":           {stalled(metav1.ConditionTrue), metav1.ConditionUnknown, "the test stands still: no node"},
		"no longer stalled": {stalled(metav1.ConditionFalse), metav1.ConditionTrue, ""},
		"failed":            {failed, metav1.ConditionFalse, "the operator has not looked at the last change of the test"},
		"without nodes":     {func(test *v1alpha1.LatencyTest) { test.Status.Results = nil }, metav1.ConditionUnknown, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			test := &v1alpha1.LatencyTest{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: v1alpha1.LatencyTestStatus{
				ObservedGeneration: 2,
				Results:            []v1alpha1.LatencyTestResult{{Node: "n1", Outcome: v1alpha1.LatencyPassed, Freshness: v1alpha1.LatencyFresh}},
			}}
			tc.change(test)
			v := OfLatencyTest(test)
			if got := v.Status(); got != tc.want || v.Undecided != tc.undecided {
				t.Errorf("%s (%q), want %s (%q)", got, v.Undecided, tc.want, tc.undecided)
			}
		})
	}
}
