// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package gate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// TestTaintOverAReboot follows nodes through a reboot, step by step, with the taint that each step leaves.
func TestTaintOverAReboot(t *testing.T) {
	ready := func(status corev1.ConditionStatus) func(*World) {
		return func(w *World) { w.Node.Status.Conditions[0].Status = status }
	}
	booted := func(boot string) func(*World) {
		return func(w *World) { w.Node.Status.NodeInfo.BootID = boot }
	}
	verified := func(boot string) func(*World) {
		return func(w *World) { w.Report.Status.BootID = boot }
	}
	newPlan := func(w *World) { w.Report.Spec.PlanHash = "h2" }
	verifiedNewPlan := func(w *World) {
		w.Report.Status.VerifiedPlanHash, w.Report.Status.BootID = "h2", "b2"
	}
	type step struct {
		name   string
		change func(*World)
		want   bool
	}
	cases := map[string][]step{
		"a planned one": {
			{"before", func(*World) {}, false},
			{"the node gets a new plan", newPlan, true},
			{"the node goes down", ready(corev1.ConditionUnknown), true},
			{"the kubelet is back", func(w *World) { booted("b2")(w); ready(corev1.ConditionTrue)(w) }, true},
			{"the agent has looked", verifiedNewPlan, false},
		},
		"one that nobody planned": {
			{"before", func(*World) {}, false},
			{"the node goes down", ready(corev1.ConditionUnknown), true},
			{"the kubelet is back", booted("b2"), true},
			{"the kubelet is ready", ready(corev1.ConditionTrue), true},
			{"the agent has looked", verified("b2"), false},
		},
		"one so short that the node was never down": {
			{"before", func(*World) {}, false},
			{"the kubelet is back", booted("b2"), true},
			{"the agent has looked", verified("b2"), false},
		},
		"one of a node that had failed": {
			{"a check fails", func(w *World) { w.Report.Status.Conditions[1].Status = "False" }, true},
			{"the kubelet is back", booted("b2"), true},
			{"the agent has not looked, whatever it said before", func(w *World) { w.Report.Status.Conditions[1].Status = "True" }, true},
			{"the agent has looked", verified("b2"), false},
		},
	}
	start := startingWorld(t)
	start.Profiles[0].Spec.Verification.Gate = v1alpha1.GateTaint
	advertise(start, "2")
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			w := &World{Node: start.Node.DeepCopy(), Report: start.Report.DeepCopy(), Profiles: start.Profiles, Pools: start.Pools}
			for _, s := range steps {
				s.change(w)
				node, _ := w.reported().Marked(w.Decide(noon()))
				w.Node = node.DeepCopy()
				if got := HasMarks(node) && len(node.Spec.Taints) > 0; got != s.want {
					t.Errorf("%s: tainted is %t, want %t", s.name, got, s.want)
				}
			}
		})
	}
}
