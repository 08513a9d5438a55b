// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift/manifests"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

func TestProfileOf(t *testing.T) {
	labelled := objects.MakeNode("n", v1alpha1.LabelProfile, "trading")
	want := []reconcile.Request{requestFor("trading")}
	if diff := cmp.Diff(want, profileOfLabel(t.Context(), labelled)); diff != "" {
		t.Errorf("profileOfLabel() mismatch (-want +got):\n%s", diff)
	}
	if got := profileOfLabel(t.Context(), objects.MakeNode("n")); len(got) > 0 {
		t.Errorf("profileOfLabel() = %v, want none", got)
	}
	if diff := cmp.Diff(want, profileOfReport(t.Context(), objects.MakeReport("n", "trading").Obj())); diff != "" {
		t.Errorf("profileOfReport() mismatch (-want +got):\n%s", diff)
	}
	if got := profileOfReport(t.Context(), labelled); len(got) > 0 {
		t.Errorf("profileOfReport() of a Node = %v, want none", got)
	}
	if got := profileOf(labelled); len(got) > 0 {
		t.Errorf("profileOf() of a Node = %v, want none", got)
	}
}

func TestStripNode(t *testing.T) {
	node := objects.MakeNode("n")
	node.Annotations = map[string]string{"machineconfiguration.openshift.io/currentConfig": "rendered-x-1", "other": "large"}
	got, err := stripNode(node)
	if stripped, isNode := got.(*corev1.Node); err != nil || !isNode || len(stripped.Annotations) != 1 {
		t.Errorf("stripNode() = %+v, %v, want the annotation of the machine-config daemon alone", got, err)
	}
	if other, err := stripNode("tombstone"); err != nil || other != "tombstone" {
		t.Errorf("stripNode() of something else = %v, %v", other, err)
	}
}

func TestCachedLeases(t *testing.T) {
	objects, err := cachedObjects(platform.Kubernetes, Options{Namespace: "operator", AgentNamespace: "agents"})
	if err != nil {
		t.Fatal(err)
	}
	var namespaces []string
	for object, by := range objects {
		if _, isLease := object.(*coordinationv1.Lease); isLease {
			namespaces = slices.AppendSeq(namespaces, maps.Keys(by.Namespaces))
		}
	}
	if diff := cmp.Diff([]string{"agents"}, namespaces); diff != "" {
		t.Errorf("Leases are cached of other namespaces than that of the agents (-want +got):\n%s", diff)
	}
}

// TestCachedPods: pods and Jobs are cached of latency tests only.
func TestCachedPods(t *testing.T) {
	objects, err := cachedObjects(platform.Kubernetes, Options{Namespace: "operator", AgentNamespace: "agents"})
	if err != nil {
		t.Fatal(err)
	}
	for object, by := range objects {
		switch object.(type) {
		case *batchv1.Job, *corev1.Pod:
			if by.Label == nil || by.Label.String() != v1alpha1.LabelLatencyTest {
				t.Errorf("%T is cached as %+v, want those of latency tests", object, by)
			}
		}
	}
}

func TestCachedObjects(t *testing.T) {
	onKubernetes, err := cachedObjects(platform.Kubernetes, Options{Namespace: "operator", AgentNamespace: "agents"})
	if err != nil {
		t.Fatal(err)
	}
	if len(onKubernetes) != 7 {
		t.Errorf("on Kubernetes %d kinds are restricted, want Node, ConfigMap, Lease, DaemonSet, Job, Pod and RuntimeClass", len(onKubernetes))
	}
	onOpenShift, err := cachedObjects(platform.OpenShift, Options{Namespace: "operator", AgentNamespace: "agents"})
	if err != nil {
		t.Fatal(err)
	}
	selected := map[string]cache.ByObject{}
	for object, by := range onOpenShift {
		if plain, ok := object.(*unstructured.Unstructured); ok {
			selected[plain.GetKind()] = by
		}
	}
	for _, kind := range []string{"MachineConfig", "KubeletConfig", "RuntimeClass"} {
		if by, found := selected[kind]; !found || by.Label == nil || by.Label.String() != v1alpha1.LabelProfile {
			t.Errorf("%s is cached as %+v, want those with the label of a profile", kind, by)
		}
	}
	if _, found := selected["Tuned"].Namespaces[manifests.TunedNamespace]; !found {
		t.Errorf("Tuned is cached as %+v, want namespace %s", selected["Tuned"], manifests.TunedNamespace)
	}
}
