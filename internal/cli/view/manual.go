// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package view

import (
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// Manual is what the catalogue says about a check.
type Manual struct {
	Check    v1alpha1.CheckID  `json:"check"`
	Title    string            `json:"title"`
	Severity v1alpha1.Severity `json:"severity"`
	// Needs is what the check needs besides one reading of the host: "window" for a second one, "qualification" for a
	// qualification run, "" for nothing.
	Needs       string        `json:"needs,omitempty"`
	Impact      verify.Impact `json:"impact"`
	ImpactMeans string        `json:"impactMeans"`
	// Conditions are those whose messages tell of a failure, and Decides those of them that it makes False where spec.verification.failOn is
	// not set.
	Conditions  []string `json:"conditions"`
	Decides     []string `json:"decides"`
	AppliesWhen string   `json:"appliesWhen,omitempty"`
	Why         string   `json:"why"`
	Reads       []string `json:"reads"`
	Fix         string   `json:"fix"`
	Reboot      string   `json:"reboot"`
	Source      string   `json:"source"`
}

// Manuals are those of all checks, in the order of the catalogue.
func Manuals() []Manual {
	catalogue := verify.Catalogue()
	manuals := make([]Manual, 0, len(catalogue))
	for i := range catalogue {
		manuals = append(manuals, manualOf(&catalogue[i]))
	}
	return manuals
}

func manualOf(check *verify.Check) Manual {
	manual := Manual{
		Check: check.ID, Title: check.Title, Severity: check.Severity, Impact: check.Impact, ImpactMeans: check.Impact.Sentence(),
		Conditions: check.Conditions, Decides: append([]string{}, check.Decides(v1alpha1.OutcomeFailed, v1alpha1.FailOnImpact)...), AppliesWhen: check.Applies, Why: check.Why, Reads: check.Reads, Fix: check.Fix,
		Reboot: rebootOfFix(check.Reboot), Source: check.Source,
	}
	switch {
	case check.Window:
		manual.Needs = "window"
	case check.Qualification:
		manual.Needs = "qualification"
	}
	return manual
}

func rebootOfFix(requirement v1alpha1.RebootRequirement) string {
	switch requirement {
	case v1alpha1.RebootRequired:
		return "the fix takes effect after a reboot"
	case v1alpha1.RebootNotRequired:
		return "not needed"
	default:
		return "not known"
	}
}

// SeverityAndNeeds is the severity, with what the check needs behind a comma.
func (m *Manual) SeverityAndNeeds() string {
	if m.Needs == "" {
		return string(m.Severity)
	}
	return string(m.Severity) + ", " + m.Needs
}

// ConditionNames are the conditions, in brackets where a failure does not make them False by its impact.
func (m *Manual) ConditionNames() string {
	names := strings.Join(m.Conditions, ", ")
	if len(m.Decides) == 0 {
		return "(" + names + ")"
	}
	return names
}

// conditionsInWords names the conditions, and says so where a failure does not decide them.
func (m *Manual) conditionsInWords() string {
	names := strings.Join(m.Conditions, ", ")
	if len(m.Decides) == 0 {
		return names + ": a failure is one of the lesser findings that its message counts, and makes it False only where spec.verification.failOn is " +
			"set and counts the severity " + string(m.Severity)
	}
	return names
}

// Rows are the parts of a manual below its title, each a name and a text; file puts the name of a file as the document
// wants it. Empty parts are left out.
func (m *Manual) Rows(file func(string) string) [][]string {
	files := make([]string, 0, len(m.Reads))
	for _, name := range m.Reads {
		files = append(files, file(name))
	}
	rows := [][]string{
		{"Severity", m.SeverityAndNeeds()},
		{"Impact", string(m.Impact) + ": " + m.ImpactMeans},
		{"Conditions", m.conditionsInWords()},
		{"Applies when", m.AppliesWhen},
		{"What it costs", m.Why},
		{"Reads", strings.Join(files, ", ")},
		{"Fix", m.Fix},
		{"Reboot", m.Reboot},
		{"Source", m.Source},
	}
	return slices.DeleteFunc(rows, func(row []string) bool { return row[1] == "" })
}
