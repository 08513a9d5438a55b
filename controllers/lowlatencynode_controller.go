// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
}

var _ reconcile.Reconciler = (*NodeReconciler)(nil)

// nodeWorld is what a node is decided from, read once from the cache.
type nodeWorld struct {
	// node is nil when it does not exist.
	node *corev1.Node
	// report is nil when it does not exist.
	report *v1alpha1.LowLatencyNode
	// profiles are all profiles, those that are being deleted included. Not to be changed.
	profiles []v1alpha1.LowLatencyNodeProfile
}

// +kubebuilder:rbac:groups="",resources=nodes/status,verbs=patch

// Reconcile carries one agent's report over to its Node.
func (r *NodeReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	return withoutConflict(ctx, ctrl.Result{}, r.reconcile(ctx, request.Name))
}

func (r *NodeReconciler) reconcile(ctx context.Context, name string) error {
	world, err := r.gather(ctx, name)
	if err != nil {
		return err
	}
	if world.report != nil && world.report.DeletionTimestamp.IsZero() && world.isAbandoned() {
		if err := r.client.Delete(ctx, world.report); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting LowLatencyNode %s: %w", name, err)
		}
		world.report = nil
	}
	if world.node == nil {
		return nil
	}
	return errors.Join(r.mirror(ctx, world), r.gate(ctx, world))
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
	return w, nil
}

// isAbandoned tells whether nobody wants the LowLatencyNode any more. A profile that is being deleted still
// wants those of its nodes, until they were given back.
func (w *nodeWorld) isAbandoned() bool {
	if w.node == nil {
		return true
	}
	return !slices.ContainsFunc(w.profiles, func(profile v1alpha1.LowLatencyNodeProfile) bool {
		return selectsNode(&profile, w.node)
	})
}

// governor is the profile that governs the node; nil when there is none.
func (w *nodeWorld) governor() *v1alpha1.LowLatencyNodeProfile {
	if w.report == nil {
		return nil
	}
	for i := range w.profiles {
		if w.profiles[i].Name == w.report.Spec.Profile {
			return &w.profiles[i]
		}
	}
	return nil
}
