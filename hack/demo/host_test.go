// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"strings"
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/text"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// TestNodeMapPaintsWhatFails: the CPU that a failed check names has the colour of failures, and the other isolated ones have their own.
func TestNodeMapPaintsWhatFails(t *testing.T) {
	nodePlan := &plan.NodePlan{}
	nodePlan.CPUs.Housekeeping, nodePlan.CPUs.Isolated = cpus.Of(16), cpus.Of(17, 18)
	node := &v1alpha1.LowLatencyNode{}
	node.Status.Inventory = &v1alpha1.Inventory{OnlineCPUs: "16-18", Cores: []string{"16", "17", "18"}, NUMANodes: []v1alpha1.InventoryNUMANode{{ID: 0, CPUs: "16-18"}}}
	draw := func() string {
		t.Helper()
		drawn, err := nodeMap(node, nodePlan, text.NewPalette(true), 80)
		if err != nil {
			t.Fatal(err)
		}
		return drawn
	}
	palette := text.NewPalette(true)
	if drawn := draw(); !strings.Contains(drawn, palette.Isolated("17")) || !strings.Contains(drawn, palette.Isolated("18")) {
		t.Errorf("isolated CPUs do not have their colour:\n%s", drawn)
	}
	node.Status.Findings = []v1alpha1.Finding{{
		Check: "irq.effective-affinity", Outcome: v1alpha1.OutcomeFailed, Severity: v1alpha1.SeverityCritical, Message: "IRQ 45",
		Objects: finding.OfCPUs(cpus.Of(17)).Status(),
	}}
	if drawn := draw(); strings.Contains(drawn, palette.Isolated("17")) || !strings.Contains(drawn, palette.Bad("17")) || !strings.Contains(drawn, palette.Isolated("18")) {
		t.Errorf("CPU 17 fails and does not look so:\n%s", drawn)
	}
}
