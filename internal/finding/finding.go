// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package finding

import (
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// Finding is what a check says about a node, whole: nothing is cut and no object left out. Status is what of it the API
// has room for.
type Finding struct {
	Check    v1alpha1.CheckID  `json:"check"`
	Outcome  v1alpha1.Outcome  `json:"outcome"`
	Severity v1alpha1.Severity `json:"severity"`
	// Message is one sentence for people. It may name the first few objects only.
	Message string `json:"message"`
	// Objects are all parts of the node that it is about; none when it is about the node as a whole.
	Objects Objects `json:"objects,omitzero"`
	// Observed is what the kernel says, Expected what the plan says.
	Observed string `json:"observed,omitempty"`
	Expected string `json:"expected,omitempty"`
	// Fix is what to do, and Reboot whether that takes effect only after a reboot.
	Fix    string                     `json:"fix,omitempty"`
	Reboot v1alpha1.RebootRequirement `json:"reboot,omitempty"`
	// Decides are the condition types that the finding keeps from being True; none for a lesser finding.
	Decides []string `json:"decides,omitempty"`
}

// Status is the finding within the bounds of the API.
func (f Finding) Status() v1alpha1.Finding {
	return v1alpha1.Finding{
		Check: f.Check, Outcome: f.Outcome, Severity: f.Severity,
		Message:  shorten.Sentence(f.Message, v1alpha1.MaxFindingMessageLength),
		Objects:  f.Objects.Status(),
		Observed: shorten.Sentence(f.Observed, v1alpha1.MaxFindingDetailLength),
		Expected: shorten.Sentence(f.Expected, v1alpha1.MaxFindingDetailLength),
		Fix:      shorten.Sentence(f.Fix, v1alpha1.MaxFindingDetailLength),
		Reboot:   f.Reboot,
		Decides:  slices.Clone(f.Decides),
	}
}

// Statuses are the first findings within the bounds of the API.
func Statuses(findings []Finding) []v1alpha1.Finding {
	findings = shorten.List(findings, v1alpha1.MaxFindings)
	bounded := make([]v1alpha1.Finding, 0, len(findings))
	for _, f := range findings {
		bounded = append(bounded, f.Status())
	}
	return bounded
}

// Reported is a finding of the status of a LowLatencyNode.
func Reported(f v1alpha1.Finding) Finding {
	return Finding{
		Check: f.Check, Outcome: f.Outcome, Severity: f.Severity, Message: f.Message, Objects: OfStatus(f.Objects),
		Observed: f.Observed, Expected: f.Expected, Fix: f.Fix, Reboot: f.Reboot, Decides: slices.Clone(f.Decides),
	}
}

// MakesFalse reports whether the finding makes a condition False.
func (f Finding) MakesFalse() bool {
	return f.Outcome == v1alpha1.OutcomeFailed && len(f.Decides) > 0
}
