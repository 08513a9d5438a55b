// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/changes"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/latencytest"
)

// setup watches everything that a profile is decided from.
func (r *ProfileReconciler) setup(mgr ctrl.Manager) error {
	changed := builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})
	build := ctrl.NewControllerManagedBy(mgr).
		Named("lowlatencynodeprofile").
		For(&v1alpha1.LowLatencyNodeProfile{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.LowLatencyNodeProfile{}, handler.EnqueueRequestsFromMapFunc(r.allProfiles),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.LowLatencyNode{}, r.pace.of(profileOfReport), changed).
		Watches(&v1alpha1.BypassNICPool{}, handler.EnqueueRequestsFromMapFunc(r.allProfiles),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Node{}, r.pace.of(r.profilesOfNode),
			updated(decidingNodes().Moved)).
		Watches(&v1alpha1.LatencyTest{}, r.pace.of(r.profilesOfTest), changed).
		WatchesMetadata(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(profileOfLabel), changed)
	for _, watch := range r.platform.Watches() {
		mapping := profileOfLabel
		if watch.Shared {
			mapping = r.allProfiles
		}
		build = build.Watches(watch.Object, handler.EnqueueRequestsFromMapFunc(mapping), changed)
	}
	return r.heartbeats.watch(build, r.pace.of, profileOfReport).Complete(r)
}

// parallelNodes is how many nodes are reconciled at once. Each is decided from what concerns it alone.
const parallelNodes = 8

// setup watches what a node is decided from.
func (r *NodeReconciler) setup(mgr ctrl.Manager) error {
	build := ctrl.NewControllerManagedBy(mgr).
		Named("lowlatencynode").
		For(&v1alpha1.LowLatencyNode{}, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&v1alpha1.LowLatencyNode{}, announceReports(r.recorder)).
		Watches(&corev1.Node{}, &handler.EnqueueRequestForObject{}, updated(changes.NodeMarked)).
		Watches(&v1alpha1.LowLatencyNodeProfile{}, handler.EnqueueRequestsFromMapFunc(r.reportsOfProfile),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.BypassNICPool{}, handler.EnqueueRequestsFromMapFunc(r.reportsOfPool),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.LatencyTest{}, r.nodesOfTest())
	return r.heartbeats.watch(build, handler.EnqueueRequestsFromMapFunc, reportOf).WithOptions(controller.Options{MaxConcurrentReconciles: parallelNodes}).Complete(r)
}

// setup watches what a pool is decided from.
func (r *PoolReconciler) setup(mgr ctrl.Manager) error {
	generation := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	changed := builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})
	build := ctrl.NewControllerManagedBy(mgr).
		Named("bypassnicpool").
		For(&v1alpha1.BypassNICPool{}, generation).
		Watches(&v1alpha1.BypassNICPool{}, handler.EnqueueRequestsFromMapFunc(r.allPools), generation).
		Watches(&v1alpha1.LowLatencyNodeProfile{}, handler.EnqueueRequestsFromMapFunc(r.allPools), generation).
		Watches(&v1alpha1.LowLatencyNode{}, r.pace.of(poolsOfReport),
			updated(changes.NICsReported)).
		Watches(&corev1.Node{}, r.pace.of(r.poolsOfNode),
			updated(changes.NodeServed))
	for _, kind := range r.served.poolObjectKinds() {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind)
		build = build.Watches(object, handler.EnqueueRequestsFromMapFunc(poolOfLabel), changed)
	}
	if r.served.classes {
		build = build.Watches(&resourcev1.ResourceSlice{}, r.pace.of(poolOfSlice), changed)
	}
	return r.heartbeats.watch(build, r.pace.of, poolsOfReport).Complete(r)
}

// poolOfSlice is the pool whose DRA driver has published a ResourceSlice.
func poolOfSlice(_ context.Context, object client.Object) []reconcile.Request {
	slice, ok := object.(*resourcev1.ResourceSlice)
	if !ok {
		return nil
	}
	if pool, ours := bypass.PoolOfDriver(slice.Spec.Driver); ours {
		return []reconcile.Request{requestFor(pool)}
	}
	return nil
}

// allPools are all pools: what changed may concern any of them.
func (r *PoolReconciler) allPools(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.poolsThat(ctx, func(*v1alpha1.BypassNICPool) bool { return true })
}

// poolsOfNode are the pools that select the node.
func (r *PoolReconciler) poolsOfNode(ctx context.Context, object client.Object) []reconcile.Request {
	node, ok := object.(*corev1.Node)
	if !ok {
		return nil
	}
	return r.poolsThat(ctx, func(pool *v1alpha1.BypassNICPool) bool { return fleet.Selects(pool.Spec.NodeSelector, node) })
}

func (r *PoolReconciler) poolsThat(ctx context.Context, concern func(*v1alpha1.BypassNICPool) bool) []reconcile.Request {
	pools, err := livingPools(ctx, r.client)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list BypassNICPools for an event")
		return nil
	}
	var requests []reconcile.Request
	for _, pool := range pools {
		if concern(pool) {
			requests = append(requests, requestFor(pool.Name))
		}
	}
	return requests
}

// poolsOfReport are the pools whose NICs a LowLatencyNode is to report.
func poolsOfReport(_ context.Context, object client.Object) []reconcile.Request {
	report, ok := object.(*v1alpha1.LowLatencyNode)
	if !ok {
		return nil
	}
	requests := make([]reconcile.Request, 0, len(report.Spec.BypassPools))
	for _, name := range report.Spec.BypassPools {
		requests = append(requests, requestFor(name))
	}
	return requests
}

