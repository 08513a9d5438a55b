// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/gate"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// gateOf decides whether pods that need low latency may be sent to the node; nil where no profile governs it.
func (r *NodeReconciler) gateOf(w *nodeWorld) *gate.Decision {
	if w.node == nil || w.governor() == nil {
		return nil
	}
	decision := gate.Decide(gate.Input{
		Conditions: w.conditions(), Transitions: w.transitions(), PlanHash: w.planHash(), Startup: w.startup(), Now: r.clock.Now(),
	})
	return &decision
}

// gate puts the taint on the node or takes it away, and notes that the device plugins have advertised since the boot.
// The taints of a Node are one atomic list, which server-side apply could only own as a whole; so this is a patch that
// fails when the node has changed since it was read.
func (r *NodeReconciler) gate(ctx context.Context, w *nodeWorld, d *gate.Decision) error {
	tainted, why := isGated(w, d)
	next := w.node.DeepCopy()
	next.Spec.Taints = gatedTaints(w.node.Spec.Taints, tainted)
	noteStart(next, w, d)
	moved := !slices.Equal(next.Spec.Taints, w.node.Spec.Taints)
	if !moved && next.Annotations[v1alpha1.AnnotationStarted] == w.node.Annotations[v1alpha1.AnnotationStarted] {
		return nil
	}
	// The patch below carries nothing else, because the cache holds nodes without the rest.
	patch := client.MergeFromWithOptions(w.node, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, next, patch, client.FieldOwner(v1alpha1.FieldManager)); err != nil {
		return fmt.Errorf("writing the taints of Node %s: %w", w.node.Name, err)
	}
	if moved {
		r.announceGate(w, tainted, why)
	}
	return nil
}

func (r *NodeReconciler) announceGate(w *nodeWorld, tainted bool, why string) {
	if w.report == nil {
		return
	}
	if tainted {
		r.recorder.Eventf(w.report, w.node, corev1.EventTypeWarning, "GateClosed", actionGate, "%s", shorten.Sentence(
			"pods without a toleration of "+v1alpha1.TaintUnverified+" are kept away, those that run are left alone: "+why, maximumNote))
		return
	}
	r.recorder.Eventf(w.report, w.node, corev1.EventTypeNormal, "GateOpened", actionGate, "%s", shorten.Sentence(why, maximumNote))
}

// isGated tells whether pods are to be kept off the node, and why.
func isGated(w *nodeWorld, d *gate.Decision) (bool, string) {
	switch {
	case d == nil:
		return false, "no profile governs the node"
	case w.isGateTaint():
		return !d.IsOpen(), d.Message
	case d.IsStarting() && w.startsTainted():
		return true, d.Waiting
	case w.startsTainted():
		return false, "the device plugins of the node advertise"
	default:
		return false, "spec.verification.gate is not Taint"
	}
}

// noteStart notes on the node for which boot its device plugins have advertised.
func noteStart(node *corev1.Node, w *nodeWorld, d *gate.Decision) {
	if d == nil || d.IsStarting() {
		delete(node.Annotations, v1alpha1.AnnotationStarted)
		return
	}
	if w.report == nil {
		return
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	startup := w.startup()
	node.Annotations[v1alpha1.AnnotationStarted] = startup.Mark()
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

// hasMarks tells whether the node has a taint, a note or conditions of ours.
func hasMarks(node *corev1.Node) bool {
	return node.Annotations[v1alpha1.AnnotationStarted] != "" || slices.ContainsFunc(node.Spec.Taints, isOurTaint) || len(ownConditions(node.Status.Conditions)) > 0
}
