// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// recordTransitions puts the conditions that have become another before those of earlier passes, and forgets the
// oldest. Ready is left out: it says what one of the others says.
func recordTransitions(previous, next *v1alpha1.LowLatencyNodeStatus, report *verify.Report, now metav1.Time) []v1alpha1.NodeTransition {
	recorded := previous.Transitions
	for _, conditionType := range verify.ConditionTypes() {
		after := meta.FindStatusCondition(next.Conditions, conditionType)
		if after == nil {
			continue
		}
		before := metav1.ConditionUnknown
		if old := meta.FindStatusCondition(previous.Conditions, conditionType); old != nil {
			before = old.Status
		}
		if before == after.Status {
			continue
		}
		recorded = slices.Concat([]v1alpha1.NodeTransition{transition(before, after, next, report, now)}, recorded)
	}
	return shorten.List(recorded, v1alpha1.MaxTransitions)
}

// transition is the change of a condition, with the result that decided it. The report is nil when nothing was verified.
func transition(before metav1.ConditionStatus, after *metav1.Condition, next *v1alpha1.LowLatencyNodeStatus, report *verify.Report, now metav1.Time) v1alpha1.NodeTransition {
	recorded := v1alpha1.NodeTransition{
		// The API keeps whole seconds; others would make the next pass see a change.
		Time:      now.Rfc3339Copy(),
		Condition: after.Type, From: before, To: after.Status,
		Reason: after.Reason, PlanHash: next.VerifiedPlanHash, BootID: next.BootID,
		Message: shorten.Sentence(after.Message, v1alpha1.MaxTransitionMessageLength),
	}
	if report == nil {
		return recorded
	}
	if decisive, ok := report.Decisive(after.Type); ok {
		recorded.Check, recorded.Message = decisive.Check.ID, shorten.Sentence(decisive.Message, v1alpha1.MaxTransitionMessageLength)
	}
	return recorded
}
