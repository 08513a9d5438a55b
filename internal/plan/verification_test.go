// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"slices"
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// The default threshold leaves the plan as it was before there was one; another is a change that needs no reboot.
func TestFailOn(t *testing.T) {
	with := func(failOn v1alpha1.FailureThreshold) func(*v1alpha1.LowLatencyNodeProfileSpec) {
		return func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Verification.FailOn = failOn }
	}
	omitted, byImpact, byHigh := planOf(t, xeon(), with("")), planOf(t, xeon(), with(v1alpha1.FailOnImpact)), planOf(t, xeon(), with(v1alpha1.FailOnHigh))
	if omitted.Verification.FailOn != "" || omitted.Hash() != byImpact.Hash() {
		t.Errorf("the default %q makes another plan", omitted.Verification.FailOn)
	}
	if byHigh.Verification.FailOn != v1alpha1.FailOnHigh || byHigh.Hash() == omitted.Hash() {
		t.Errorf("the agent is told to fail on %q", byHigh.Verification.FailOn)
	}
	changes := Diff(omitted, byHigh)
	if !slices.Contains(changesOf(changes), "failures that count: Impact -> High (NotRequired)") || changes.Reboot() != v1alpha1.RebootNotRequired {
		t.Errorf("changes %v, reboot %s", changesOf(changes), changes.Reboot())
	}
}
