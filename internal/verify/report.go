// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"cmp"
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
)

// Counts counts the results by outcome. Skipped checks do not count.
func (r Report) Counts() v1alpha1.CheckCounts {
	var counts v1alpha1.CheckCounts
	for _, result := range r.Results {
		switch result.Outcome {
		case v1alpha1.OutcomePassed:
			counts.Passed++
		case v1alpha1.OutcomeFailed:
			counts.Failed++
		case v1alpha1.OutcomeUnknown:
			counts.Unknown++
		case v1alpha1.OutcomeWaived:
			counts.Waived++
		}
	}
	return counts
}

// Findings returns the results that are not passed: the most severe first, within a severity failed before unknown
// before waived, then in the order of the catalogue.
func (r Report) Findings() []finding.Finding {
	notPassed := slices.DeleteFunc(slices.Clone(r.Results), func(result Result) bool {
		return result.Outcome == v1alpha1.OutcomePassed
	})
	slices.SortStableFunc(notPassed, func(a, b Result) int {
		return cmp.Or(
			cmp.Compare(severityRank(a.Check.Severity), severityRank(b.Check.Severity)),
			cmp.Compare(outcomeRank(a.Outcome), outcomeRank(b.Outcome)),
		)
	})
	findings := make([]finding.Finding, 0, len(notPassed))
	for _, result := range notPassed {
		findings = append(findings, result.Finding())
	}
	return findings
}

// Finding is the result with no more of its check than identifier and severity.
func (r Result) Finding() finding.Finding {
	return finding.Finding{
		Check: r.Check.ID, Outcome: r.Outcome, Severity: r.Check.Severity, Message: r.Message, Objects: r.Objects,
		Observed: r.Observed, Expected: r.Expected, Fix: r.Fix, Reboot: r.Reboot,
		Decides: r.Decides,
	}
}

// severityRank orders severities, the most severe first.
func severityRank(severity v1alpha1.Severity) int {
	return slices.Index([]v1alpha1.Severity{
		v1alpha1.SeverityCritical, v1alpha1.SeverityHigh, v1alpha1.SeverityMedium, v1alpha1.SeverityLow,
	}, severity)
}

// outcomeRank orders outcomes, the one that needs action first.
func outcomeRank(outcome v1alpha1.Outcome) int {
	return slices.Index([]v1alpha1.Outcome{
		v1alpha1.OutcomeFailed, v1alpha1.OutcomeUnknown, v1alpha1.OutcomeWaived, v1alpha1.OutcomePassed,
	}, outcome)
}
