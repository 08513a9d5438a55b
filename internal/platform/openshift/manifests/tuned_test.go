// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestTunedRecommends(t *testing.T) {
	in := example(t, "realtime-existing")
	in.MachineConfigPool.MachineConfigLabels = map[string]string{"a": "1", "b": "2"}
	object, err := Tuned(in)
	if err != nil {
		t.Fatalf("Tuned: %v", err)
	}
	got, _, err := unstructured.NestedSlice(object.Object, "spec", "recommend")
	if err != nil {
		t.Fatalf("spec.recommend: %v", err)
	}
	want := []any{map[string]any{
		"profile": "lowlatency-ran", "priority": int64(15), "machineConfigLabels": map[string]any{"a": "1", "b": "2"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spec.recommend (-want +got):\n%s", diff)
	}
	if object.GetNamespace() != "openshift-cluster-node-tuning-operator" {
		t.Errorf("namespace = %q", object.GetNamespace())
	}
}

func TestTunedNamesTheMachineConfigPool(t *testing.T) {
	in := example(t, "trading-xeon")
	in.Plan.Sysctls = settings("vm.swappiness", "1\n[script]")
	_, err := Tuned(in)
	wantError(t, err, "[sysctl]")
	wantError(t, err, in.MachineConfigPool.Name)
}
