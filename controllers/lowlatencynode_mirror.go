// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/gate"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// mirrored is a condition of a LowLatencyNode that its Node shows, too.
type mirrored struct {
	condition string
	onNode    corev1.NodeConditionType
	// proven and disproven are the reasons of the events about it.
	proven, disproven string
}

func mirroredConditions() []mirrored {
	return []mirrored{
		{v1alpha1.ConditionDeJittered, v1alpha1.NodeConditionDeJittered, "DeJittered", "NotDeJittered"},
		{v1alpha1.ConditionNUMAAligned, v1alpha1.NodeConditionNUMAAligned, "NUMAAligned", "NotNUMAAligned"},
	}
}

// mirror writes the conditions to the Node, if they have changed, and tells of transitions.
func (r *NodeReconciler) mirror(ctx context.Context, w *nodeWorld, d *gate.Decision) error {
	want := nodeConditions(w, d)
	if sameConditions(w.node.Status.Conditions, want) {
		return nil
	}
	now := metav1.NewTime(r.clock.Now().Truncate(time.Second))
	status := applycorev1.NodeStatus().WithConditions(asApplied(withTransitions(w.node.Status.Conditions, want, now))...)
	if err := platform.ApplyStatus(ctx, r.client, corev1.SchemeGroupVersion.WithKind("Node"), w.node, status); err != nil {
		return fmt.Errorf("writing the conditions of Node %s: %w", w.node.Name, err)
	}
	r.announce(w, want)
	return nil
}

// nodeConditions are the conditions that the Node is to show: none without a LowLatencyNode.
func nodeConditions(w *nodeWorld, d *gate.Decision) []corev1.NodeCondition {
	if w.report == nil {
		return nil
	}
	var conditions []corev1.NodeCondition
	for _, m := range mirroredConditions() {
		condition := w.condition(m.condition)
		conditions = append(conditions, corev1.NodeCondition{
			Type: m.onNode, Status: corev1.ConditionStatus(condition.Status),
			Reason: condition.Reason, Message: shorten.Sentence(condition.Message, v1alpha1.MaxConditionMessageLength),
		})
	}
	if d != nil {
		conditions = append(conditions, corev1.NodeCondition{
			Type: v1alpha1.NodeConditionReady, Status: corev1.ConditionStatus(d.Status), Reason: d.Reason, Message: shorten.Sentence(d.Message, v1alpha1.MaxConditionMessageLength),
		})
	}
	return conditions
}

// ownConditions are those of a Node's conditions that the operator writes.
func ownConditions(conditions []corev1.NodeCondition) []corev1.NodeCondition {
	var own []corev1.NodeCondition
	for _, kind := range []corev1.NodeConditionType{
		v1alpha1.NodeConditionDeJittered, v1alpha1.NodeConditionNUMAAligned, v1alpha1.NodeConditionReady,
	} {
		if condition := findNodeCondition(conditions, kind); condition != nil {
			own = append(own, *condition)
		}
	}
	return own
}

func findNodeCondition(conditions []corev1.NodeCondition, kind corev1.NodeConditionType) *corev1.NodeCondition {
	at := slices.IndexFunc(conditions, func(c corev1.NodeCondition) bool { return c.Type == kind })
	if at < 0 {
		return nil
	}
	return &conditions[at]
}

// sameConditions compares what conditions say; times do not count.
func sameConditions(have, want []corev1.NodeCondition) bool {
	return slices.EqualFunc(ownConditions(have), want, func(a, b corev1.NodeCondition) bool {
		return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
	})
}

// withTransitions keeps the time of the last transition where the status is what it was.
func withTransitions(have, want []corev1.NodeCondition, now metav1.Time) []corev1.NodeCondition {
	timed := slices.Clone(want)
	for i := range timed {
		timed[i].LastTransitionTime = now
		if old := findNodeCondition(have, timed[i].Type); old != nil && old.Status == timed[i].Status && !old.LastTransitionTime.IsZero() {
			timed[i].LastTransitionTime = old.LastTransitionTime
		}
	}
	return timed
}

// asApplied leaves the time of the last heartbeat out, which corev1.NodeCondition would send as null.
func asApplied(conditions []corev1.NodeCondition) []*applycorev1.NodeConditionApplyConfiguration {
	applied := make([]*applycorev1.NodeConditionApplyConfiguration, 0, len(conditions))
	for _, c := range conditions {
		applied = append(applied, applycorev1.NodeCondition().WithType(c.Type).WithStatus(c.Status).
			WithReason(c.Reason).WithMessage(c.Message).WithLastTransitionTime(c.LastTransitionTime))
	}
	return applied
}

// announce tells of conditions whose status has become another. That a condition is Unknown is told only
// when it was known before.
func (r *NodeReconciler) announce(w *nodeWorld, want []corev1.NodeCondition) {
	for _, m := range mirroredConditions() {
		after := findNodeCondition(want, m.onNode)
		if after == nil {
			continue
		}
		if about, worth := nodeAnnouncement(findNodeCondition(w.node.Status.Conditions, m.onNode), after, m); worth {
			r.recorder.Eventf(w.report, w.node, about.kind, about.reason, actionVerify, "%s", shorten.Sentence(after.Message, maximumNote))
		}
	}
}

func nodeAnnouncement(before, after *corev1.NodeCondition, m mirrored) (announcement, bool) {
	switch {
	case before != nil && before.Status == after.Status:
		return announcement{}, false
	case after.Status == corev1.ConditionTrue:
		return announcement{corev1.EventTypeNormal, m.proven}, true
	case after.Status == corev1.ConditionFalse:
		return announcement{corev1.EventTypeWarning, m.disproven}, true
	case before != nil:
		return announcement{corev1.EventTypeNormal, m.proven + "Unknown"}, true
	default:
		return announcement{}, false
	}
}
