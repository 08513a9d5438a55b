// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package rollout

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/changes"
)

// TestDataElsewhereIsRefused: a plan does not go to a folder that K3s does not read any more. One that is in force already is left alone.
func TestDataElsewhereIsRefused(t *testing.T) {
	const hash = "17304b9f96e3aaaa"
	node := &corev1.Node{}
	node.Name = "worker-1"
	node.Annotations = map[string]string{"k3s.io/node-args": `["agent","--data-dir","/data/k3s"]`}
	// What the operator keeps of a Node is enough for it.
	node = changes.Nodes{Annotations: NodeAnnotations()}.Strip(node)
	report := &v1alpha1.LowLatencyNode{}
	report.Name = node.Name
	report.Status.Inventory = &v1alpha1.Inventory{Hash: "a"}
	report.Status.Software = &v1alpha1.NodeSoftware{}
	w := &world{reports: map[string]*v1alpha1.LowLatencyNode{node.Name: report}}
	p := &Platform{}
	if got := p.refusal(w, node, report, hash); !strings.Contains(got, "data-dir /data/k3s") {
		t.Errorf("refusal() = %q", got)
	}
	report.Status.Enactment = &v1alpha1.NodeEnactment{InForcePlanHash: hash}
	if got := p.refusal(w, node, report, hash); got != "" {
		t.Errorf("refusal() of what is in force = %q", got)
	}
}
