// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"strings"
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// TestPlannedPools: one line for each NIC of a pool, with the pool that it comes from.
func TestPlannedPools(t *testing.T) {
	p := &plan.NodePlan{BypassPools: []plan.PoolPlan{{Name: "dpdk", NICs: []plan.PoolNICPlan{
		{PCIAddress: "0000:3b:00.0", VirtualFunctions: 8, Driver: plan.DriverVFIO, Interrupts: v1alpha1.NICInterruptsHousekeeping,
			InterruptCPUs: cpus.Of(0, 1), Origin: plan.Origin{Source: plan.FromPool, Detail: "BypassNICPool dpdk"}},
		{PCIAddress: "0000:3b:00.1", Interrupts: v1alpha1.NICInterruptsKept},
	}}}}
	v, err := view.OfPlan("n", &v1alpha1.LowLatencyNodeProfile{}, p, nil, "", plan.Changes{})
	if err != nil {
		t.Fatal(err)
	}
	got := values(v, NewPalette(false), 160)
	for _, want := range []string{
		"bypass NIC pools",
		"NIC 0000:3b:00.0: 8 virtual functions, driver vfio-pci, interrupts on 0-1 (Housekeeping)",
		"BypassNICPool dpdk\n",
		"NIC 0000:3b:00.1: interrupts left alone",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(values(view.Plan{Content: &view.Content{}}, NewPalette(false), 160), "bypass NIC pools") {
		t.Error("a plan without pools speaks of them")
	}
}
