// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package nodeclient

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
)

// TestNewerThanTheDefinitions: an agent that is newer than the CustomResourceDefinition writes all that the API server knows.
func TestNewerThanTheDefinitions(t *testing.T) {
	environment, err := apiserver.Start(apiserver.Options{Platform: apiserver.Kubernetes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	direct, err := New(environment.Config())
	if err != nil {
		t.Fatal(err)
	}
	if err := environment.Client().Create(t.Context(), &v1alpha1.LowLatencyNode{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.LowLatencyNodeSpec{Profile: "trading"}}); err != nil {
		t.Fatal(err)
	}
	status := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "LowLatencyNode", "metadata": map[string]any{"name": "a"},
		"status": map[string]any{
			"bootID": "5f0c6f5e-0000-4000-8000-000000000001", "fromTomorrow": "yes", "inventory": map[string]any{"kernelRelease": "6.1.0", "fromTomorrow": map[string]any{"a": "b"}},
		},
	}}
	if err := direct.ApplyStatus(t.Context(), status); err != nil {
		t.Fatal(err)
	}
	got, err := direct.LowLatencyNode(t.Context(), "a")
	if err != nil || got.Status.Inventory == nil || got.Status.Inventory.KernelRelease != "6.1.0" || got.Status.BootID != "5f0c6f5e-0000-4000-8000-000000000001" {
		t.Errorf("the status is %+v, %v", got.Status, err)
	}
}
