// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/status"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
)

// PoolReconciler runs the device plugin of a BypassNICPool on the nodes that it selects, and sums up what the agents
// report about its NICs. Everything that it makes is owned by the pool and goes with it.
type PoolReconciler struct {
	client client.Client
	// objects reads what was made for pools, from the cache.
	objects client.Reader
	// keeper sees to it that these are what was rendered.
	keeper *platform.Keeper
	// namespace is the operator's own, agentNamespace the one in which pods may use the host.
	namespace, agentNamespace string
	// image of the operator, which holds the device plugin; "" when it is not known.
	image string
	// served says which kinds the API server has.
	served     servedKinds
	recorder   events.EventRecorder
	clock      clock.PassiveClock
	selections *fleet.Selections
	heartbeats *heartbeats
	pace       *pace
	statuses   *lastStatuses[v1alpha1.BypassNICPoolStatus]
}

var _ reconcile.Reconciler = (*PoolReconciler)(nil)

// Network attachments are in the namespaces of the applications, wherever those are. The image of the device plugins is that of
// the manager's own Pod.
//
// +kubebuilder:rbac:groups="",namespace=lowlatency-operator-system,resources=pods,verbs=get
// +kubebuilder:rbac:groups=lowlatency.dev,resources=bypassnicpools,verbs=get;list;watch
// +kubebuilder:rbac:groups=lowlatency.dev,resources=bypassnicpools/status,verbs=patch
// +kubebuilder:rbac:groups="",namespace=lowlatency-operator-agents,resources=configmaps,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,namespace=lowlatency-operator-agents,resources=daemonsets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=resource.k8s.io,resources=deviceclasses,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=resource.k8s.io,resources=resourceslices,verbs=get;list;watch
// +kubebuilder:rbac:groups=k8s.cni.cncf.io,resources=network-attachment-definitions,verbs=get;list;watch;create;patch;delete

// Reconcile brings one pool a step further.
func (r *PoolReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	again, err := r.reconcile(ctx, request.Name)
	return withoutConflict(ctx, ctrl.Result{RequeueAfter: again}, err)
}

// reconcile returns when to look again although nothing happens; zero means never.
func (r *PoolReconciler) reconcile(ctx context.Context, name string) (time.Duration, error) {
	pool, err := get(ctx, r.client, client.ObjectKey{Name: name}, &v1alpha1.BypassNICPool{})
	if pool == nil || err != nil {
		r.pace.forget(name)
		r.statuses.forget(client.ObjectKey{Name: name})
		r.selections.Retain(name)
		return 0, err
	}
	decided := r.pace.measure(name)
	if !pool.DeletionTimestamp.IsZero() {
		// The owner references let the garbage collector remove everything.
		return 0, nil
	}
	world, err := r.gather(ctx, pool)
	if err != nil {
		return 0, err
	}
	return world.leases.again, errors.Join(world.leases.failure, r.serve(ctx, world, decided))
}

// serve makes of the pool what the world asks for, and writes its status.
func (r *PoolReconciler) serve(ctx context.Context, world *poolWorld, decided func()) error {
	decision := fleet.DecidePool(&world.PoolWorld, r.selections)
	decided()
	failure := r.publish(ctx, world, decision)
	_, final := errors.AsType[unrenderable](failure)
	_, foreign := errors.AsType[occupied](failure)
	if failure != nil && !final && !foreign && !refused(failure) {
		return failure
	}
	next := status.OfPool(world.Pool, decision, failure, r.clock.Now().Truncate(time.Second))
	if final {
		failure = nil
	}
	return errors.Join(failure, r.report(ctx, world.Pool, next))
}

// publish makes the objects of the pool what they are to be, and removes those that it is not to have any more.
func (r *PoolReconciler) publish(ctx context.Context, w *poolWorld, d *fleet.PoolDecision) error {
	wanted, err := r.render(w, d)
	if err != nil {
		return err
	}
	if err := r.apply(ctx, w, wanted); err != nil {
		return err
	}
	return r.served.lacking(w.Pool)
}

// lacking says which kind that the pool needs the API server does not have.
func (k servedKinds) lacking(pool *v1alpha1.BypassNICPool) error {
	if bypass.Allocation(&pool.Spec) == v1alpha1.AllocationDynamic && !k.classes {
		return unrenderable{errors.New("spec.allocation DynamicResourceAllocation needs Kubernetes 1.34 or later, but the API " +
			"server does not serve resource.k8s.io/v1: update the cluster and start the operator again, or allocate by DevicePlugin")}
	}
	if pool.Spec.NetworkAttachment != nil && !k.attachments {
		return unrenderable{errors.New("spec.networkAttachment needs Multus, but the API server does not serve " +
			"NetworkAttachmentDefinitions: install Multus and start the operator again, or remove the field")}
	}
	return nil
}

// apply writes what differs, and removes what is not wanted any more.
func (r *PoolReconciler) apply(ctx context.Context, w *poolWorld, wanted []*unstructured.Unstructured) error {
	wanted = r.served.among(wanted)
	for _, object := range wanted {
		if err := r.keep(ctx, w.objects[keyOf(object)], object); err != nil {
			return err
		}
	}
	return r.prune(ctx, w, wanted)
}

// keep makes an object, which is the operator's as a whole, what is wanted. What somebody else has made is left alone.
func (r *PoolReconciler) keep(ctx context.Context, live, wanted *unstructured.Unstructured) error {
	found, err := r.keeper.Inspect(ctx, live, wanted)
	switch {
	case err != nil:
		return err
	case found.Conflict != "":
		return occupied{errors.New(found.Conflict)}
	case !found.HasForeign() && platform.Compare(found.Live, wanted) == platform.Same:
		return nil
	}
	return r.keeper.Write(ctx, r.client, found)
}

// report writes the status, if it changed, and tells of transitions.
func (r *PoolReconciler) report(ctx context.Context, pool *v1alpha1.BypassNICPool, next v1alpha1.BypassNICPoolStatus) error {
	if r.statuses.isWritten(pool, &pool.Status, &next) {
		return nil
	}
	// Nobody reads the status of a pool that was deleted meanwhile.
	err := platform.ApplyStatus(ctx, r.client, v1alpha1.GroupVersion.WithKind("BypassNICPool"), pool, &next)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of BypassNICPool %s: %w", pool.Name, err)
	}
	announce(r.recorder, pool, nil, actionServe, status.Announcements(pool.Status.Conditions, next.Conditions)...)
	return nil
}
