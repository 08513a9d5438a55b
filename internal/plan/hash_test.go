// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"encoding/json"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// rich is a profile that fills every part of a plan.
func rich(s *v1alpha1.LowLatencyNodeProfileSpec) {
	s.Memory.DefaultHugepageSize = "1Gi"
	s.Memory.Hugepages = []v1alpha1.HugepageReservation{
		{Size: "1Gi", Count: 16},
		{Size: "2Mi", Count: 400, Placement: v1alpha1.HugepagesBypassNICLocal},
	}
	s.Network.NICs = []v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"en*"}, Vendor: "1924"}, {Vendor: "15b3"}}
	s.System = v1alpha1.SystemSpec{
		StopServices:     []v1alpha1.UnitName{"fwupd-refresh.timer", "bluetooth.service"},
		UnloadModules:    []v1alpha1.ModuleName{"ip_tables", "bridge"},
		KernelParameters: []v1alpha1.KernelParameter{{Name: "net.core.busy_read", Value: "50"}, {Name: "net.core.busy_poll", Value: "50"}},
		PacketFilter:     v1alpha1.PacketFilterFlushed,
	}
	s.Kernel.AdditionalArguments = []v1alpha1.KernelArgument{"audit=0", "psi=0"}
	s.Kubelet.AdditionalConfiguration = "maxPods: 100\nstaticPodURLHeader: {origin: [a]}\n"
	s.Verification = v1alpha1.VerificationSpec{Gate: v1alpha1.GateTaint, WaivedChecks: []v1alpha1.WaivedCheck{
		{Check: "power.turbo", Reason: "firmware"}, {Check: "memory.swap", Reason: "none"}}}
}

func TestHashIgnoresOrigins(t *testing.T) {
	implied := planOf(t, xeon(), rich)
	named := planOf(t, xeon(), rich, func(s *v1alpha1.LowLatencyNodeProfileSpec) {
		s.CPUs.Tick, s.CPUs.Isolation, s.Kernel.Type = v1alpha1.TickStopped, v1alpha1.IsolationStatic, v1alpha1.KernelDefault
		s.Power.Preset, s.Interrupts.Placement = v1alpha1.PowerLowLatency, v1alpha1.InterruptsHousekeeping
		s.NUMA.TopologyPolicy, s.Kubelet.KubeReservedMemory = v1alpha1.TopologySingleNUMANode, "500Mi"
	})
	if cmp.Equal(implied, named) {
		t.Fatal("naming defaults changes no origin")
	}
	if implied.Hash() != named.Hash() {
		t.Errorf("naming defaults changes the hash:\n%s", cmp.Diff(implied, named))
	}
	if !regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(implied.Hash()) {
		t.Errorf("hash %q is not 16 hexadecimal digits", implied.Hash())
	}
	var none *NodePlan
	if none.Hash() != "" {
		t.Errorf("no plan has hash %q", none.Hash())
	}
}

func TestHashIgnoresTheOrderOfSets(t *testing.T) {
	turned := func(s *v1alpha1.LowLatencyNodeProfileSpec) {
		rich(s)
		turn(s.Memory.Hugepages)
		turn(s.Network.NICs)
		turn(s.System.StopServices)
		turn(s.System.UnloadModules)
		turn(s.System.KernelParameters)
		turn(s.Verification.WaivedChecks)
		s.Kubelet.AdditionalConfiguration = "staticPodURLHeader: {origin: [a]}\nmaxPods: 100\n"
	}
	before, after := planOf(t, xeon(), rich), planOf(t, xeon(), turned)
	if before.Hash() != after.Hash() {
		t.Errorf("the order of sets changes the plan:\n%s", cmp.Diff(before, after))
	}
}

func turn[T any](pair []T) { pair[0], pair[1] = pair[1], pair[0] }

