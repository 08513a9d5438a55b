// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift/manifests"
)

const currentConfig = "machineconfiguration.openshift.io/currentConfig"

func TestNodePredicates(t *testing.T) {
	cases := map[string]struct {
		change                            func(*corev1.Node)
		wantMoved, wantMarked, wantServed bool
	}{
		"a heartbeat": {change: func(n *corev1.Node) {
			n.ResourceVersion = "2"
			n.Annotations = map[string]string{"volumes": "attached"}
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: "MemoryPressure", Status: "False"})
			n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
			n.Status.Capacity = n.Status.Allocatable
		}},
		"the kubelet stops": {change: func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: "Ready", Status: "False"})
		}, wantMarked: true, wantServed: true},
		"another boot": {change: func(n *corev1.Node) { n.Status.NodeInfo.BootID = "b2" }, wantMarked: true},
		"a device plugin registers": {change: func(n *corev1.Node) {
			n.Status.Allocatable = corev1.ResourceList{"lowlatency.dev/x2": resource.MustParse("2")}
		}, wantMarked: true},
		"a device plugin is forgotten": {change: func(n *corev1.Node) {
			n.Status.Capacity = corev1.ResourceList{"lowlatency.dev/x2": resource.MustParse("0")}
		}, wantServed: true},
		"our note": {change: func(n *corev1.Node) {
			n.Annotations = map[string]string{v1alpha1.AnnotationStarted: "b1"}
		}, wantMoved: true, wantMarked: true},
		"a label":           {change: func(n *corev1.Node) { n.Labels["new"] = "" }, wantMoved: true, wantMarked: true, wantServed: true},
		"another node":      {change: func(n *corev1.Node) { n.UID = "other" }, wantMoved: true, wantMarked: true, wantServed: true},
		"the daemon's word": {change: func(n *corev1.Node) { n.Annotations = map[string]string{currentConfig: "x"} }, wantMoved: true},
		"a taint":           {change: func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "x"}} }, wantMarked: true},
		"our taint":         {change: func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{ourTaint()} }, wantMoved: true, wantMarked: true},
		"our condition": {change: func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: v1alpha1.NodeConditionDeJittered, Status: "True"})
		}, wantMoved: true, wantMarked: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := makeNode("n", "a", "b")
			after := before.DeepCopy()
			tc.change(after)
			update := event.UpdateEvent{ObjectOld: before, ObjectNew: after}
			if got := nodeMoved().Update(update); got != tc.wantMoved {
				t.Errorf("nodeMoved() = %v, want %v", got, tc.wantMoved)
			}
			if got := nodeMarked().Update(update); got != tc.wantMarked {
				t.Errorf("nodeMarked() = %v, want %v", got, tc.wantMarked)
			}
			if got := nodeServed().Update(update); got != tc.wantServed {
				t.Errorf("nodeServed() = %v, want %v", got, tc.wantServed)
			}
		})
	}
}

func TestProfileOf(t *testing.T) {
	labelled := makeNode("n", v1alpha1.LabelProfile, "trading")
	want := []reconcile.Request{requestFor("trading")}
	if diff := cmp.Diff(want, profileOfLabel(t.Context(), labelled)); diff != "" {
		t.Errorf("profileOfLabel() mismatch (-want +got):\n%s", diff)
	}
	if got := profileOfLabel(t.Context(), makeNode("n")); len(got) > 0 {
		t.Errorf("profileOfLabel() = %v, want none", got)
	}
	if diff := cmp.Diff(want, profileOfReport(t.Context(), makeReport("n", "trading").obj())); diff != "" {
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
	node := makeNode("n", "a", "b")
	node.ResourceVersion = "7"
	node.Annotations = map[string]string{currentConfig: "rendered-x-1", v1alpha1.AnnotationStarted: "b1", "other": "large"}
	node.Spec = corev1.NodeSpec{PodCIDR: "10.0.0.0/24", Taints: []corev1.Taint{{Key: "x"}}}
	node.Status = corev1.NodeStatus{
		Images: []corev1.ContainerImage{{SizeBytes: 1}},
		Conditions: []corev1.NodeCondition{
			{Type: "MemoryPressure"}, {Type: "Ready", Status: "True", Message: "kubelet is ready", LastHeartbeatTime: metav1.Now()},
			{Type: v1alpha1.NodeConditionNUMAAligned, Status: "True"},
		},
		Capacity:    corev1.ResourceList{"cpu": resource.MustParse("4"), "lowlatency.dev/x2": resource.MustParse("3")},
		Allocatable: corev1.ResourceList{"cpu": resource.MustParse("4"), "lowlatency.dev/x2": resource.MustParse("2")},
		NodeInfo:    corev1.NodeSystemInfo{BootID: "b1", KernelVersion: "6.12"},
	}
	got, err := stripNode(node)
	if err != nil {
		t.Fatal(err)
	}
	want := makeNode("n", "a", "b")
	want.ResourceVersion = "7"
	want.Annotations = map[string]string{currentConfig: "rendered-x-1", v1alpha1.AnnotationStarted: "b1"}
	want.Spec.Taints = []corev1.Taint{{Key: "x"}}
	want.Status.Conditions = []corev1.NodeCondition{{Type: "Ready", Status: "True"}, {Type: v1alpha1.NodeConditionNUMAAligned, Status: "True"}}
	want.Status.Capacity = corev1.ResourceList{"lowlatency.dev/x2": resource.MustParse("3")}
	want.Status.Allocatable = corev1.ResourceList{"lowlatency.dev/x2": resource.MustParse("2")}
	want.Status.NodeInfo.BootID = "b1"
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("stripNode() mismatch (-want +got):\n%s", diff)
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

func TestCachedObjects(t *testing.T) {
	onKubernetes, err := cachedObjects(platform.Kubernetes, Options{Namespace: "operator", AgentNamespace: "agents"})
	if err != nil {
		t.Fatal(err)
	}
	if len(onKubernetes) != 4 {
		t.Errorf("on Kubernetes %d kinds are restricted, want Node, ConfigMap, Lease and DaemonSet", len(onKubernetes))
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
