// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"bytes"
	"encoding/json"
	"testing"

	"gotest.tools/v3/golden"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// TestGoldenPlans compares whole plans and their findings with files that people have read.
func TestGoldenPlans(t *testing.T) {
	cases := map[string]struct {
		machine *topology.Topology
		change  change
		pools   []Pool
	}{
		"xeon-pools": {machine: xeon(), change: rich, pools: []Pool{
			poolWith("dpdk", []topology.NIC{functionsOffered(xeon().NICs[2])}, withoutIOMMU, functions(4), pagesPerNIC("1Gi", 2)),
			poolWith("feed", xeon().NICs[:2], pagesPerNIC("2Mi", 400)),
		}},
		"xeon-trading": {machine: xeon(), change: func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			rich(s)
			smtDisabled(s)
			s.CPUs.Derived = &v1alpha1.DerivedCPUs{HousekeepingCores: 2, KeepNearBypassNICs: v1alpha1.NearNICIsolated}
			s.Power.Preset = v1alpha1.PowerMaximumDeterminism
			s.Kernel.MachineChecks = v1alpha1.MachineChecksCorrectedErrorsIgnored
		}},
		"epyc-real-time": {machine: epyc(), change: func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			s.Kernel.Type = v1alpha1.KernelRealTime
			s.CPUs.Isolation = v1alpha1.IsolationPerPod
			s.Interrupts.Placement = v1alpha1.InterruptsPerPod
			s.Power.Preset = v1alpha1.PowerPerPod
			s.Memory.DefaultHugepageSize = "1Gi"
			s.Memory.Hugepages = []v1alpha1.HugepageReservation{{Size: "1Gi", Count: 4, Placement: v1alpha1.HugepagesEveryNUMANode}}
		}},
		"arm-dataplane": {machine: arm(), change: func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			explicit(v1alpha1.ExplicitCPUs{Housekeeping: "0-1,64-65", Isolated: "4-61,68-127", Shared: "2-3,66-67", DataPlane: "62",
				DataPlaneLoadBalancing: v1alpha1.LoadBalancingDisabled, Offline: "63"})(s)
			s.Memory.KernelPageSize, s.Memory.DefaultHugepageSize = "64Ki", "512Mi"
			s.Memory.Hugepages = []v1alpha1.HugepageReservation{{Size: "512Mi", Count: 32}}
			s.Network.Queues, s.Network.ReceivePacketSteering = v1alpha1.QueuesHousekeepingCPUs, v1alpha1.PacketSteeringVirtualDevices
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan, findings := New(Input{Profile: profileWith(tc.change), Topology: tc.machine, Pools: tc.pools})
			checkFindings(t, findings)
			var got bytes.Buffer
			encoder := json.NewEncoder(&got)
			encoder.SetEscapeHTML(false)
			encoder.SetIndent("", "  ")
			if err := encoder.Encode(map[string]any{"plan": plan, "findings": findings}); err != nil {
				t.Fatal(err)
			}
			golden.Assert(t, got.String(), name+".json")
		})
	}
}
