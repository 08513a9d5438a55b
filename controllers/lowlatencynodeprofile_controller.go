// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
)

// ProfileReconciler plans for the nodes that a LowLatencyNodeProfile selects, has the platform bring the plans
// to them, and sums up what their agents report.
type ProfileReconciler struct {
	client    client.Client
	platform  platform.Platform
	namespace string
	recorder  events.EventRecorder
	clock     clock.PassiveClock
	plans     *planner
	beats     *heartbeats
}

var _ reconcile.Reconciler = (*ProfileReconciler)(nil)

// +kubebuilder:rbac:groups=lowlatency.dev,resources=lowlatencynodeprofiles,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=lowlatency.dev,resources=lowlatencynodeprofiles/status,verbs=patch
// +kubebuilder:rbac:groups=lowlatency.dev,resources=lowlatencynodes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",namespace=lowlatency-operator-system,resources=configmaps,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=machineconfiguration.openshift.io,resources=machineconfigpools;machineconfigs;kubeletconfigs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=node.k8s.io,resources=runtimeclasses,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=tuned.openshift.io,resources=tuneds,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=performance.openshift.io,resources=performanceprofiles,verbs=get;list;watch

// Reconcile brings one profile a step further.
func (r *ProfileReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	result, err := r.reconcile(ctx, request)
	return withoutConflict(ctx, result, err)
}

func (r *ProfileReconciler) reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	profile := &v1alpha1.LowLatencyNodeProfile{}
	if err := r.client.Get(ctx, request.NamespacedName, profile); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	world, err := r.gather(ctx, profile)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !profile.DeletionTimestamp.IsZero() {
		return r.giveBack(ctx, world)
	}
	if err := r.keepFinalizer(ctx, profile); err != nil {
		return ctrl.Result{}, err
	}
	decision := decide(world, r.plans)
	if err := r.publish(ctx, world, decision); err != nil {
		return ctrl.Result{}, err
	}
	outcome, failure := r.roll(ctx, decision)
	if failure != nil && outcome.GroupOf == nil {
		return ctrl.Result{}, failure
	}
	summary := newSummary(world, decision, outcome)
	again := soonest(outcome.RetryAfter, world.beat.again)
	return ctrl.Result{RequeueAfter: again}, errors.Join(failure, world.beat.failure, r.report(ctx, profile, summary))
}

// publish writes what the agents work from: plans before the LowLatencyNodes that name them.
func (r *ProfileReconciler) publish(ctx context.Context, w *profileWorld, d *decision) error {
	for _, phase := range []func(context.Context, *profileWorld, *decision) error{
		r.publishPlans, r.adopt, r.prunePlans,
	} {
		if err := phase(ctx, w, d); err != nil {
			return err
		}
	}
	return nil
}

// roll has the platform carry out the decision. A write that the API server refuses for good is something
// that the profile's user has to know of; others are tried again.
func (r *ProfileReconciler) roll(ctx context.Context, d *decision) (fleet.Outcome, error) {
	outcome, err := r.platform.Roll(ctx, d.intent)
	if refused(err) {
		outcome.Conflicts = append(outcome.Conflicts, fleet.Conflict{
			Reason: v1alpha1.ReasonPlatformFailed, Message: err.Error(),
		})
	}
	return outcome, err
}

// refused tells whether trying the same again is of no use.
func refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsNotFound(err)
}

// report writes the status, if it changed, and tells of transitions.
func (r *ProfileReconciler) report(ctx context.Context, profile *v1alpha1.LowLatencyNodeProfile, s *summary) error {
	// The API server keeps times to the second.
	now := metav1.NewTime(r.clock.Now().Truncate(time.Second))
	next := s.status(&profile.Status, now)
	if sameStatus(&profile.Status, &next) {
		return nil
	}
	if err := platform.ApplyStatus(ctx, r.client, v1alpha1.GroupVersion.WithKind("LowLatencyNodeProfile"), profile, &next); err != nil {
		return fmt.Errorf("writing the status of LowLatencyNodeProfile %s: %w", profile.Name, err)
	}
	announceConditions(r.recorder, profile, profile.Status.Conditions, next.Conditions, actionRoll)
	return nil
}