// TestHashSeesEveryPart changes one part of a plan at a time.
func TestHashSeesEveryPart(t *testing.T) {
	original := planOf(t, xeon(), rich)
	cases := map[string]func(*NodePlan){
		"profile":         func(p *NodePlan) { p.Profile = "other" },
		"CPUs":            func(p *NodePlan) { p.CPUs.Isolated = set("1-3") },
		"arguments":       func(p *NodePlan) { p.KernelArguments[0].Text = "skew_tick=0" },
		"argument order":  func(p *NodePlan) { turn(p.KernelArguments) },
		"hugepages":       func(p *NodePlan) { p.Hugepages[0].Count++ },
		"NUMA node":       func(p *NodePlan) { p.Hugepages[0].NUMANode = new(7) },
		"interrupts":      func(p *NodePlan) { p.Interrupts.Banned = set("1") },
		"power":           func(p *NodePlan) { p.Power.Governor = v1alpha1.GovernorKept },
		"sysctl":          func(p *NodePlan) { p.Sysctls[0].Value = "601" },
		"sysfs":           func(p *NodePlan) { p.Sysfs[0].Value = "1" },
		"kubelet":         func(p *NodePlan) { p.Kubelet.EvictionHard["memory.available"] = "1Gi" },
		"kubelet extra":   func(p *NodePlan) { p.Kubelet.Additional["maxPods"] = 99.0 },
		"a key origin":    func(p *NodePlan) { p.Kubelet.Additional["staticPodURLHeader"] = map[string]any{"origin": []any{"b"}} },
		"runtime":         func(p *NodePlan) { p.ContainerRuntime.InfrastructureCPUs = set("1") },
		"platform's pods": func(p *NodePlan) { p.ContainerRuntime.WorkloadPartitioning = v1alpha1.WorkloadPartitioningEnabled },
		"requests":        func(p *NodePlan) { p.ContainerRuntime.PodRequests = nil },
		"file":            func(p *NodePlan) { p.Files[0].Content += " " },
		"unit":            func(p *NodePlan) { p.Units[0].Masked = !p.Units[0].Masked },
		"service":         func(p *NodePlan) { p.StopServices = p.StopServices[1:] },
		"NIC":             func(p *NodePlan) { p.BypassNICs[0].PCIAddress = "0000:00:00.0" },
		"verification":    func(p *NodePlan) { p.Verification.Waived[0].Reason = "" },
		"packet steering": func(p *NodePlan) { p.Network.Steering = v1alpha1.PacketSteeringAllDevices },
	}
	// These change nothing on a host by themselves; the masked service is a unit, too.
	noChange := map[string]bool{"profile": true, "argument order": true, "service": true, "verification": true}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			changed := planOf(t, xeon(), rich)
			change(changed)
			if changed.Hash() == original.Hash() {
				t.Error("the hash does not see it")
			}
			if equal := len(Diff(original, changed).Items) == 0; equal != noChange[name] {
				t.Errorf("no difference: %t, want %t", equal, noChange[name])
			}
		})
	}
}

func TestPlanSurvivesJSON(t *testing.T) {
	plan := planOf(t, xeon(), rich)
	data, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	var read NodePlan
	if err := json.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plan, &read); diff != "" {
		t.Errorf("plan (-written +read):\n%s", diff)
	}
	if plan.Hash() != read.Hash() {
		t.Errorf("hash %s becomes %s", plan.Hash(), read.Hash())
	}
}

// TestHashOfAWayBack: a profile that says what is so anyhow has the same plan, and one that accepts another way back has its own.
func TestHashOfAWayBack(t *testing.T) {
	with := func(fallback v1alpha1.BootFallback) change {
		return func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Rollout.BootFallback = fallback }
	}
	if got := findingsOf(xeon(), with(v1alpha1.BootFallbackByHandAccepted)); !slices.Contains(got, "plan.boot-fallback Low spec.rollout.bootFallback") {
		t.Errorf("findings %q", got)
	}
	none, automatic, byHand := planOf(t, xeon()), planOf(t, xeon(), with(v1alpha1.BootFallbackAutomatic)), planOf(t, xeon(), with(v1alpha1.BootFallbackByHandAccepted))
	if automatic.Hash() != none.Hash() || byHand.Hash() == none.Hash() || byHand.Kernel.BootFallback != v1alpha1.BootFallbackByHandAccepted {
		t.Errorf("hashes %s, %s and %s; the way back is %q", none.Hash(), automatic.Hash(), byHand.Hash(), byHand.Kernel.BootFallback)
	}
}
