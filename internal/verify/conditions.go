// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
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

// Conditions returns Applied, DeJittered, NUMAAligned and Ready, without transition times. A critical
// check that failed makes a condition False; else a critical check whose facts are missing makes it
// Unknown; else it is True. Ready is True when all the others are.
func (r Report) Conditions(generation int64) []metav1.Condition {
	conditions := make([]metav1.Condition, 0, len(ConditionTypes())+1)
	for _, conditionType := range ConditionTypes() {
		conditions = append(conditions, r.condition(conditionType))
	}
	conditions = append(conditions, ready(conditions))
	for i := range conditions {
		conditions[i].ObservedGeneration = generation
	}
	return conditions
}

// condition decides one condition from the critical checks that speak to it.
func (r Report) condition(conditionType string) metav1.Condition {
	deciding := r.deciding(conditionType)
	failures := withOutcome(deciding, v1alpha1.OutcomeFailed)
	unknowns := withOutcome(deciding, v1alpha1.OutcomeUnknown)
	condition := metav1.Condition{Type: conditionType}
	switch {
	case len(failures) > 0:
		condition.Status, condition.Reason = metav1.ConditionFalse, failureReason(conditionType, failures)
		condition.Message = summarize(failures)
	case len(unknowns) > 0:
		condition.Status, condition.Reason = metav1.ConditionUnknown, v1alpha1.ReasonChecksUnknown
		condition.Message = summarize(unknowns)
	case len(deciding) == 0:
		condition.Status, condition.Reason = metav1.ConditionUnknown, v1alpha1.ReasonChecksUnknown
		condition.Message = "no critical check applies to the plan"
	default:
		condition.Status, condition.Reason = metav1.ConditionTrue, v1alpha1.ReasonVerified
		condition.Message = fmt.Sprintf("the running kernel satisfies the plan: no critical check of %d failed", len(deciding))
	}
	return condition
}

// Decisive is the first result that keeps a condition from being True: a critical check that failed, else one that is
// unknown. There is none where the condition is True.
func (r Report) Decisive(conditionType string) (Result, bool) {
	deciding := r.deciding(conditionType)
	for _, outcome := range []v1alpha1.Outcome{v1alpha1.OutcomeFailed, v1alpha1.OutcomeUnknown} {
		if found := withOutcome(deciding, outcome); len(found) > 0 {
			return found[0], true
		}
	}
	return Result{}, false
}

// deciding are the results of the critical checks that speak to the condition.
func (r Report) deciding(conditionType string) []Result {
	var deciding []Result
	for _, result := range r.Results {
		if result.Check.Severity == v1alpha1.SeverityCritical && slices.Contains(result.Check.Conditions, conditionType) {
			deciding = append(deciding, result)
		}
	}
	return deciding
}

func withOutcome(results []Result, outcome v1alpha1.Outcome) []Result {
	return slices.DeleteFunc(slices.Clone(results), func(r Result) bool { return r.Outcome != outcome })
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
func ready(conditions []metav1.Condition) metav1.Condition {
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
		Message: "the running kernel proves the plan",
	}
}
