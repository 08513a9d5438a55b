// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// ConditionTypes are the condition types of a LowLatencyNode that checks decide, in the order in which
// Ready names the first that is not True.
func ConditionTypes() []string {
	return []string{v1alpha1.ConditionApplied, v1alpha1.ConditionDeJittered, v1alpha1.ConditionNUMAAligned}
}

// Conditions returns Applied, DeJittered, NUMAAligned and Ready, without transition times. A failed check that decides a
// condition makes it False; else a critical check whose facts are missing makes it Unknown; else it is True. What else
// did not pass are lesser findings, which the messages count. Ready is True when all the others are.
func (r Report) Conditions(generation int64) []metav1.Condition {
	conditions := make([]metav1.Condition, 0, len(ConditionTypes())+1)
	for _, conditionType := range ConditionTypes() {
		conditions = append(conditions, r.condition(conditionType))
	}
	conditions = append(conditions, r.ready(conditions))
	for i := range conditions {
		conditions[i].ObservedGeneration = generation
	}
	return conditions
}

// condition decides one condition. The results that decide it are named, the others that did not pass are counted.
func (r Report) condition(conditionType string) metav1.Condition {
	concerned := r.concerning(conditionType)
	failures := deciding(concerned, conditionType, v1alpha1.OutcomeFailed)
	unknowns := deciding(concerned, conditionType, v1alpha1.OutcomeUnknown)
	condition := metav1.Condition{Type: conditionType}
	named, text := failures, ""
	switch {
	case len(failures) > 0:
		condition.Status, condition.Reason = metav1.ConditionFalse, failureReason(conditionType, failures)
		text = summarize(failures)
	case len(unknowns) > 0:
		condition.Status, condition.Reason = metav1.ConditionUnknown, v1alpha1.ReasonChecksUnknown
		named, text = unknowns, summarize(unknowns)
	case !slices.ContainsFunc(concerned, isCritical):
		condition.Status, condition.Reason = metav1.ConditionUnknown, v1alpha1.ReasonChecksUnknown
		text = "no critical check applies to the plan"
	default:
		condition.Status, condition.Reason = metav1.ConditionTrue, v1alpha1.ReasonVerified
		text = fmt.Sprintf("the running kernel satisfies the plan: %d of %d checks passed",
			len(withOutcome(concerned, v1alpha1.OutcomePassed)), len(concerned))
	}
	condition.Message = shorten.With(text, lesser(concerned, named), v1alpha1.MaxNodeConditionMessageLength)
	return condition
}

// Decisive is the first result that keeps a condition from being True: the most severe failed check that decides it, else
// the first critical one that is unknown. There is none where the condition is True.
func (r Report) Decisive(conditionType string) (Result, bool) {
	concerned := r.concerning(conditionType)
	for _, outcome := range []v1alpha1.Outcome{v1alpha1.OutcomeFailed, v1alpha1.OutcomeUnknown} {
		if found := deciding(concerned, conditionType, outcome); len(found) > 0 {
			return found[0], true
		}
	}
	return Result{}, false
}

// concerning are the results of the checks that speak to the condition.
func (r Report) concerning(conditionType string) []Result {
	var concerned []Result
	for _, result := range r.Results {
		if slices.Contains(result.Check.Conditions, conditionType) {
			concerned = append(concerned, result)
		}
	}
	return concerned
}

// deciding are the results with the outcome that keep the condition from being True, the most severe first.
func deciding(results []Result, conditionType string, outcome v1alpha1.Outcome) []Result {
	found := slices.DeleteFunc(withOutcome(results, outcome), func(r Result) bool { return !slices.Contains(r.Decides, conditionType) })
	slices.SortStableFunc(found, func(a, b Result) int {
		return cmp.Compare(severityRank(a.Check.Severity), severityRank(b.Check.Severity))
	})
	return found
}

func isCritical(r Result) bool { return r.Check.Severity == v1alpha1.SeverityCritical }

func withOutcome(results []Result, outcome v1alpha1.Outcome) []Result {
	return slices.DeleteFunc(slices.Clone(results), func(r Result) bool { return r.Outcome != outcome })
}

// lesser counts, behind the sentence of a condition, the results that did not pass and that the sentence is not about; "" when
// there are none.
func lesser(concerned, named []Result) string {
	var parts []string
	for _, kind := range []struct {
		outcome v1alpha1.Outcome
		word    string
	}{{v1alpha1.OutcomeFailed, "failed"}, {v1alpha1.OutcomeUnknown, "unknown"}, {v1alpha1.OutcomeWaived, "waived"}} {
		if count := len(withOutcome(concerned, kind.outcome)) - len(withOutcome(named, kind.outcome)); count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count, kind.word))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return ". Other findings: " + strings.Join(parts, ", ")
}

// failureReason is RebootPending when the plan is not applied and only a reboot brings it about.
func failureReason(conditionType string, failures []Result) string {
	pending := func(r Result) bool { return r.Reboot == v1alpha1.RebootRequired }
	if conditionType == v1alpha1.ConditionApplied && slices.ContainsFunc(failures, pending) {
		return v1alpha1.ReasonRebootPending
	}
	return v1alpha1.ReasonChecksFailed
}

// summarize names what is wrong in a condition's message: the first few results, and how many more.
func summarize(results []Result) string {
	const named = 3
	var b strings.Builder
	for i, result := range results[:min(len(results), named)] {
		if i > 0 {
			b.WriteString(". ")
		}
		fmt.Fprintf(&b, "%s: %s", result.Check.ID, shorten.Sentence(result.Message, v1alpha1.MaxFindingDetailLength))
	}
	if more := len(results) - named; more > 0 {
		fmt.Fprintf(&b, ". And %d more", more)
	}
	return b.String()
}

// ready sums up the other conditions.
func (r Report) ready(conditions []metav1.Condition) metav1.Condition {
	for _, status := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown} {
		for _, condition := range conditions {
			if condition.Status == status {
				return metav1.Condition{
					Type: v1alpha1.ConditionReady, Status: status, Reason: condition.Reason,
					Message: condition.Type + ": " + condition.Message,
				}
			}
		}
	}
	return metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonVerified,
		Message: "the running kernel proves the plan" + lesser(r.Results, nil),
	}
}
