// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/apply"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/changes"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/latencytest"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/status"
)

// TestReconciler measures the nodes of a LatencyTest with Jobs, and writes down what they have measured. The Jobs are owned by the
// test and go with it.
type TestReconciler struct {
	client client.Client
	// live reads from the API server, past the cache.
	live client.Reader
	// image is that of the operator, trafficImage the one that measures over the network; "" when it is not known.
	image, trafficImage string
	// namespace is where the manager runs.
	namespace string
	// agentNamespace is the one in which pods may use the network namespace of a node.
	agentNamespace string
	recorder       events.EventRecorder
	clock          clock.PassiveClock
	statuses       *lastStatuses[v1alpha1.LatencyTestStatus]
}

var _ reconcile.Reconciler = (*TestReconciler)(nil)

// Jobs run in the namespaces of the tests, wherever those are. An admission policy bounds what a Job of the operator may be
// (config/rbac/manager_admission_policy.yaml). Of Pods, the cache holds those of tests only.
//
// +kubebuilder:rbac:groups=lowlatency.dev,resources=latencytests,verbs=get;list;watch
// +kubebuilder:rbac:groups=lowlatency.dev,resources=latencytests/status,verbs=patch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",namespace=lowlatency-operator-system,resources=podtemplates,verbs=list

// Reconcile brings one test a step further.
func (r *TestReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	again, err := r.reconcile(ctx, request.NamespacedName)
	return withoutConflict(ctx, ctrl.Result{RequeueAfter: again}, err)
}

// reconcile returns when to look again although nothing happens; zero means never.
func (r *TestReconciler) reconcile(ctx context.Context, key client.ObjectKey) (time.Duration, error) {
	test, err := get(ctx, r.client, key, &v1alpha1.LatencyTest{})
	if test == nil || err != nil {
		r.statuses.forget(key)
		return 0, err
	}
	if !test.DeletionTimestamp.IsZero() {
		r.statuses.forget(key)
		return 0, r.stopAll(ctx, test)
	}
	world, err := r.gather(ctx, test)
	if err != nil {
		return 0, err
	}
	decision := latencytest.Decide(world)
	if len(decision.Start) > 0 {
		// Another test may have begun on a node since the cache was filled.
		if world.Elsewhere, err = r.runningElsewhere(ctx, r.live, test); err != nil {
			return 0, err
		}
		decision = latencytest.Decide(world)
	}
	decision, kept, err := r.carryOut(ctx, world, decision)
	if err != nil {
		return 0, err
	}
	return decision.Again, errors.Join(kept, r.report(ctx, test, &decision.Status))
}

// stopAll deletes the Jobs of a test that is being deleted and are under way. A finalizer may keep the test for as long as somebody likes, and the garbage collector leaves
// Jobs alone until it is gone, or for good where it is deleted with --cascade=orphan.
func (r *TestReconciler) stopAll(ctx context.Context, test *v1alpha1.LatencyTest) error {
	w := &latencytest.World{Test: test}
	if err := r.gatherJobs(ctx, w); err != nil {
		return err
	}
	var problems []error
	for _, job := range latencytest.UnderWay(w) {
		problems = append(problems, r.stop(ctx, test, job))
	}
	return errors.Join(problems...)
}

// carryOut deletes and makes Jobs. A Job that the API server does not make is decided anew, so that the status says it. It returns what is decided in the end, and
// in kept why Jobs are still there: what else was found is written down all the same.
func (r *TestReconciler) carryOut(ctx context.Context, world *latencytest.World, decision *latencytest.Decision) (_ *latencytest.Decision, kept, err error) {
	world.Refused = map[string]string{}
	tried := map[string]bool{}
	for {
		refusals := len(world.Refused)
		refused, err := r.act(ctx, world, decision, tried)
		kept = errors.Join(kept, refused)
		if err != nil || len(world.Refused) == refusals {
			return decision, kept, err
		}
		decision = latencytest.Decide(world)
	}
}

