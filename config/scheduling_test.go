// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lowlatency-dev/lowlatency-operator/hack/kustomization"
)

// These are what OpenShift's workload partitioning goes by: pods with the annotation, in a namespace that allows it, run on the CPUs of
// the platform (openshift/enhancements, management-workload-partitioning.md).
const (
	workloadAnnotation  = "target.workload.openshift.io/management"
	workloadEffect      = `{"effect": "PreferredDuringScheduling"}`
	namespaceAnnotation = "workload.openshift.io/allowed"
)

// overlays are all that somebody deploys.
func overlays() []string {
	return []string{"default", "openshift", "repair", "openshift-repair", "olm"}
}

// templates are the pods of an overlay by kind and name of what makes them, and the namespaces that they are in.
func templates(t *testing.T, objects []*unstructured.Unstructured) (map[string]corev1.PodTemplateSpec, map[string]bool) {
	t.Helper()
	pods, namespaces := map[string]corev1.PodTemplateSpec{}, map[string]bool{}
	for _, object := range objects {
		if object.GetKind() != "Deployment" && object.GetKind() != "DaemonSet" {
			continue
		}
		// Both have the template at the same place.
		workload := as[appsv1.Deployment](t, object)
		pods[object.GetKind()+" "+object.GetName()] = workload.Spec.Template
		namespaces[object.GetNamespace()] = true
	}
	return pods, namespaces
}

func as[T any](t *testing.T, object *unstructured.Unstructured) *T {
	t.Helper()
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		t.Fatal(err)
	}
	return typed
}

// TestOurPodsStayOnReservedCPUs: each pod asks for it, and each namespace allows it.
func TestOurPodsStayOnReservedCPUs(t *testing.T) {
	for _, overlay := range overlays() {
		objects, err := kustomization.Build(overlay)
		if err != nil {
			t.Fatal(err)
		}
		pods, namespaces := templates(t, objects)
		if len(pods) < 2 {
			t.Errorf("%s has %d kinds of pods", overlay, len(pods))
		}
		for name, pod := range pods {
			if pod.Annotations[workloadAnnotation] != workloadEffect {
				t.Errorf("%s: %s has the annotations %v", overlay, name, pod.Annotations)
			}
		}
		for _, object := range objects {
			if object.GetKind() != "Namespace" {
				continue
			}
			if object.GetAnnotations()[namespaceAnnotation] != "management" {
				t.Errorf("%s: namespace %s has the annotations %v", overlay, object.GetName(), object.GetAnnotations())
			}
			delete(namespaces, object.GetName())
		}
		if len(namespaces) > 0 {
			t.Errorf("%s does not make the namespaces %v", overlay, namespaces)
		}
	}
}

// TestPriorities: agents are of the node, what manages them is of the cluster.
func TestPriorities(t *testing.T) {
	for _, overlay := range overlays() {
		objects, err := kustomization.Build(overlay)
		if err != nil {
			t.Fatal(err)
		}
		pods, _ := templates(t, objects)
		for name, pod := range pods {
			want := "system-cluster-critical"
			if name == "DaemonSet lowlatency-operator-agent" {
				want = "system-node-critical"
			}
			if pod.Spec.PriorityClassName != want {
				t.Errorf("%s: %s has priority %q, want %s", overlay, name, pod.Spec.PriorityClassName, want)
			}
			for _, container := range pod.Spec.Containers {
				if container.Resources.Requests.Cpu().IsZero() || container.Resources.Requests.Memory().IsZero() || len(container.Resources.Limits) > 0 {
					t.Errorf("%s: %s asks for %v", overlay, name, container.Resources)
				}
			}
		}
	}
}

// TestDisruptionBudget: one manager may be away, and one that is not ready keeps no node from being drained.
func TestDisruptionBudget(t *testing.T) {
	for _, overlay := range overlays() {
		objects, err := kustomization.Build(overlay)
		if err != nil {
			t.Fatal(err)
		}
		pods, _ := templates(t, objects)
		manager := pods["Deployment lowlatency-operator-controller-manager"]
		budgets := 0
		for _, object := range objects {
			if object.GetKind() != "PodDisruptionBudget" {
				continue
			}
			budgets++
			budget := as[policyv1.PodDisruptionBudget](t, object)
			selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
			if err != nil {
				t.Fatal(err)
			}
			if !selector.Matches(labels.Set(manager.Labels)) {
				t.Errorf("%s: %s does not select the manager, which has %v", overlay, object.GetName(), manager.Labels)
			}
			if budget.Spec.MaxUnavailable.IntValue() != 1 || budget.Spec.UnhealthyPodEvictionPolicy == nil {
				t.Fatalf("%s: the budget is %+v", overlay, budget.Spec)
			}
			if diff := cmp.Diff(policyv1.AlwaysAllow, *budget.Spec.UnhealthyPodEvictionPolicy); diff != "" {
				t.Errorf("%s: eviction of what is not ready (-want +got):\n%s", overlay, diff)
			}
		}
		if budgets != 1 {
			t.Errorf("%s has %d budgets", overlay, budgets)
		}
	}
}
