// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

func TestSelects(t *testing.T) {
	cases := map[string]struct {
		selector v1alpha1.Labels
		node     *corev1.Node
		want     bool
	}{
		"all labels":      {v1alpha1.Labels{"a": "1", "b": ""}, objects.MakeNode("n", "a", "1", "b", "", "c", "3"), true},
		"another value":   {v1alpha1.Labels{"a": "1"}, objects.MakeNode("n", "a", "2"), false},
		"a missing label": {v1alpha1.Labels{"a": ""}, objects.MakeNode("n", "b", ""), false},
		"no selector":     {nil, objects.MakeNode("n", "a", "1"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Selects(v1alpha1.NodeSelector{MatchLabels: tc.selector}, tc.node); got != tc.want {
				t.Errorf("Selects() = %v, want %v", got, tc.want)
			}
		})
	}
}
