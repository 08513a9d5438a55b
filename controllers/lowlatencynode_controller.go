// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// NodeReconciler carries what an agent reports over to its Node: the conditions, and the taint of a profile
// whose gate is Taint. It removes the LowLatencyNode of a node that no profile selects any more.
type NodeReconciler struct {
	client   client.Client
	recorder events.EventRecorder
	clock    clock.PassiveClock
	beats    *heartbeats
}

var _ reconcile.Reconciler = (*NodeReconciler)(nil)

// +kubebuilder:rbac:groups="",resources=nodes/status,verbs=patch

// Reconcile carries one agent's report over to its Node.
func (r *NodeReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	again, err := r.reconcile(ctx, request.Name)
	return withoutConflict(ctx, ctrl.Result{RequeueAfter: again}, err)
}

// reconcile returns when to look again although nothing happens; zero means never.
func (r *NodeReconciler) reconcile(ctx context.Context, name string) (time.Duration, error) {
	world, err := r.gather(ctx, name)
	if err != nil {
		return 0, err
	}
	if world.report != nil && world.report.DeletionTimestamp.IsZero() && world.isAbandoned() {
		if err := r.client.Delete(ctx, world.report); client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("deleting LowLatencyNode %s: %w", name, err)
		}
		world.report = nil
	}
	if world.node == nil {
		return 0, nil
	}
	var beat heard
	if world.report != nil {
		world.silence, beat = r.beats.listen(ctx, world.report)
	}
	decision := r.gateOf(world)
	// The taint first: it is what keeps pods away.
	err = errors.Join(r.gate(ctx, world, decision), r.mirror(ctx, world, decision), beat.failure)
	if err != nil || decision == nil {
		return beat.again, err
	}
	return soonest(decision.RetryAfter, beat.again), nil
}

func (r *NodeReconciler) gather(ctx context.Context, name string) (*nodeWorld, error) {
	w := &nodeWorld{node: &corev1.Node{}, report: &v1alpha1.LowLatencyNode{}}
	key := client.ObjectKey{Name: name}
	err := r.client.Get(ctx, key, w.node)
	switch {
	case apierrors.IsNotFound(err):
		w.node = nil
	case err != nil:
		return nil, fmt.Errorf("reading Node %s: %w", name, err)
	}
	err = r.client.Get(ctx, key, w.report)
	switch {
	case apierrors.IsNotFound(err):
		w.report = nil
	case err != nil:
		return nil, fmt.Errorf("reading LowLatencyNode %s: %w", name, err)
	}
	var profiles v1alpha1.LowLatencyNodeProfileList
	if err := r.client.List(ctx, &profiles, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing LowLatencyNodeProfiles: %w", err)
	}
	w.profiles = profiles.Items
	w.pools, err = livingPools(ctx, r.client)
	return w, err
}
