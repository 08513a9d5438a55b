// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

func TestRenderOwnsItsObjects(t *testing.T) {
	w := servedWorld(t, objects.MakePool("x2").Obj(), objects.MakeNode("n1", "role", "trading"))
	w.Pool.Spec.NetworkAttachment = &v1alpha1.NetworkAttachmentSpec{Type: v1alpha1.AttachmentHostDevice, Namespaces: []string{"apps"}}
	r := &PoolReconciler{namespace: "operator", agentNamespace: "agents"}
	d := fleet.DecidePool(&w.PoolWorld, fleet.NewSelections())
	if _, err := r.render(w, d); !isUnrenderable(err) || !strings.Contains(err.Error(), "--image") {
		t.Errorf("without an image the error is %v", err)
	}
	r.image = "operator:v1"
	objects, err := r.render(w, d)
	if err != nil {
		t.Fatal(err)
	}
	expectOwned(t, objects, 4)
	if rest := (servedKinds{}).among(objects); len(rest) != 3 {
		t.Errorf("%d objects are left without network attachments, want 3", len(rest))
	}
	r.agentNamespace = "operator"
	if _, err := r.render(w, d); !isUnrenderable(err) {
		t.Errorf("an input that cannot be rendered makes the error %v", err)
	}
}

// expectOwned checks that the pool owns so many objects, and that each has a digest of its own.
func expectOwned(t *testing.T, objects []*unstructured.Unstructured, want int) {
	t.Helper()
	digests := map[string]bool{}
	for _, object := range objects {
		if owners := object.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != "uid-x2" || owners[0].BlockOwnerDeletion != nil {
			t.Errorf("%s has the owners %v", object.GetKind(), owners)
		}
		digests[object.GetAnnotations()[v1alpha1.AnnotationDigest]] = true
	}
	if len(objects) != want || len(digests) != want || digests[""] {
		t.Errorf("%d objects have the digests %v, want %d of each", len(objects), digests, want)
	}
}

func isUnrenderable(err error) bool {
	_, is := errors.AsType[unrenderable](err)
	return is
}

func TestPoolWatches(t *testing.T) {
	report := objects.MakeReport("n", "trading").Obj()
	report.Spec.BypassPools = []string{"a", "b"}
	want := []reconcile.Request{requestFor("a"), requestFor("b")}
	if diff := cmp.Diff(want, poolsOfReport(t.Context(), report)); diff != "" {
		t.Errorf("poolsOfReport() mismatch (-want +got):\n%s", diff)
	}
	labelled := objects.MakeNode("n", v1alpha1.LabelBypassPool, "a")
	if diff := cmp.Diff(want[:1], poolOfLabel(t.Context(), labelled)); diff != "" {
		t.Errorf("poolOfLabel() mismatch (-want +got):\n%s", diff)
	}
	if got := append(poolsOfReport(t.Context(), labelled), poolOfLabel(t.Context(), report)...); len(got) > 0 {
		t.Errorf("other objects make the requests %v", got)
	}
}

func TestStripPlan(t *testing.T) {
	config := func(label string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"labels": map[string]any{label: "x"}}, "data": map[string]any{"key": "text"},
		}}
	}
	for label, want := range map[string]bool{v1alpha1.LabelProfile: false, v1alpha1.LabelBypassPool: true} {
		object := config(label)
		if _, err := stripPlan(object); err != nil {
			t.Fatal(err)
		}
		if _, got := object.Object["data"]; got != want {
			t.Errorf("a ConfigMap with the label %s keeps its data: %v, want %v", label, got, want)
		}
	}
}
