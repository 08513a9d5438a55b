// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencytest

import (
	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// Qualify gives each member the measurement that it has passed last, of the tests that the profile names. A member whose agent has
// not reported its hardware has passed none that can be compared.
func Qualify(w *fleet.ProfileWorld, members []fleet.Member, tests []v1alpha1.LatencyTest) {
	for i := range members {
		m := &members[i]
		m.Qualification = nil
		if fleet.HasInventory(m.Report) {
			m.Qualification = Qualified(&Subject{Node: m.Node, Report: m.Report, Profile: w.Profile, Pools: w.Pools}, tests)
		}
	}
}

// Qualified is the newest measurement of a node that is within the budget of its test as it is now, among the tests that its profile
// names and that select the node; nil when there is none. Whether it is still fresh makes no difference: the agent is to say what of the
// node has changed since. A test that measures something else now says nothing. System management interrupts are those of the newest that asked for them,
// which only kind Jitter does.
func Qualified(s *Subject, tests []v1alpha1.LatencyTest) *v1alpha1.NodeQualification {
	wanted := s.Profile.Spec.Verification.Qualification
	if wanted == nil {
		return nil
	}
	var newest, asked *v1alpha1.LatencyMeasurement
	var by v1alpha1.LatencyTestReference
	c := &candidate{node: s.Node, report: s.Report, profile: s.Profile}
	for _, reference := range wanted.Tests {
		test := named(tests, reference)
		if test == nil || !selects(test, s.Pools, c) {
			continue
		}
		measured := passedBy(test, c)
		if isNewer(measured, newest) {
			newest, by = measured, reference
		}
		if isNewer(measured, asked) && measured.ManagementInterrupts != nil {
			asked = measured
		}
	}
	if newest == nil {
		return nil
	}
	qualified := &v1alpha1.NodeQualification{Test: by, CompletedTime: newest.CompletedTime, Fingerprint: *newest.Fingerprint.DeepCopy()}
	if asked != nil {
		qualified.ManagementInterrupts = asked.ManagementInterrupts.DeepCopy()
	}
	return qualified
}

// isNewer reports whether there is a measurement, and none or an older one instead.
func isNewer(measured, than *v1alpha1.LatencyMeasurement) bool {
	return measured != nil && (than == nil || than.CompletedTime.Before(&measured.CompletedTime))
}

// passedBy is what a test has measured on a node, if it is what the test measures now and within the budget; else nil.
func passedBy(test *v1alpha1.LatencyTest, c *candidate) *v1alpha1.LatencyMeasurement {
	result := ResultOf(test, c.node.Name)
	if result == nil || result.Measured == nil || result.Measured.ParametersHash != qualification.ParametersOf(&test.Spec).Hash() {
		return nil
	}
	if qualification.VerdictOf(&test.Spec, c.profile, result.Measured).Outcome != v1alpha1.LatencyPassed {
		return nil
	}
	return result.Measured
}
