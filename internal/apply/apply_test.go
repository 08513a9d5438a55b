// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package apply

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

func lowLatencyNode() *v1alpha1.LowLatencyNode {
	return &v1alpha1.LowLatencyNode{
		TypeMeta: metav1.TypeMeta{APIVersion: "lowlatency.dev/v1alpha1", Kind: "LowLatencyNode"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "n", UID: "u",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "v"}},
		},
		Spec:   v1alpha1.LowLatencyNodeSpec{Profile: "trading"},
		Status: v1alpha1.LowLatencyNodeStatus{BootID: "b"},
	}
}

func TestOnlyWhatWasSetIsSent(t *testing.T) {
	untyped := &unstructured.Unstructured{Object: map[string]any{"kind": "Tuned", "status": "kept"}}
	cases := map[string]struct {
		object runtime.Object
		want   map[string]any
	}{
		"an object of ours without its status": {lowLatencyNode(), map[string]any{
			"apiVersion": "lowlatency.dev/v1alpha1", "kind": "LowLatencyNode",
			"metadata": map[string]any{
				"name": "n", "uid": "u",
				"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "v"}},
			},
			"spec": map[string]any{"profile": "trading"},
		}},
		"an object of another group": {
			&corev1.ConfigMap{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: "c"}, Data: map[string]string{"a": "b"},
			},
			map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap",
				"metadata": map[string]any{"namespace": "s", "name": "c"}, "data": map[string]any{"a": "b"},
			},
		},
		"an untyped object as it is": {untyped, untyped.Object},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Object(tc.object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Object); diff != "" {
				t.Errorf("mismatch (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStatusIsSentAlone(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600)))
	cases := map[string]struct {
		existing metav1.Object
		status   any
		want     map[string]any
	}{
		"of an object that was read": {lowLatencyNode(), &v1alpha1.LowLatencyNodeStatus{BootID: "c"}, map[string]any{
			"apiVersion": "v1", "kind": "X", "metadata": map[string]any{"name": "n", "uid": "u"}, "status": map[string]any{"bootID": "c"},
		}},
		"of an object of which the name is known": {&metav1.ObjectMeta{Name: "n"}, &v1alpha1.LowLatencyNodeStatus{}, map[string]any{
			"apiVersion": "v1", "kind": "X", "metadata": map[string]any{"name": "n"}, "status": map[string]any{},
		}},
		"as a configuration of client-go": {
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "7", Labels: map[string]string{"a": "b"}}},
			applycorev1.NodeStatus().WithConditions(applycorev1.NodeCondition().WithType("Ready").WithReason("").WithLastTransitionTime(at)),
			map[string]any{
				"apiVersion": "v1", "kind": "X", "metadata": map[string]any{"name": "n"},
				"status": map[string]any{"conditions": []any{
					map[string]any{"type": "Ready", "reason": "", "lastTransitionTime": "2026-01-02T02:04:05Z"},
				}},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Status(corev1.SchemeGroupVersion.WithKind("X"), tc.existing, tc.status)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Object); diff != "" {
				t.Errorf("mismatch (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := Status(corev1.SchemeGroupVersion.WithKind("X"), &metav1.ObjectMeta{Name: "n"}, 7); err == nil {
		t.Error("a status that is not a struct was accepted")
	}
}
