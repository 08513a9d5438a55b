// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// enactment is what the guard of the host says. Where that cannot be read, it is what the guard said before, of which nobody can tell any more whether
// it still is so: an agent that is older than the guard would repeat an old report for ever. It is nil where there is no guard.
func (a *Agent) enactment(ctx context.Context, previous *v1alpha1.NodeEnactment) *v1alpha1.NodeEnactment {
	if a.Guard == nil {
		return nil
	}
	report, err := a.Guard(a.Root)
	if err != nil {
		a.log(ctx).Error(err, "Failed to read what the guard of the host says")
		return unreadable(previous, err)
	}
	return enactmentOf(report)
}

// unreadable is what a guard said before, nil for nothing, of which nothing newer can be read.
func unreadable(previous *v1alpha1.NodeEnactment, err error) *v1alpha1.NodeEnactment {
	unread := &v1alpha1.NodeEnactment{}
	if previous != nil {
		unread = previous.DeepCopy()
	}
	unread.Phase = v1alpha1.EnactmentUnreadable
	unread.Message = shorten.Sentence(err.Error(), v1alpha1.MaxEnactmentMessageLength)
	return unread
}

// enactmentMoved reports whether the guard says something that the status does not.
func (a *Agent) enactmentMoved(ctx context.Context) bool {
	return !equality.Semantic.DeepEqual(a.enacted, a.enactment(ctx, a.enacted))
}

// differencesOf are as many as the API has room for; of more, the last one says how many there are.
func differencesOf(report *instruction.Report) []string {
	if more := len(report.Differences) - v1alpha1.MaxDifferences; more > 0 {
		shown := v1alpha1.MaxDifferences - 1
		return append(slices.Clone(report.Differences[:shown]), fmt.Sprintf("and %d more: see lowlatency-guard status on the host", more+1))
	}
	return report.Differences
}

// enactmentOf is a guard's report within the bounds of the API.
func enactmentOf(report *instruction.Report) *v1alpha1.NodeEnactment {
	if report.Phase == instruction.Removed && report.Number == 0 && report.Refused == nil {
		return nil
	}
	enactment := &v1alpha1.NodeEnactment{
		Phase: v1alpha1.EnactmentPhase(report.Phase), Number: report.Number,
		PlanHash:        shorten.Value(report.PlanHash, v1alpha1.MaxHashLength),
		InForcePlanHash: shorten.Value(report.InForce, v1alpha1.MaxHashLength),
		Reason:          shorten.Value(string(report.Reason), v1alpha1.MaxEnactmentWordLength),
		Message:         shorten.Sentence(report.Message, v1alpha1.MaxEnactmentMessageLength),
		BootID:          shorten.Value(report.BootID, v1alpha1.MaxBootIDLength),
	}
	if key := report.Key; key != nil {
		enactment.Key = &v1alpha1.EnactmentKey{ID: key.ID, Serial: key.Serial}
	}
	for _, difference := range differencesOf(report) {
		enactment.Differences = append(enactment.Differences, shorten.Sentence(difference, v1alpha1.MaxDifferenceLength))
	}
	if refused := report.Refused; refused != nil {
		enactment.Refusal = &v1alpha1.EnactmentRefusal{
			Number: refused.Number, Reason: shorten.Value(string(refused.Reason), v1alpha1.MaxEnactmentWordLength),
			Message: shorten.Sentence(refused.Message, v1alpha1.MaxEnactmentMessageLength),
		}
	}
	return enactment
}

// handedBack has Applied say, where the kernel does not show the plan, that the guard has refused it or taken it back, and why; Ready repeats
// it. No condition becomes another by it: what the kernel shows decides, whoever has brought it there.
func handedBack(conditions []metav1.Condition, guard *v1alpha1.NodeEnactment, planHash string) []metav1.Condition {
	applied := meta.FindStatusCondition(conditions, v1alpha1.ConditionApplied)
	if guard == nil || applied == nil || applied.Status != metav1.ConditionFalse || guard.Number == 0 || guard.PlanHash != planHash ||
		guard.InForcePlanHash == planHash || !instruction.IsFailure(instruction.Phase(guard.Phase), instruction.Reason(guard.Reason)) {
		return conditions
	}
	reason, what := v1alpha1.ReasonTakenBack, "has tried the plan and taken it back"
	if guard.Phase == v1alpha1.EnactmentRefused {
		reason, what = v1alpha1.ReasonRefused, "has refused the plan, and has written nothing"
	}
	applied.Reason = reason
	applied.Message = fmt.Sprintf("the guard %s (%s): %s. Now: %s", what, guard.Reason, strings.TrimSuffix(guard.Message, "."), applied.Message)
	if ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady); ready != nil {
		ready.Reason, ready.Message = reason, applied.Type+": "+applied.Message
	}
	return conditions
}
