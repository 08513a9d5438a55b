// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

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

// TestRefusedJobs: a Job that the API server does not make keeps neither what is known of other nodes from the status, nor other Jobs from being made. What it has
// no word for is tried again as a whole.
func TestRefusedJobs(t *testing.T) {
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	const runs = v1alpha1.LatencyRunning
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	for name, tc := range map[string]struct {
		refusal error
		// want is what the status says of the nodes, the second of which is refused; nil for none.
		want []v1alpha1.LatencyActivity
		made int
	}{
		"by a quota":                     {apierrors.NewForbidden(jobs, "quiet", errors.New("exceeded quota")), []v1alpha1.LatencyActivity{runs, v1alpha1.LatencyIdle, runs}, 2},
		"by a webhook":                   {apierrors.NewBadRequest("admission webhook denied the request"), []v1alpha1.LatencyActivity{runs, v1alpha1.LatencyIdle, runs}, 2},
		"by a webhook that is not there": {apierrors.NewInternalError(errors.New("failed calling webhook")), []v1alpha1.LatencyActivity{runs, v1alpha1.LatencyIdle, runs}, 2},
		"it is there":                    {apierrors.NewAlreadyExists(jobs, "quiet"), []v1alpha1.LatencyActivity{runs, runs, v1alpha1.LatencyWaiting}, 1},
		"nobody answers":                 {apierrors.NewTimeoutError("no answer", 1), nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			test := &v1alpha1.LatencyTest{ObjectMeta: metav1.ObjectMeta{Namespace: "tests", Name: "quiet", UID: "test-1"}}
			test.Spec = v1alpha1.LatencyTestSpec{
				Kind: v1alpha1.LatencyTestJitter, Nodes: v1alpha1.LatencyTestNodes{Names: []string{"node-1", "node-2", "node-3"}}, MaximumParallelNodes: 2,
			}
			world := &latencytest.World{Test: test, Image: "registry.example/operator:v1", Now: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)}
			for i := range 3 {
				node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i+1), UID: types.UID(strconv.Itoa(i))}}
				node.Status.NodeInfo.KernelVersion = "6.12"
				node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
				world.Nodes = append(world.Nodes, node)
			}
			writer := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
					if object.GetAnnotations()[v1alpha1.AnnotationNode] == "node-2" {
						return tc.refusal
					}
					return c.Create(ctx, object, options...)
				},
			}).Build()
			decision, _, err := (&TestReconciler{client: writer}).carryOut(t.Context(), world, latencytest.Decide(world))
			if (err == nil) != (tc.want != nil) {
				t.Fatal(err)
			}
			got := make([]v1alpha1.LatencyActivity, 0, len(decision.Status.Results))
			for i := range decision.Status.Results {
				got = append(got, decision.Status.Results[i].Activity)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" && tc.want != nil {
				t.Errorf("nodes (-want +got):\n%s%+v", diff, decision.Status.Results)
			}
			var made batchv1.JobList
			if err := writer.List(t.Context(), &made); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.made, len(made.Items)); diff != "" {
				t.Errorf("Jobs that are made (-want +got):\n%s", diff)
			}
		})
	}
}
