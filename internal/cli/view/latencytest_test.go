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
