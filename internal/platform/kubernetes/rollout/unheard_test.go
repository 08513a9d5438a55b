// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package rollout

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// TestUnheard: a LowLatencyNode that was deleted, and made again without a word of the agent, says nothing of what has failed on a node that
// was changed. A node that nothing was done to has nothing to say.
func TestUnheard(t *testing.T) {
	made := reportOf(nil)
	made.Status = v1alpha1.LowLatencyNodeStatus{}
	joined := map[string]string{v1alpha1.LabelProfile: "trading"}
	type known struct{ isChanged, isUnheard bool }
	for name, tc := range map[string]struct {
		node   *corev1.Node
		report *v1alpha1.LowLatencyNode
		want   known
	}{
		"deleted":          {nodeWith(governed(), false), nil, known{true, true}},
		"made again":       {nodeWith(governed(), false), made, known{true, true}},
		"reported again":   {nodeWith(governed(), false), reportOf(nil), known{true, false}},
		"joined":           {nodeWith(joined, false), made, known{}},
		"joined, reported": {nodeWith(joined, false), reportOf(nil), known{}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{tc.node}
			if tc.report != nil {
				objects = append(objects, tc.report)
			}
			s := newStage(t, interceptor.Funcs{}, objects...)
			w, err := s.gather(t.Context(), s.look(), nil, nil)
			if err != nil || len(w.nodes) != 1 {
				t.Fatalf("gather() = %+v, %v", w, err)
			}
			if got := (known{w.nodes[0].IsChanged, w.nodes[0].IsUnheard}); got != tc.want {
				t.Errorf("the node is %+v, want %+v", got, tc.want)
			}
		})
	}
}
