// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package rollout

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// TestIsConfigured: what the gate trusts between two plans needs no reboot for the new one, by what the guard says in this boot.
func TestIsConfigured(t *testing.T) {
	tests := map[string]struct {
		change func(*v1alpha1.LowLatencyNode)
		want   bool
	}{
		"the plan is in force":     {change: func(*v1alpha1.LowLatencyNode) {}, want: true},
		"another plan is in force": {change: func(r *v1alpha1.LowLatencyNode) { r.Status.Enactment.InForcePlanHash = "old" }},
		"no plan is in force":      {change: func(r *v1alpha1.LowLatencyNode) { r.Status.Enactment.InForcePlanHash = "" }},
		"the node has no plan":     {change: func(r *v1alpha1.LowLatencyNode) { r.Spec.PlanHash, r.Status.Enactment.InForcePlanHash = "", "" }},
		"the plan is written and not in force": {change: func(r *v1alpha1.LowLatencyNode) {
			r.Status.Enactment = &v1alpha1.NodeEnactment{Phase: v1alpha1.EnactmentWritten, PlanHash: "new"}
		}},
		"the guard says nothing":                         {change: func(r *v1alpha1.LowLatencyNode) { r.Status.Enactment = nil }},
		"the guard said so before the machine rebooted":  {change: func(r *v1alpha1.LowLatencyNode) { r.Status.BootID = "former" }},
		"a later instruction is refused, this one is in": {change: func(r *v1alpha1.LowLatencyNode) { r.Status.Enactment.Phase = v1alpha1.EnactmentRefused }, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			node, report := &corev1.Node{}, &v1alpha1.LowLatencyNode{}
			node.Status.NodeInfo.BootID, report.Status.BootID, report.Spec.PlanHash = "this", "this", "new"
			report.Status.Enactment = &v1alpha1.NodeEnactment{Phase: v1alpha1.EnactmentInForce, InForcePlanHash: "new"}
			test.change(report)
			if got := (&Platform{}).IsConfigured(node, report); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
	if (&Platform{}).IsConfigured(&corev1.Node{}, nil) {
		t.Error("a node without a report is not configured")
	}
}
