// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/latencytest"
)

// jobOf is a Job of the test with the UID, with the label of test quiet.
func jobOf(name, test string, conditions ...batchv1.JobCondition) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "tests", Name: name, UID: types.UID(name), Labels: map[string]string{v1alpha1.LabelLatencyTest: "quiet"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "LatencyTest", Name: "quiet", UID: types.UID(test), Controller: new(true)}},
		},
		Status: batchv1.JobStatus{Conditions: conditions},
	}
}

// namesOfJobs are those that are there.
func namesOfJobs(t *testing.T, reader client.Reader) []string {
	t.Helper()
	var jobs batchv1.JobList
	if err := reader.List(t.Context(), &jobs); err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(jobs.Items))
	for i := range jobs.Items {
		names = append(names, jobs.Items[i].Name)
	}
	return names
}

// TestJobsOfADeletedTest end, although a finalizer keeps the test, by which the garbage collector leaves them alone.
func TestJobsOfADeletedTest(t *testing.T) {
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	test := &v1alpha1.LatencyTest{ObjectMeta: metav1.ObjectMeta{
		Namespace: "tests", Name: "quiet", UID: "test-1", Finalizers: []string{"example.com/hold"}, DeletionTimestamp: new(metav1.Now()),
	}}
	done := batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}
	store := fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(test, jobOf("runs", "test-1"), jobOf("has-ended", "test-1", done), jobOf("of-another", "test-2")).Build()
	r := &TestReconciler{client: store, live: store, statuses: newLastStatuses(latencytest.SameStatus)}
	for range 2 {
		if _, err := r.reconcile(t.Context(), client.ObjectKeyFromObject(test)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"has-ended", "of-another"}, namesOfJobs(t, store)); diff != "" {
			t.Errorf("Jobs that are there (-want +got):\n%s", diff)
		}
	}
}

// TestJobsThatMayNotBeDeleted: one that a policy keeps is told of, and keeps neither the others nor what is known from being seen to. Where nobody answers, all is tried again.
func TestJobsThatMayNotBeDeleted(t *testing.T) {
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	refused := apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "kept", errors.New("denied by a policy"))
	for name, tc := range map[string]struct {
		refusal      error
		isKept, isOK bool
		left         []string
	}{
		"by a policy":    {refused, true, true, []string{"kept"}},
		"nobody answers": {apierrors.NewTimeoutError("no answer", 1), false, false, []string{"kept", "other"}},
		"it is gone":     {apierrors.NewNotFound(schema.GroupResource{Group: "batch", Resource: "jobs"}, "kept"), false, true, []string{"kept"}},
	} {
		t.Run(name, func(t *testing.T) {
			kept, other := jobOf("kept", "test-1"), jobOf("other", "test-1")
			store := fake.NewClientBuilder().WithScheme(scheme).WithObjects(kept, other).WithInterceptorFuncs(interceptor.Funcs{
				Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
					if object.GetName() == "kept" {
						return tc.refusal
					}
					return c.Delete(ctx, object, options...)
				},
			}).Build()
			world := &latencytest.World{Test: &v1alpha1.LatencyTest{ObjectMeta: metav1.ObjectMeta{Namespace: "tests", Name: "quiet", UID: "test-1"}}}
			_, isKept, err := (&TestReconciler{client: store}).carryOut(t.Context(), world, &latencytest.Decision{Stop: []*batchv1.Job{kept, other}})
			if (isKept != nil) != tc.isKept || (err == nil) != tc.isOK {
				t.Errorf("kept: %v; error: %v", isKept, err)
			}
			if diff := cmp.Diff(tc.left, namesOfJobs(t, store)); diff != "" {
				t.Errorf("Jobs that are there (-want +got):\n%s", diff)
			}
		})
	}
}
