// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package view

import (
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// TestPlannedPools: what becomes of the NICs of pools is shown with its origin.
func TestPlannedPools(t *testing.T) {
	origin := plan.Origin{Source: plan.FromPool, Detail: "BypassNICPool dpdk"}
	p := &plan.NodePlan{BypassPools: []plan.PoolPlan{{Name: "dpdk", NICs: []plan.PoolNICPlan{
		{PCIAddress: "0000:3b:00.0", VirtualFunctions: 8, Driver: plan.DriverVFIO, Interrupts: v1alpha1.NICInterruptsHousekeeping,
			InterruptCPUs: cpus.Of(0, 1), Origin: origin},
		{PCIAddress: "0000:3b:00.1", Interrupts: v1alpha1.NICInterruptsKept},
	}}}}
	view, err := OfPlan("n", &v1alpha1.LowLatencyNodeProfile{}, p, nil, "", plan.Changes{})
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, `[{"name": "dpdk", "nics": [
		{"pciAddress": "0000:3b:00.0", "virtualFunctions": 8, "driver": "vfio-pci", "interrupts": "Housekeeping", "interruptCPUs": "0-1"},
		{"pciAddress": "0000:3b:00.1", "virtualFunctions": null, "driver": null, "interrupts": "Kept", "interruptCPUs": ""}]}]`, view.BypassPools)
	if got := view.Origins["bypassPools[0].nics[0]"]; got != origin {
		t.Errorf("origin %+v, want %+v", got, origin)
	}
}