func (r *TestReconciler) gather(ctx context.Context, test *v1alpha1.LatencyTest) (*latencytest.World, error) {
	trafficImage, err := r.imageOfTraffic(ctx, test.Spec.Kind)
	if err != nil {
		return nil, err
	}
	w := &latencytest.World{
		Test: test, Image: r.image, TrafficImage: trafficImage, HostNamespace: r.agentNamespace, Now: r.clock.Now().Truncate(time.Second),
		Reports: map[string]*v1alpha1.LowLatencyNode{},
	}
	reports, err := listReports(ctx, r.client)
	if err != nil {
		return nil, err
	}
	for i := range reports {
		w.Reports[reports[i].Name] = &reports[i]
	}
	if w.Nodes, err = listNodes(ctx, r.client); err != nil {
		return nil, err
	}
	if w.Profiles, err = listProfiles(ctx, r.client); err != nil {
		return nil, err
	}
	if w.Pools, err = livingPools(ctx, r.client); err != nil {
		return nil, err
	}
	if w.Elsewhere, err = r.runningElsewhere(ctx, r.client, test); err != nil {
		return nil, err
	}
	return w, r.gatherJobs(ctx, w)
}

// imageOfTraffic is the image that measures over the network; "" when it is not known, or the test does not.
func (r *TestReconciler) imageOfTraffic(ctx context.Context, kind v1alpha1.LatencyTestKind) (string, error) {
	if r.trafficImage != "" || kind == v1alpha1.LatencyTestJitter {
		return r.trafficImage, nil
	}
	var templates corev1.PodTemplateList
	labels := client.MatchingLabels{v1alpha1.LabelComponent: v1alpha1.ComponentTrafficImage}
	if err := r.live.List(ctx, &templates, client.InNamespace(r.namespace), labels); err != nil {
		return "", fmt.Errorf("looking for the image that measures over the network: %w", err)
	}
	for i := range templates.Items {
		for _, container := range templates.Items[i].Template.Spec.Containers {
			return container.Image, nil
		}
	}
	return "", nil
}

// gatherJobs reads what carries the label of the test, whoever has made it.
func (r *TestReconciler) gatherJobs(ctx context.Context, w *latencytest.World) error {
	ofTest := []client.ListOption{client.InNamespace(w.Test.Namespace), client.MatchingLabels{v1alpha1.LabelLatencyTest: w.Test.Name}}
	var jobs batchv1.JobList
	if err := r.client.List(ctx, &jobs, ofTest...); err != nil {
		return fmt.Errorf("listing the Jobs of LatencyTest %s: %w", w.Test.Name, err)
	}
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods, ofTest...); err != nil {
		return fmt.Errorf("listing the Pods of LatencyTest %s: %w", w.Test.Name, err)
	}
	w.Jobs, w.Pods = jobs.Items, pods.Items
	return nil
}

// runningElsewhere is what other tests use, by a reader of the cache or of the API server. It changes nothing that it reads.
func (r *TestReconciler) runningElsewhere(ctx context.Context, reader client.Reader, test *v1alpha1.LatencyTest) (latencytest.InUse, error) {
	var tests v1alpha1.LatencyTestList
	var jobs batchv1.JobList
	var pods corev1.PodList
	ofTests := client.HasLabels{v1alpha1.LabelLatencyTest}
	if err := errors.Join(reader.List(ctx, &tests, client.UnsafeDisableDeepCopy), reader.List(ctx, &jobs, ofTests, client.UnsafeDisableDeepCopy),
		reader.List(ctx, &pods, ofTests, client.UnsafeDisableDeepCopy)); err != nil {
		return latencytest.InUse{}, fmt.Errorf("listing LatencyTests, their Jobs and their Pods: %w", err)
	}
	used := latencytest.RunningElsewhere(tests.Items, test)
	known := jobs.Items
	for _, key := range latencytest.UnknownJobs(jobs.Items, pods.Items) {
		// Whoever has made it may have given the label to its pods alone.
		job, err := get(ctx, r.live, key, &batchv1.Job{})
		if err != nil {
			return latencytest.InUse{}, err
		}
		if job != nil {
			known = append(known, *job)
		}
	}
	used.Leave(tests.Items, known, pods.Items)
	return used, nil
}

