// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/status"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

// returning is a platform that says what is left, and what has failed.
type returning struct {
	platform.Platform
	rest fleet.Remainder
	err  error
}

func (r returning) Return(context.Context, *fleet.Intent) (fleet.Remainder, error) {
	return r.rest, r.err
}

// deleted is a profile that is being deleted, with one node that has its label and a LowLatencyNode.
func deleted(t *testing.T, p platform.Platform, funcs interceptor.Funcs) (*ProfileReconciler, *profileWorld) {
	t.Helper()
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	profile := objects.MakeProfile("trading").Selecting(v1alpha1.Labels{"trading": ""}).Obj()
	profile.Finalizers, profile.DeletionTimestamp = []string{v1alpha1.Finalizer}, new(metav1.Now())
	node := objects.MakeNode("n1", "trading", "")
	node.Labels[v1alpha1.LabelProfile] = "trading"
	report := objects.MakeReport("n1", "trading").Verified("h", "TTT").Obj()
	writer := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(profile, report).WithObjects(profile, node, report).
		WithInterceptorFuncs(funcs).Build()
	r := &ProfileReconciler{
		client: writer, platform: p, recorder: events.NewFakeRecorder(9), clock: clock.RealClock{},
		statuses: newLastStatuses(status.SameProfile),
	}
	w := &profileWorld{ProfileWorld: fleet.ProfileWorld{
		Profile: profile, Nodes: map[string]*corev1.Node{"n1": node}, Reports: map[string]*v1alpha1.LowLatencyNode{"n1": report},
	}}
	return r, w
}

// TestGiveBackSaysWhatItWaitsFor also where something has failed: the error alone is in a log that the profile's user does not see.
func TestGiveBackSaysWhatItWaitsFor(t *testing.T) {
	for name, failure := range map[string]error{"nothing has failed": nil, "something has failed": errors.New("the API server is away")} {
		t.Run(name, func(t *testing.T) {
			rest := fleet.Remainder{Nodes: []string{"n1"}, Waiting: "node n1: its pods are evicted"}
			r, w := deleted(t, returning{rest: rest, err: failure}, interceptor.Funcs{})
			if _, err := r.giveBack(t.Context(), w); !errors.Is(err, failure) {
				t.Errorf("giveBack() = %v", err)
			}
			written := &v1alpha1.LowLatencyNodeProfile{}
			if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(w.Profile), written); err != nil {
				t.Fatal(err)
			}
			if c := meta.FindStatusCondition(written.Status.Conditions, v1alpha1.ConditionProgressing); c == nil || !strings.Contains(c.Message, "its pods are evicted") {
				t.Errorf("Progressing is %+v", c)
			}
		})
	}
}

// TestReportStaysWithItsLabel: where a node's label could not be taken away, its LowLatencyNode stays until it is. Without one, nobody
// could tell any more whether the node was given back.
func TestReportStaysWithItsLabel(t *testing.T) {
	conflict := errors.New("the object has been modified")
	fails := true
	r, w := deleted(t, returning{}, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if _, isNode := object.(*corev1.Node); isNode && fails {
				return conflict
			}
			return c.Patch(ctx, object, patch, options...)
		},
	})
	isThere := func() bool {
		return r.client.Get(t.Context(), client.ObjectKey{Name: "n1"}, &v1alpha1.LowLatencyNode{}) == nil
	}
	look := func() {
		t.Helper()
		node := &corev1.Node{}
		if err := r.client.Get(t.Context(), client.ObjectKey{Name: "n1"}, node); err != nil {
			t.Fatal(err)
		}
		w.Nodes["n1"] = node
	}
	if _, err := r.giveBack(t.Context(), w); !errors.Is(err, conflict) || !isThere() {
		t.Fatalf("giveBack() = %v, the LowLatencyNode is there: %v", err, isThere())
	}
	fails = false
	for pass, wantThere := range []bool{true, false} {
		look()
		if _, err := r.giveBack(t.Context(), w); err != nil || isThere() != wantThere {
			t.Fatalf("pass %d: giveBack() = %v, the LowLatencyNode is there: %v", pass, err, isThere())
		}
	}
}
