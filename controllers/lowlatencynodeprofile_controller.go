// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/latencytest"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/status"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
)

// ProfileReconciler plans for the nodes that a LowLatencyNodeProfile selects, has the platform bring the plans
// to them, and sums up what their agents report.
type ProfileReconciler struct {
	client     client.Client
	platform   platform.Platform
	namespace  string
	recorder   events.EventRecorder
	clock      clock.PassiveClock
	plans      *fleet.Planner
	heartbeats *heartbeats
	pace       *pace
	statuses   *lastStatuses[v1alpha1.LowLatencyNodeProfileStatus]
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
	profile, err := get(ctx, r.client, request.NamespacedName, &v1alpha1.LowLatencyNodeProfile{})
	if profile == nil || err != nil {
		r.pace.forget(request.Name)
		r.statuses.forget(request.NamespacedName)
		r.plans.Retain(request.Name)
		return ctrl.Result{}, err
	}
	decided := r.pace.measure(profile.Name)
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
	decision := fleet.DecideProfile(&world.ProfileWorld, r.plans)
	latencytest.Qualify(&world.ProfileWorld, decision.Members, world.tests)
	var expires time.Duration
	decision.IdleTests = latencytest.Idle(&world.ProfileWorld, decision.Members, world.tests)
	decision.Unqualified, expires = latencytest.Unqualified(&world.ProfileWorld, decision.Members, world.tests, r.now())
	decided()
	outcome, failure := r.carryOut(ctx, world, decision)
	if failure != nil && outcome.GroupOf == nil {
		return ctrl.Result{}, failure
	}
	failure = errors.Join(failure, world.leases.failure, r.report(ctx, profile, status.OfProfile(decision, outcome, r.now())))
	return ctrl.Result{RequeueAfter: soonest(soonest(outcome.RetryAfter, expires), world.leases.again)}, failure
}

// carryOut writes what was decided: plans before who names them, and what moves the fleet, which is little, before the nodes,
// which may be thousands. Agents are told which plan is in force on their nodes once the platform has said whose turn has come;
// what the platform refuses keeps no node from its LowLatencyNode.
func (r *ProfileReconciler) carryOut(ctx context.Context, w *profileWorld, d *fleet.ProfileDecision) (fleet.Outcome, error) {
	if err := r.publishPlans(ctx, w, d); err != nil {
		return fleet.Outcome{}, err
	}
	outcome, failure := r.roll(ctx, d.Intent)
	d.TakeTurns(outcome.Turned)
	left, err := r.adopt(ctx, w, d)
	if left {
		outcome.RetryAfter = platform.NextBatch
	}
	if failure = errors.Join(failure, err); failure != nil || left {
		return outcome, failure
	}
	if err := r.release(ctx, w, d); err != nil {
		return outcome, err
	}
	return outcome, r.prunePlans(ctx, w, d)
}

// roll has the platform carry out the decision. A write that the API server refuses for good is something
// that the profile's user has to know of; others are tried again.
func (r *ProfileReconciler) roll(ctx context.Context, intent *fleet.Intent) (fleet.Outcome, error) {
	outcome, err := r.platform.Roll(ctx, intent)
	if refused(err) {
		outcome.Conflicts = append(outcome.Conflicts, fleet.Conflict{
			Reason: v1alpha1.ReasonPlatformFailed, Message: err.Error(),
		})
	}
	return outcome, err
}

// refused reports whether trying the same again is of no use.
func refused(err error) bool {
	return errors.Is(err, platform.ErrUnusable) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsNotFound(err)
}

// now is the time to the second, as the API server keeps times.
func (r *ProfileReconciler) now() time.Time { return r.clock.Now().Truncate(time.Second) }

// report writes the status, if it changed, and tells of transitions.
func (r *ProfileReconciler) report(ctx context.Context, profile *v1alpha1.LowLatencyNodeProfile, next v1alpha1.LowLatencyNodeProfileStatus) error {
	if r.statuses.isWritten(profile, &profile.Status, &next) {
		return nil
	}
	if err := platform.ApplyStatus(ctx, r.client, v1alpha1.GroupVersion.WithKind("LowLatencyNodeProfile"), profile, &next); err != nil {
		return fmt.Errorf("writing the status of LowLatencyNodeProfile %s: %w", profile.Name, err)
	}
	announce(r.recorder, profile, nil, actionRoll, status.Announcements(profile.Status.Conditions, next.Conditions)...)
	return nil
}
