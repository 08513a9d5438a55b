// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/gate"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/status"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
)

// giveBack returns the nodes and removes everything that was made for the profile, a step at a time, and then
// lets the profile go. The status says what it waits for.
func (r *ProfileReconciler) giveBack(ctx context.Context, w *profileWorld) (ctrl.Result, error) {
	if !slices.Contains(w.Profile.Finalizers, v1alpha1.Finalizer) {
		return ctrl.Result{}, nil
	}
	d := fleet.DecideReturn(&w.ProfileWorld)
	rest, err := r.platform.Return(ctx, d.Intent)
	if err != nil {
		if !rest.Done() {
			err = errors.Join(err, r.report(ctx, w.Profile, status.OfReturn(w.Profile, rest, r.now())))
		}
		return ctrl.Result{}, err
	}
	if rest.Done() {
		if rest, err = r.forget(ctx, w, d); err != nil {
			return ctrl.Result{}, err
		}
	}
	if rest.Done() {
		return ctrl.Result{}, r.dropFinalizer(ctx, w.Profile)
	}
	return ctrl.Result{RequeueAfter: rest.RetryAfter}, r.report(ctx, w.Profile, status.OfReturn(w.Profile, rest, r.now()))
}

// forget removes what the operator keeps besides the platform: plans, LowLatencyNodes and labels. Taints and
// Node conditions go with the LowLatencyNodes. A node loses its labels first: with them and without a LowLatencyNode it would be one
// of which nobody knows whether it was given back, and would be waited for.
func (r *ProfileReconciler) forget(ctx context.Context, w *profileWorld, d *fleet.ProfileDecision) (fleet.Remainder, error) {
	rest := fleet.Remainder{RetryAfter: returnRetry}
	for _, name := range slices.Sorted(maps.Keys(w.plans)) {
		rest.Objects = append(rest.Objects, "ConfigMap "+name)
		if err := r.deletePlan(ctx, name); err != nil {
			return rest, err
		}
	}
	writes := make([]platform.NodeWrite, 0, len(w.Reports))
	for _, name := range slices.Sorted(maps.Keys(w.Reports)) {
		report := w.Reports[name]
		if report.Spec.Profile != w.Profile.Name || d.Intent.Held[name] != "" {
			continue
		}
		rest.Objects = append(rest.Objects, "LowLatencyNode "+name)
		if w.mayGo(report) {
			writes = append(writes, platform.NodeWrite{Do: func(ctx context.Context) error { return r.deleteReport(ctx, report) }})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.Nodes)) {
		node := w.Nodes[name]
		labelled, marked := w.isMarked(d, node)
		if labelled {
			writes = append(writes, platform.NodeWrite{Do: func(ctx context.Context) error { return platform.LabelNode(ctx, r.client, node, "", "") }})
		}
		if marked {
			rest.Nodes = append(rest.Nodes, name)
		}
	}
	left, err := platform.WriteNodes(ctx, writes)
	if left {
		rest.RetryAfter = platform.NextBatch
	}
	return rest, err
}

func (r *ProfileReconciler) deleteReport(ctx context.Context, report *v1alpha1.LowLatencyNode) error {
	if err := r.client.Delete(ctx, report.DeepCopy()); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting LowLatencyNode %s: %w", report.Name, err)
	}
	return nil
}

// returnRetry is when to look again at what is being removed; all of it is watched.
const returnRetry = 30 * time.Second

// mayGo tells that a LowLatencyNode is to be deleted now: its node has lost its label.
func (w *profileWorld) mayGo(report *v1alpha1.LowLatencyNode) bool {
	return report.DeletionTimestamp.IsZero() && !w.isLabelled(w.Nodes[report.Name])
}

// isLabelled tells that a node has the label of the profile; one that has gone has none.
func (w *profileWorld) isLabelled(node *corev1.Node) bool {
	return node != nil && node.Labels[v1alpha1.LabelProfile] == w.Profile.Name
}

// isMarked reports whether a node has our labels, which are to be taken away, and whether it has any mark of ours. Marks
// besides labels are taken away by the reconciler of LowLatencyNodes.
func (w *profileWorld) isMarked(d *fleet.ProfileDecision, node *corev1.Node) (labelled, marked bool) {
	if w.isLabelled(node) && d.Intent.Held[node.Name] == "" {
		return true, true
	}
	return false, fleet.Selects(w.Profile.Spec.NodeSelector, node) && len(fleet.SelectingProfiles(w.Others, node)) == 0 && gate.HasMarks(node)
}
