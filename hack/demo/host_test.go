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
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/nodereport"
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
		drawn, err := nodeMap(node, nil, nodePlan, text.NewPalette(true), 80)
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

// TestNodeMapShowsHugepages: their numbers are in the agent's report and in no status, and sizes of which nothing is planned nor there are left out.
func TestNodeMapShowsHugepages(t *testing.T) {
	nodePlan := &plan.NodePlan{Hugepages: []plan.HugepagePlan{{SizeKibibytes: 2048, Count: 800, NUMANode: new(0)}}}
	nodePlan.CPUs.Isolated = cpus.Of(0, 1)
	node := &v1alpha1.LowLatencyNode{}
	node.Status.Inventory = &v1alpha1.Inventory{
		OnlineCPUs: "0-1", Cores: []string{"0", "1"}, NUMANodes: []v1alpha1.InventoryNUMANode{{ID: 0, CPUs: "0-1", HugepageSizesKibibytes: []int64{2048, 1048576}}},
	}
	report := &nodereport.Report{Hugepages: []nodereport.Hugepages{{SizeKibibytes: 2048, Total: 800, Free: 600}, {SizeKibibytes: 1048576}}}
	for name, tc := range map[string]struct {
		report       *nodereport.Report
		want, absent []string
	}{
		"with the agent's report": {report, []string{"2 MiB", "200 of 800 in use · planned 800"}, []string{"1 GiB", "not reported"}},
		"without":                 {nil, []string{"2 MiB", "planned 800 · not reported"}, []string{"1 GiB", "of 800 in use"}},
	} {
		t.Run(name, func(t *testing.T) {
			drawn, err := nodeMap(node, tc.report, nodePlan, text.NewPalette(false), 80)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tc.want {
				if !strings.Contains(drawn, want) {
					t.Errorf("%q is not there:\n%s", want, drawn)
				}
			}
			for _, absent := range tc.absent {
				if strings.Contains(drawn, absent) {
					t.Errorf("%q is there:\n%s", absent, drawn)
				}
			}
		})
	}
}
