// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

const (
	nearZero = "0000:3b:00.0"
	nearOne  = "0000:81:00.0"
	nowhere  = "0000:c1:00.0"
)

// twoNodes is a host with four CPUs and a NIC on each of two NUMA nodes, and a NIC of which nobody knows.
func twoNodes() *topology.Topology {
	zero, one := 0, 1
	return &topology.Topology{
		NUMANodes: []topology.NUMANode{{ID: 0, CPUs: cpus.Of(0, 1, 2, 3)}, {ID: 1, CPUs: cpus.Of(4, 5, 6, 7)}},
		NICs: []topology.NIC{
			{PCIAddress: nearZero, Name: "ens1", NUMANode: &zero},
			{PCIAddress: nearOne, NUMANode: &one},
			{PCIAddress: nowhere, Name: "ens3"},
		},
	}
}

func TestHolders(t *testing.T) {
	devices := []Device{{NIC: host.NIC{PCIAddress: nearZero}}, {NIC: host.NIC{PCIAddress: nearOne}}}
	holding := func(pod string, held ...allocation.HeldDevices) allocation.Container {
		return allocation.Container{Namespace: "trading", Pod: pod, Name: "app", Devices: held}
	}
	claiming := func(pod string, claimed ...allocation.ClaimedDevice) allocation.Container {
		return allocation.Container{Namespace: "trading", Pod: pod, Name: "app", Claimed: claimed}
	}
	const ours = "lowlatency.dev/x2"
	containers := []allocation.Container{
		holding("z", allocation.HeldDevices{Resource: ours, IDs: []string{nearZero + "-1"}}),
		holding("a", allocation.HeldDevices{Resource: ours, IDs: []string{nearOne}}, allocation.HeldDevices{Resource: ours, IDs: []string{nearZero + "-0"}}),
		holding("repeated", allocation.HeldDevices{Resource: ours, IDs: []string{nearOne}}, allocation.HeldDevices{Resource: ours, IDs: []string{nearOne}}),
		holding("other", allocation.HeldDevices{Resource: "a.example/b", IDs: []string{nearOne}}),
		holding("gone", allocation.HeldDevices{Resource: ours, IDs: []string{nowhere, nearOne + "0"}}),
		holding("nothing"),
		claiming("claim", allocation.ClaimedDevice{Driver: "fast.bypass.lowlatency.dev", Device: "0000-81-00-0-3"}),
		claiming("claim-of-another", allocation.ClaimedDevice{Driver: "slow.bypass.lowlatency.dev", Device: "0000-81-00-0"}),
		claiming("claim-of-no-nic", allocation.ClaimedDevice{Driver: "fast.bypass.lowlatency.dev", Device: "gpu-0"}),
	}
	holders := Holders(Pool{Name: "fast", Spec: v1alpha1.BypassNICPoolSpec{ResourceName: ours}}, devices, containers, twoNodes())
	got := make([]string, 0, len(holders))
	for _, holder := range holders {
		got = append(got, fmt.Sprintf("%s %s %s %s", holder.PCIAddress, holder.Container, holder.Allocation, holder.Alignment))
	}
	want := []string{
		nearZero + " container trading/a/app DevicePlugin Split", nearZero + " container trading/z/app DevicePlugin Unknown",
		nearOne + " container trading/a/app DevicePlugin Split",
		nearOne + " container trading/claim/app DynamicResourceAllocation Unknown",
		nearOne + " container trading/repeated/app DevicePlugin Unknown",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
