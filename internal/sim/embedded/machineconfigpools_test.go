// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package embedded

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func pool(name string, nodeLabels map[string]string) mcfgv1.MachineConfigPool {
	return mcfgv1.MachineConfigPool{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 4},
		Spec:       mcfgv1.MachineConfigPoolSpec{NodeSelector: &metav1.LabelSelector{MatchLabels: nodeLabels}},
	}
}

func node(name string, labels map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func TestPoolOf(t *testing.T) {
	pools := []mcfgv1.MachineConfigPool{
		pool("worker", map[string]string{"worker": ""}),
		pool("fast", map[string]string{"fast": ""}),
		pool("faster", map[string]string{"faster": ""}),
		{ObjectMeta: metav1.ObjectMeta{Name: "empty"}},
	}
	cases := map[string]struct {
		labels    map[string]string
		want      string
		wantError string
	}{
		"a plain worker is in the worker pool":   {labels: map[string]string{"worker": ""}, want: "worker"},
		"a custom pool wins over the worker one": {labels: map[string]string{"worker": "", "fast": ""}, want: "fast"},
		"a node without labels is in no pool":    {},
		"two custom pools are an error": {
			labels:    map[string]string{"worker": "", "fast": "", "faster": ""},
			wantError: "node n belongs to 2 custom machine config pools: [fast faster]",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := poolOf(node("n", tc.labels), pools)
			if got != tc.want {
				t.Errorf("poolOf = %q, want %q", got, tc.want)
			}
			message := ""
			if err != nil {
				message = err.Error()
			}
			if message != tc.wantError {
				t.Errorf("error %q, want %q", message, tc.wantError)
			}
		})
	}
}

// inState is a node with the annotations of the machine-config daemon.
func inState(name, current, state string) *corev1.Node {
	n := node(name, nil)
	n.Annotations = map[string]string{annotationCurrentConfig: current, annotationState: state}
	return n
}

func TestRolloutNext(t *testing.T) {
	two := intstr.FromInt32(2)
	half := intstr.FromString("50%")
	nonsense := intstr.FromString("many")
	cases := map[string]struct {
		nodes          []*corev1.Node
		paused         bool
		maxUnavailable *intstr.IntOrString
		target         string
		want           []string
	}{
		"one node at a time by default":             {nodes: []*corev1.Node{inState("a", "old", "Done"), inState("b", "old", "Done")}, target: "new", want: []string{"a"}},
		"as many as maxUnavailable":                 {nodes: []*corev1.Node{inState("a", "old", "Done"), inState("b", "old", "Done")}, maxUnavailable: &two, target: "new", want: []string{"a", "b"}},
		"a share of the pool":                       {nodes: []*corev1.Node{inState("a", "", "Done"), inState("b", "", "Done"), inState("c", "", "Done"), inState("d", "", "Done")}, maxUnavailable: &half, target: "new", want: []string{"a", "b"}},
		"a share that cannot be read is one":        {nodes: []*corev1.Node{inState("a", "", "Done"), inState("b", "", "Done")}, maxUnavailable: &nonsense, target: "new", want: []string{"a"}},
		"a rebooting node takes the place":          {nodes: []*corev1.Node{inState("a", "old", "Working"), inState("b", "old", "Done")}, target: "new"},
		"a degraded node blocks":                    {nodes: []*corev1.Node{inState("a", "old", "Degraded"), inState("b", "old", "Done")}, target: "new"},
		"updated nodes are left alone":              {nodes: []*corev1.Node{inState("a", "new", "Done"), inState("b", "old", "Done")}, target: "new", want: []string{"b"}},
		"a paused pool rolls nothing":               {nodes: []*corev1.Node{inState("a", "old", "Done")}, paused: true, target: "new"},
		"nothing rolls before there is a rendering": {nodes: []*corev1.Node{inState("a", "old", "Done")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := pool("fast", nil)
			p.Spec.Paused, p.Spec.MaxUnavailable = tc.paused, tc.maxUnavailable
			next := newRollout(tc.target, tc.nodes).next(&p)
			got := make([]string, len(next))
			for i := range next {
				got[i] = next[i].Name
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("next nodes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPoolStatus(t *testing.T) {
	before, now := metav1.NewTime(time.Unix(1000, 0)), metav1.NewTime(time.Unix(2000, 0))
	p := pool("fast", nil)
	p.Spec.Configuration.Name = "new"
	p.Status.Configuration.Name = "old"
	p.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{
		{Type: mcfgv1.MachineConfigPoolUpdated, Status: corev1.ConditionFalse, LastTransitionTime: before},
	}
	cordoned := inState("c", "new", "Done")
	cordoned.Spec.Unschedulable = true
	rolling := poolStatus(&p, newRollout("new", []*corev1.Node{inState("a", "new", "Done"), inState("b", "old", "Degraded"), cordoned}), now)
	want := mcfgv1.MachineConfigPoolStatus{
		ObservedGeneration: 4, MachineCount: 3, UpdatedMachineCount: 2, ReadyMachineCount: 1, UnavailableMachineCount: 2, DegradedMachineCount: 1,
		Conditions: []mcfgv1.MachineConfigPoolCondition{
			{Type: mcfgv1.MachineConfigPoolUpdated, Status: corev1.ConditionFalse, LastTransitionTime: before},
			{Type: mcfgv1.MachineConfigPoolUpdating, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: mcfgv1.MachineConfigPoolNodeDegraded, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: mcfgv1.MachineConfigPoolRenderDegraded, Status: corev1.ConditionFalse, LastTransitionTime: now},
			{Type: mcfgv1.MachineConfigPoolDegraded, Status: corev1.ConditionTrue, LastTransitionTime: now},
		},
	}
	want.Configuration.Name = "old"
	if diff := cmp.Diff(want, rolling); diff != "" {
		t.Errorf("status while rolling (-want +got):\n%s", diff)
	}
	done := poolStatus(&p, newRollout("new", []*corev1.Node{inState("a", "new", "Done")}), now)
	if done.Configuration.Name != "new" || done.Conditions[0].Status != corev1.ConditionTrue || done.Conditions[1].Status != corev1.ConditionFalse {
		t.Errorf("status when all nodes are updated: %+v", done)
	}
}