// poolOfLabel is the pool that an object's label names.
func poolOfLabel(_ context.Context, object client.Object) []reconcile.Request {
	if name := object.GetLabels()[v1alpha1.LabelBypassPool]; name != "" {
		return []reconcile.Request{requestFor(name)}
	}
	return nil
}

// updated passes updates of objects that matter.
func updated[T client.Object](matters func(before, after T) bool) builder.WatchesOption {
	return builder.WithPredicates(predicate.Funcs{UpdateFunc: func(update event.UpdateEvent) bool {
		before, isKind := update.ObjectOld.(T)
		after, isSameKind := update.ObjectNew.(T)
		return isKind && isSameKind && matters(before, after)
	}})
}

func requestFor(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// profileOfReport is the profile that a LowLatencyNode names.
func profileOfReport(_ context.Context, object client.Object) []reconcile.Request {
	report, ok := object.(*v1alpha1.LowLatencyNode)
	if !ok {
		return nil
	}
	return []reconcile.Request{requestFor(report.Spec.Profile)}
}

// profileOfLabel is the profile that an object's label names.
func profileOfLabel(_ context.Context, object client.Object) []reconcile.Request {
	if name := object.GetLabels()[v1alpha1.LabelProfile]; name != "" {
		return []reconcile.Request{requestFor(name)}
	}
	return nil
}

// allProfiles are all profiles: what changed may concern any of them.
func (r *ProfileReconciler) allProfiles(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.profilesThat(ctx, func(*v1alpha1.LowLatencyNodeProfile) bool { return true })
}

// profilesOfNode are the profiles that select the node, and the one that governs it.
func (r *ProfileReconciler) profilesOfNode(ctx context.Context, object client.Object) []reconcile.Request {
	node, ok := object.(*corev1.Node)
	if !ok {
		return nil
	}
	return r.profilesThat(ctx, func(profile *v1alpha1.LowLatencyNodeProfile) bool {
		return fleet.Selects(profile.Spec.NodeSelector, node) || node.Labels[v1alpha1.LabelProfile] == profile.Name
	})
}

func (r *ProfileReconciler) profilesThat(ctx context.Context, concern func(*v1alpha1.LowLatencyNodeProfile) bool) []reconcile.Request {
	profiles, err := listProfiles(ctx, r.client)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list LowLatencyNodeProfiles for an event")
		return nil
	}
	var requests []reconcile.Request
	for i := range profiles {
		if concern(&profiles[i]) {
			requests = append(requests, requestFor(profiles[i].Name))
		}
	}
	return requests
}

// reportsOfProfile are the LowLatencyNodes of a profile.
func (r *NodeReconciler) reportsOfProfile(ctx context.Context, object client.Object) []reconcile.Request {
	return r.reportsThat(ctx, func(*v1alpha1.LowLatencyNode) bool { return true }, client.MatchingFields{indexProfile: object.GetName()})
}

// profilesOfTest are the profiles that ask for a test.
func (r *ProfileReconciler) profilesOfTest(ctx context.Context, object client.Object) []reconcile.Request {
	return r.profilesThat(ctx, func(profile *v1alpha1.LowLatencyNodeProfile) bool { return latencytest.AsksFor(profile, object) })
}

// nodesOfTest are the nodes whose gate a test decides. A test writes its status often while it runs: only nodes of which it says
// something else are looked at, unless the test itself has come, gone or changed.
func (r *NodeReconciler) nodesOfTest() handler.EventHandler {
	enqueue := func(ctx context.Context, queue requestQueue, test client.Object, concerns func(node string) bool) {
		profiles, err := listProfiles(ctx, r.client)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Failed to list LowLatencyNodeProfiles for an event")
			return
		}
		for i := range profiles {
			if !latencytest.AsksFor(&profiles[i], test) {
				continue
			}
			for _, request := range r.reportsOfProfile(ctx, &profiles[i]) {
				if concerns(request.Name) {
					queue.Add(request)
				}
			}
		}
	}
	every := func(string) bool { return true }
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue requestQueue) {
			enqueue(ctx, queue, e.Object, every)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue requestQueue) {
			enqueue(ctx, queue, e.Object, every)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue requestQueue) {
			before, isTest := e.ObjectOld.(*v1alpha1.LatencyTest)
			after, isStill := e.ObjectNew.(*v1alpha1.LatencyTest)
			if isTest && isStill {
				enqueue(ctx, queue, after, func(node string) bool { return latencytest.SaysElse(before, after, node) })
			}
		},
	}
}

// requestQueue is what event handlers put requests into.
type requestQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// reportsOfPool are the LowLatencyNodes that a pool serves.
func (r *NodeReconciler) reportsOfPool(ctx context.Context, object client.Object) []reconcile.Request {
	return r.reportsThat(ctx, func(report *v1alpha1.LowLatencyNode) bool {
		return slices.Contains(report.Spec.BypassPools, object.GetName())
	})
}

func (r *NodeReconciler) reportsThat(
	ctx context.Context, concern func(*v1alpha1.LowLatencyNode) bool, among ...client.ListOption,
) []reconcile.Request {
	var reports v1alpha1.LowLatencyNodeList
	if err := r.client.List(ctx, &reports, append(among, client.UnsafeDisableDeepCopy)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list LowLatencyNodes for an event")
		return nil
	}
	var requests []reconcile.Request
	for i := range reports.Items {
		if concern(&reports.Items[i]) {
			requests = append(requests, requestFor(reports.Items[i].Name))
		}
	}
	return requests
}