// act deletes and makes Jobs that it has not tried to yet, and notes those that the API server refuses to make; kept says which it refuses to delete. A Job never changes
// once it is there, so it is created and not applied; one that is there already is looked at when it has ended.
func (r *TestReconciler) act(ctx context.Context, world *latencytest.World, decision *latencytest.Decision, tried map[string]bool) (kept, err error) {
	test := world.Test
	for _, job := range decision.Stop {
		if tried[job.Name] {
			continue
		}
		tried[job.Name] = true
		switch err := r.stop(ctx, test, job); {
		case isRefusal(err):
			kept = errors.Join(kept, err)
		case err != nil:
			return kept, err
		}
	}
	for _, job := range decision.Start {
		if tried[job.Name] {
			continue
		}
		tried[job.Name] = true
		switch err := r.client.Create(ctx, job, client.FieldOwner(v1alpha1.FieldManager)); {
		case err == nil || apierrors.IsAlreadyExists(err):
		case isRefusal(err):
			world.Refused[job.Name] = err.Error()
		default:
			return kept, fmt.Errorf("creating Job %s of LatencyTest %s: %w", job.Name, test.Name, err)
		}
	}
	return kept, nil
}

// stop deletes a Job, which is there until its pods have ended.
func (r *TestReconciler) stop(ctx context.Context, test *v1alpha1.LatencyTest, job *batchv1.Job) error {
	err := r.client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationForeground), client.Preconditions{UID: &job.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Job %s of LatencyTest %s: %w", job.Name, test.Name, err)
	}
	return nil
}

// isRefusal reports whether a Job is not made or deleted however often it is tried in a row: by a quota, a policy, or a webhook that refuses it or does not answer.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsInternalError(err)
}

// report writes the status, if it has changed, and tells of transitions. It fails with a conflict when the test has changed since
// it was read: an old view must not forget a Job that runs.
func (r *TestReconciler) report(ctx context.Context, test *v1alpha1.LatencyTest, next *v1alpha1.LatencyTestStatus) error {
	if r.statuses.isWritten(test, &test.Status, next) {
		return nil
	}
	object, err := apply.Status(v1alpha1.GroupVersion.WithKind("LatencyTest"), test, next)
	if err != nil {
		return err
	}
	object.SetResourceVersion(test.ResourceVersion)
	err = r.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of LatencyTest %s/%s: %w", test.Namespace, test.Name, err)
	}
	announce(r.recorder, test, nil, actionMeasure, status.Announcements(test.Status.Conditions, next.Conditions)...)
	return nil
}

// setup watches what a test is decided from. Tests are decided one after the other, so that two never begin on one node.
func (r *TestReconciler) setup(mgr ctrl.Manager) error {
	generation := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	all := handler.EnqueueRequestsFromMapFunc(r.allTests)
	return ctrl.NewControllerManagedBy(mgr).
		Named("latencytest").
		For(&v1alpha1.LatencyTest{}, generation).
		Watches(&v1alpha1.LatencyTest{}, all, updated(latencytest.Freed)).
		Watches(&v1alpha1.LowLatencyNodeProfile{}, all, generation).
		Watches(&v1alpha1.BypassNICPool{}, all, generation).
		Watches(&v1alpha1.LowLatencyNode{}, all, updated(changes.NICsReported)).
		Watches(&corev1.Node{}, all, updated(changes.NodeMarked)).
		Watches(&batchv1.Job{}, handler.EnqueueRequestsFromMapFunc(testOfLabel)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(testOfLabel)).
		Complete(r)
}

// testOfLabel is the test that a Job or a Pod names.
func testOfLabel(_ context.Context, object client.Object) []reconcile.Request {
	name := object.GetLabels()[v1alpha1.LabelLatencyTest]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: object.GetNamespace(), Name: name}}}
}

// allTests are all tests: what changed may concern any of them.
func (r *TestReconciler) allTests(ctx context.Context, _ client.Object) []reconcile.Request {
	var tests v1alpha1.LatencyTestList
	if err := r.client.List(ctx, &tests, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list LatencyTests for an event")
		return nil
	}
	requests := make([]reconcile.Request, 0, len(tests.Items))
	for i := range tests.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&tests.Items[i])})
	}
	return requests
}
