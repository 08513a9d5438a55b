// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
)

// gate puts the taint on the node or takes it away. The taints of a Node are one atomic list, which
// server-side apply could only own as a whole; so this is a patch that fails when the node has changed since
// it was read.
func (r *NodeReconciler) gate(ctx context.Context, w *nodeWorld) error {
	tainted, why := isGated(w)
	taints := gatedTaints(w.node.Spec.Taints, tainted)
	if slices.Equal(taints, w.node.Spec.Taints) {
		return nil
	}
	next := w.node.DeepCopy()
	next.Spec.Taints = taints
	// The patch below carries nothing else, because the cache holds nodes without the rest.
	patch := client.MergeFromWithOptions(w.node, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, next, patch, client.FieldOwner(platform.FieldManager)); err != nil {
		return fmt.Errorf("writing the taints of Node %s: %w", w.node.Name, err)
	}
	r.announceGate(w, tainted, why)
	return nil
}

func (r *NodeReconciler) announceGate(w *nodeWorld, tainted bool, why string) {
	if w.report == nil {
		return
	}
	if tainted {
		r.recorder.Eventf(w.report, w.node, corev1.EventTypeWarning, "GateClosed", actionGate,
			"%s", shorten("pods without a toleration of "+v1alpha1.TaintUnverified+" are kept away: "+why, maximumNote))
		return
	}
	r.recorder.Eventf(w.report, w.node, corev1.EventTypeNormal, "GateOpened", actionGate, "%s", why)
}

// isGated tells whether pods are to be kept off the node, and why. The gate fails closed: it opens only while
// everything that the profile asks for is proven for the current plan.
func isGated(w *nodeWorld) (bool, string) {
	profile := w.governor()
	if profile == nil {
		return false, "no profile governs the node"
	}
	if plan.Effective(profile, "").Spec.Verification.Gate != v1alpha1.GateTaint {
		return false, "spec.verification.gate is not Taint"
	}
	for _, kind := range []string{v1alpha1.ConditionApplied, v1alpha1.ConditionDeJittered, v1alpha1.ConditionNUMAAligned} {
		condition := currentCondition(w.report, w.report.Spec.PlanHash, kind)
		if condition.Status != metav1.ConditionTrue {
			return true, fmt.Sprintf("%s is %s: %s", kind, condition.Status, condition.Message)
		}
	}
	return false, "the node is verified for plan " + w.report.Spec.PlanHash
}

// gatedTaints are the taints of a node with ours put on or taken away.
func gatedTaints(taints []corev1.Taint, tainted bool) []corev1.Taint {
	ours := corev1.Taint{Key: v1alpha1.TaintUnverified, Effect: corev1.TaintEffectNoSchedule}
	if tainted && slices.Contains(taints, ours) {
		return taints
	}
	rest := slices.DeleteFunc(slices.Clone(taints), isOurTaint)
	if tainted {
		return append(rest, ours)
	}
	return rest
}

func isOurTaint(taint corev1.Taint) bool { return taint.Key == v1alpha1.TaintUnverified }

// hasMarks tells whether the node has a taint or conditions of ours.
func hasMarks(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, isOurTaint) || len(ownConditions(node.Status.Conditions)) > 0
}
