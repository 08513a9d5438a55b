// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// Impact says what it means for isolated CPUs and NUMA nodes that a check fails.
type Impact string

const (
	// ImpactPlan means that the plan is not in force.
	ImpactPlan Impact = "Plan"
	// ImpactWork means that work other than that of its owner can run on an isolated CPU.
	ImpactWork Impact = "Work"
	// ImpactSpeed means that an isolated CPU, or a program on it, can be slowed down.
	ImpactSpeed Impact = "Speed"
	// ImpactPlacement means that CPUs, memory, interrupts or devices can be on another NUMA node than planned.
	ImpactPlacement Impact = "Placement"
	// ImpactNone means none of these: the finding is worth knowing.
	ImpactNone Impact = "None"
)

// Sentence says in a few words what a failure means.
func (i Impact) Sentence() string {
	return map[Impact]string{
		ImpactPlan:      "the plan is not in force",
		ImpactWork:      "other work can run on an isolated CPU",
		ImpactSpeed:     "an isolated CPU or a program on it can be slowed down",
		ImpactPlacement: "CPUs, memory, interrupts or devices can be on another NUMA node than planned",
		ImpactNone:      "none on isolated CPUs and on the NUMA nodes of memory, interrupts and devices",
	}[i]
}

// fails reports whether a failure of the check makes its conditions False: by its impact, or with another threshold by
// its severity. The threshold "" is FailOnImpact.
func (c Check) fails(failOn v1alpha1.FailureThreshold) bool {
	if failOn == "" || failOn == v1alpha1.FailOnImpact {
		return c.Severity == v1alpha1.SeverityCritical || c.Impact != "" && c.Impact != ImpactNone
	}
	return severityRank(c.Severity) <= severityRank(v1alpha1.Severity(failOn))
}

// Decides returns the condition types that an outcome of the check keeps from being True, for a profile with the
// threshold: those of a check that failed and whose failures count, and those of a critical check that is unknown. A
// check that passed or is waived keeps none.
func (c Check) Decides(outcome v1alpha1.Outcome, failOn v1alpha1.FailureThreshold) []string {
	switch {
	case outcome == v1alpha1.OutcomeFailed && c.fails(failOn),
		outcome == v1alpha1.OutcomeUnknown && c.Severity == v1alpha1.SeverityCritical:
		return c.Conditions
	}
	return nil
}
