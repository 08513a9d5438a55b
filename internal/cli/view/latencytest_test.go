// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package view

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// TestOnlyRun: a result that stands from an earlier run is no pass of the run that was asked for, and one of a later run is.
func TestOnlyRun(t *testing.T) {
	for name, tc := range map[string]struct {
		measured, wanted int32
		want             metav1.ConditionStatus
		message          string
	}{
		"the first run":    {0, 0, metav1.ConditionTrue, ""},
		"a later run":      {1, 0, metav1.ConditionTrue, ""},
		"the run itself":   {1, 1, metav1.ConditionTrue, ""},
		"the run before":   {1, 2, metav1.ConditionUnknown, "run 2 gave no result; what is shown is of run 1"},
		"not run before 1": {0, 1, metav1.ConditionUnknown, "run 1 gave no result; what is shown is of run 0"},
	} {
		v := OfLatencyTest(&v1alpha1.LatencyTest{Status: v1alpha1.LatencyTestStatus{Results: []v1alpha1.LatencyTestResult{{
			Node: "n1", Outcome: v1alpha1.LatencyPassed, Freshness: v1alpha1.LatencyFresh, Measured: &v1alpha1.LatencyMeasurement{Run: tc.measured},
		}}}})
		v.OnlyRun(tc.wanted)
		if got := v.Status(); got != tc.want || v.Nodes[0].Message != tc.message {
			t.Errorf("%s: %s (%s), want %s (%s)", name, got, v.Nodes[0].Message, tc.want, tc.message)
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
