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
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/gate"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
)

// mark puts the taint on the node or takes it away, and notes that the device plugins have advertised since the boot.
// The taints of a Node are one atomic list, which server-side apply could only own as a whole; so this is a patch that
// fails when the node has changed since it was read, unless the taints stay as they are.
func (r *NodeReconciler) mark(ctx context.Context, w *gate.World, d *gate.Decision) error {
	next, announcement := w.Marked(d)
	if next == w.Node {
		return nil
	}
	// The patch carries nothing else, because the cache holds nodes without the rest.
	if err := platform.PatchNode(ctx, r.client, w.Node, next, !slices.Equal(next.Spec.Taints, w.Node.Spec.Taints)); err != nil {
		return fmt.Errorf("writing the taints of Node %s: %w", w.Node.Name, err)
	}
	if announcement != nil && w.Report != nil {
		announce(r.recorder, w.Report, w.Node, actionGate, *announcement)
	}
	return nil
}

// mirror writes the conditions to the Node, if they have changed, and tells of transitions.
func (r *NodeReconciler) mirror(ctx context.Context, w *gate.World, d *gate.Decision) error {
	conditions, moved := w.NodeConditions(d, r.clock.Now().Truncate(time.Second))
	if !moved {
		return nil
	}
	applied := applycorev1.NodeStatus().WithConditions(asApplied(conditions)...)
	if err := platform.ApplyStatus(ctx, r.client, corev1.SchemeGroupVersion.WithKind("Node"), w.Node, applied); err != nil {
		return fmt.Errorf("writing the conditions of Node %s: %w", w.Node.Name, err)
	}
	announce(r.recorder, w.Report, w.Node, actionVerify, gate.Announcements(w.Node.Status.Conditions, conditions)...)
	return nil
}

// correct takes the condition Ready from a LowLatencyNode whose agent is dead. It is all that the operator writes of the
// status, and an agent that is back writes its own again.
func (r *NodeReconciler) correct(ctx context.Context, w *gate.World) error {
	lost := w.LostReady()
	if lost == nil {
		return nil
	}
	status := &v1alpha1.LowLatencyNodeStatus{Conditions: []metav1.Condition{*lost}}
	err := platform.ApplyStatus(ctx, r.client, v1alpha1.GroupVersion.WithKind("LowLatencyNode"), w.Report, status)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing condition Ready of LowLatencyNode %s: %w", w.Report.Name, err)
	}
	return nil
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
