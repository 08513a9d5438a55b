// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/status"
)

// TestStatusToAndFro lets statuses change faster than the cache shows it, and looks at what is there in the end.
func TestStatusToAndFro(t *testing.T) {
	type step struct {
		// next is the message of the condition that is decided, and cached the one that the cache shows.
		next, cached string
		// lost means that the answer to a write does not come.
		lost bool
	}
	cases := map[string]struct {
		steps  []step
		want   string
		writes int
	}{
		"nothing changes":                         {[]step{{next: "a", cached: "a"}, {next: "a", cached: "a"}}, "a", 0},
		"a change that the cache shows":           {[]step{{next: "b", cached: "a"}, {next: "b", cached: "b"}}, "b", 1},
		"to and fro before the cache shows it":    {[]step{{next: "b", cached: "a"}, {next: "a", cached: "a"}}, "a", 2},
		"to and fro, and no answer":               {[]step{{next: "b", cached: "a", lost: true}, {next: "a", cached: "a"}}, "a", 2},
		"to and fro, and on":                      {[]step{{next: "b", cached: "a"}, {next: "a", cached: "a"}, {next: "b", cached: "b"}}, "b", 3},
		"to and fro, and the cache comes late":    {[]step{{next: "b", cached: "a"}, {next: "a", cached: "a"}, {next: "a", cached: "b"}, {next: "a", cached: "a"}}, "a", 3},
		"what another writes is taken back":       {[]step{{next: "b", cached: "a"}, {next: "b", cached: "c"}}, "b", 2},
		"no write for what was written and shown": {[]step{{next: "b", cached: "a"}, {next: "b", cached: "b"}, {next: "b", cached: "b"}}, "b", 1},
	}
	conditions := func(message string) []metav1.Condition {
		return []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "R", Message: message}}
	}
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pool := &v1alpha1.BypassNICPool{ObjectMeta: metav1.ObjectMeta{Name: "x2", UID: "u"}}
			pool.Status.Conditions = conditions("a")
			store := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(pool).WithObjects(pool).Build()
			writes, lost := 0, false
			writer := interceptor.NewClient(store, interceptor.Funcs{
				SubResourceApply: func(ctx context.Context, c client.Client, kind string, object runtime.ApplyConfiguration, options ...client.SubResourceApplyOption) error {
					writes++
					err := c.SubResource(kind).Apply(ctx, object, options...)
					if lost {
						err = errors.Join(err, errors.New("the connection broke"))
					}
					return err
				},
			})
			r := &PoolReconciler{client: writer, recorder: events.NewFakeRecorder(9), statuses: newLastStatuses(status.SamePool)}
			for _, s := range tc.steps {
				cached := pool.DeepCopy()
				cached.Status.Conditions = conditions(s.cached)
				lost = s.lost
				err := r.report(t.Context(), cached, v1alpha1.BypassNICPoolStatus{Conditions: conditions(s.next)})
				if (err != nil) != s.lost {
					t.Fatal(err)
				}
			}
			there := &v1alpha1.BypassNICPool{}
			if err := store.Get(t.Context(), client.ObjectKeyFromObject(pool), there); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(conditions(tc.want), there.Status.Conditions); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if writes != tc.writes {
				t.Errorf("%d writes, want %d", writes, tc.writes)
			}
		})
	}
}

// TestStatusOfAnother: what was sent for an object says nothing about another of its name.
func TestStatusOfAnother(t *testing.T) {
	statuses := newLastStatuses(status.SamePool)
	pool := &v1alpha1.BypassNICPool{ObjectMeta: metav1.ObjectMeta{Name: "x2", UID: "first"}}
	empty, busy := &v1alpha1.BypassNICPoolStatus{}, &v1alpha1.BypassNICPoolStatus{ObservedGeneration: 1}
	if statuses.isWritten(pool, empty, busy) {
		t.Error("a status that differs needs no write")
	}
	pool.UID = "second"
	if !statuses.isWritten(pool, empty, empty) {
		t.Error("a status that is there is written because of another pool's")
	}
	pool.UID = "first"
	statuses.forget(client.ObjectKeyFromObject(pool))
	if !statuses.isWritten(pool, empty, empty) {
		t.Error("a status that is there is written because of a pool that is forgotten")
	}
}
