// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestOwnImage(t *testing.T) {
	pod := func(name string, containers ...corev1.Container) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "operator", Name: name}, Spec: corev1.PodSpec{Containers: containers}}
	}
	reader := fake.NewClientBuilder().WithObjects(
		pod("usual", corev1.Container{Name: "sidecar", Image: "mesh:1"}, corev1.Container{Name: "manager", Image: "registry/op@sha256:1"}),
		pod("other", corev1.Container{Name: "sidecar", Image: "mesh:1"}),
	).Build()
	cases := map[string]struct{ pod, want, problem string }{
		"its own container, whatever stands beside it": {pod: "usual", want: "registry/op@sha256:1"},
		"a Pod without it": {pod: "other", problem: `Pod operator/other has no container "manager"`},
		"no such Pod":      {pod: "gone", problem: "from its own Pod"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ownImage(t.Context(), reader, types.NamespacedName{Namespace: "operator", Name: tc.pod}, "manager")
			if got != tc.want || (err != nil) != (tc.problem != "") || err != nil && !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("got %q, %v; want %q, %q", got, err, tc.want, tc.problem)
			}
		})
	}
}
