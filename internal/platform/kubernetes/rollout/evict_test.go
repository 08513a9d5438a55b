// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package rollout

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/enactment"
)

// TestEvict: the operator does not evict itself, and what an eviction has left is not believed of a node that took pods since.
func TestEvict(t *testing.T) {
	pod := func(namespace, name string, labels map[string]string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, Controller: new(true),
		}}}, Spec: corev1.PodSpec{NodeName: "n1"}}
	}
	label := map[string]string{managerLabel: managerValue}
	s := newStage(t, interceptor.Funcs{}, nodeWith(governed(), false))
	s.Evictions = clientset.NewClientset(pod(operators, "manager", label), pod("other", "manager", label), pod(operators, "feed", nil))
	if err := s.evict(t.Context(), s.look().Nodes["n1"]); err != nil {
		t.Fatal(err)
	}
	want := &enactment.Drain{Left: []string{operators + "/feed", "other/manager"}}
	if diff := cmp.Diff(want, s.drainOf("n1")); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	for name, do := range map[string]func(context.Context, *corev1.Node) error{"cordon": s.cordon, "uncordon": s.uncordon} {
		s.setDrain("n1", &enactment.Drain{})
		if err := do(t.Context(), s.look().Nodes["n1"]); err != nil || s.drainOf("n1") != nil {
			t.Errorf("%s: %v, and the node counts as %+v", name, err, s.drainOf("n1"))
		}
	}
}
