// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package jitter

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestComparedWithoutAll: a side with interruptions that are not recorded has no percentiles of them, and says how many there are.
func TestComparedWithoutAll(t *testing.T) {
	of := func(notRecorded uint64) *Result {
		return &Result{CPUs: []CPUResult{{CPU: 3, NotRecorded: notRecorded, InterruptionsPerSecond: 9, MaximumNanoseconds: 7, OverInterruptions: []Percentile{{50, 2}, {99, 6}}}}}
	}
	want := []ComparedCPU{{
		CPU: 3, Before: &ComparedSide{InterruptionsPerSecond: 9, MedianNanoseconds: new(int64(2)), P99Nanoseconds: new(int64(6)), MaximumNanoseconds: 7},
		After: &ComparedSide{InterruptionsPerSecond: 9, NotRecorded: 5, MaximumNanoseconds: 7},
	}}
	if diff := cmp.Diff(want, CompareResults(of(0), of(5)).CPUs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
