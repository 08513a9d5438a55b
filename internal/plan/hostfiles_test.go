// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// file is the content of a planned file; "" when there is none.
func file(p *NodePlan, path string) string {
	at := slices.IndexFunc(p.Files, func(f File) bool { return f.Path == path })
	if at < 0 {
		return ""
	}
	return p.Files[at].Content
}

// unitOf is a planned unit; the zero unit when there is none.
func unitOf(p *NodePlan, name string) Unit {
	at := slices.IndexFunc(p.Units, func(u Unit) bool { return u.Name == name })
	if at < 0 {
		return Unit{}
	}
	return p.Units[at]
}

func unitNames(p *NodePlan) []string {
	return list(p.Units, func(u Unit) string { return u.Name })
}

func TestInterrupts(t *testing.T) {
	interrupts := func(placement v1alpha1.InterruptPlacement, balancer v1alpha1.InterruptBalancer) change {
		return func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			s.Interrupts = v1alpha1.InterruptsSpec{Placement: placement, Balancer: balancer}
		}
	}
	dataPlane := explicit(v1alpha1.ExplicitCPUs{Housekeeping: "0", Isolated: "1-2", DataPlane: "3"})
	const environment = "[Service]\nEnvironmentFile=/etc/lowlatency/irqbalance.env\n"
	cases := map[string]struct {
		changes  []change
		want     InterruptPlan
		wantUnit Unit
		wantFile string
	}{
		"restricted by default": {
			want:     InterruptPlan{Placement: "Housekeeping", Balancer: "Restricted", DefaultAffinity: set("0"), Banned: set("1-3")},
			wantUnit: Unit{Name: "irqbalance.service", DropIns: map[string]string{"10-lowlatency.conf": environment}},
			wantFile: "IRQBALANCE_BANNED_CPUS=e\nIRQBALANCE_BANNED_CPULIST=1-3\n",
		},
		"stopped": {
			changes:  []change{interrupts("Housekeeping", "Stopped")},
			want:     InterruptPlan{Placement: "Housekeeping", Balancer: "Stopped", DefaultAffinity: set("0")},
			wantUnit: Unit{Name: "irqbalance.service", Masked: true},
		},
		"kept": {
			changes: []change{interrupts("Housekeeping", "Kept")},
			want:    InterruptPlan{Placement: "Housekeeping", Balancer: "Kept", DefaultAffinity: set("0")},
		},
		"per pod": {
			changes: []change{interrupts("PerPod", "")},
			want:    InterruptPlan{Placement: "PerPod", Balancer: "Kept", DefaultAffinity: set("0-3")},
			wantUnit: Unit{Name: "irqbalance.service",
				DropIns: map[string]string{"10-lowlatency.conf": "[Service]\nEnvironment=IRQBALANCE_BANNED_CPUS=0\n"}},
		},
		"per pod beside a data plane": {
			changes: []change{interrupts("PerPod", ""), dataPlane},
			want:    InterruptPlan{Placement: "PerPod", Balancer: "Kept", DefaultAffinity: set("0-2"), Banned: set("3")},
			wantUnit: Unit{Name: "irqbalance.service",
				DropIns: map[string]string{"10-lowlatency.conf": "[Service]\nEnvironment=IRQBALANCE_BANNED_CPUS=8\n"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := planOf(t, small(4, 1), tc.changes...)
			got, gotUnit := plan.Interrupts, unitOf(plan, "irqbalance.service")
			got.Origin, gotUnit.Origin = Origin{}, Origin{}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("interrupts (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantUnit, gotUnit); diff != "" {
				t.Errorf("unit (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantFile, file(plan, "/etc/lowlatency/irqbalance.env")); diff != "" {
				t.Errorf("file (-want +got):\n%s", diff)
			}
		})
	}
	plan := planOf(t, small(4, 1), interrupts("PerPod", ""), dataPlane)
	if !slices.Contains(arguments(plan), "irqaffinity=0-2") {
		t.Error("interrupts of a fresh boot may go to the data plane")
	}
}

func TestContainerRuntime(t *testing.T) {
	cases := map[string]struct {
		changes []change
		want    ContainerRuntimePlan
	}{
		"default": {want: ContainerRuntimePlan{
			InfrastructureCPUs: set("0"), ExecPlacement: v1alpha1.ExecFirstCPU,
			PodRequests: []PodRequest{RequestIdleStates, RequestFrequencyGovernor, RequestLoadBalancing, RequestCPUQuota},
		}},
		"full": {
			changes: []change{
				explicit(v1alpha1.ExplicitCPUs{Housekeeping: "0", Isolated: "2-3", Shared: "1"}),
				func(s *v1alpha1.LowLatencyNodeProfileSpec) {
					s.Interrupts.Placement = v1alpha1.InterruptsPerPod
					s.ContainerRuntime.ExecPlacement = v1alpha1.ExecAnyCPU
				},
			},
			want: ContainerRuntimePlan{
				InfrastructureCPUs: set("0-1"), ExecPlacement: v1alpha1.ExecAnyCPU,
				PodRequests: []PodRequest{RequestIdleStates, RequestFrequencyGovernor, RequestLoadBalancing, RequestCPUQuota,
					RequestSharedCPUs, RequestInterrupts},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := planOf(t, small(4, 1), tc.changes...).ContainerRuntime
			got.Origin = Origin{}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("container runtime (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHugepageUnit(t *testing.T) {
	plan := planOf(t, xeon(), hugepages(v1alpha1.HugepageReservation{Size: "2Mi", Count: 400, NUMANode: new(int32(1))}))
	got := unitOf(plan, "lowlatency-hugepages-2048kB-numa1.service")
	want := `[Unit]
Description=Reserve 400 hugepages of 2Mi on NUMA node 1
Before=kubelet.service crio.service containerd.service

[Service]
Type=oneshot
RemainAfterExit=true
ExecStart=/usr/local/bin/lowlatency-hugepages 2048 1 400

[Install]
RequiredBy=kubelet.service
`
	if diff := cmp.Diff(want, got.Content); diff != "" || !got.Enabled {
		t.Errorf("enabled %t, unit (-want +got):\n%s", got.Enabled, diff)
	}
	if file(plan, "/usr/local/bin/lowlatency-hugepages") == "" {
		t.Error("the unit's script is not on the host")
	}
}

// cleaned is a profile that does all that spec.system can.
func cleaned(s *v1alpha1.LowLatencyNodeProfileSpec) {
	s.System = v1alpha1.SystemSpec{
		StopServices:  []v1alpha1.UnitName{"tuned.service", "bluetooth.service"},
		UnloadModules: []v1alpha1.ModuleName{"ip_tables", "bridge"},
		PacketFilter:  v1alpha1.PacketFilterFlushed,
	}
	s.Interrupts.Balancer = v1alpha1.BalancerStopped
	s.Network.ReceivePacketSteering = v1alpha1.PacketSteeringVirtualDevices
}

func TestServices(t *testing.T) {
	plan := planOf(t, small(4, 1), cleaned)
	wantUnits := []string{"bluetooth.service", "irqbalance.service", "lowlatency-flush-packet-filter.service",
		"lowlatency-kernel-threads.service", "lowlatency-unload-modules.service", "tuned.service"}
	if diff := cmp.Diff(wantUnits, unitNames(plan)); diff != "" {
		t.Errorf("units (-want +got):\n%s", diff)
	}
	if u := unitOf(plan, "tuned.service"); !u.Masked || u.Enabled {
		t.Errorf("tuned.service %+v, want it masked", u)
	}
	name := func(s Setting) string { return s.Name }
	if diff := cmp.Diff([]string{"bluetooth.service", "tuned.service"}, list(plan.StopServices, name)); diff != "" {
		t.Errorf("services (-want +got):\n%s", diff)
	}
}

func TestModules(t *testing.T) {
	plan := planOf(t, small(4, 1), cleaned)
	name := func(s Setting) string { return s.Name }
	if diff := cmp.Diff([]string{"bridge", "ip_tables"}, list(plan.UnloadModules, name)); diff != "" {
		t.Errorf("modules (-want +got):\n%s", diff)
	}
	want := "blacklist bridge\ninstall bridge /bin/false\nblacklist ip_tables\ninstall ip_tables /bin/false\n"
	if diff := cmp.Diff(want, file(plan, "/etc/modprobe.d/lowlatency-trading.conf")); diff != "" {
		t.Errorf("modprobe.d (-want +got):\n%s", diff)
	}
	unload := unitOf(plan, "lowlatency-unload-modules.service").Content
	for _, line := range []string{"ExecStart=-/usr/sbin/modprobe --remove --quiet bridge\n", "ExecStart=-/usr/sbin/modprobe --remove --quiet ip_tables\n"} {
		if !strings.Contains(unload, line) {
			t.Errorf("unit %q does not hold %q", unload, line)
		}
	}
}

func TestPacketFilterAndSteering(t *testing.T) {
	plan := planOf(t, small(4, 1), cleaned)
	flush := unitOf(plan, "lowlatency-flush-packet-filter.service").Content
	if !strings.Contains(flush, "nft flush ruleset") || !strings.Contains(flush, "Before=kubelet.service") || strings.Contains(flush, "RequiredBy") {
		t.Errorf("unit %q does not flush the rules before the kubelet starts, or keeps it from starting", flush)
	}
	if got := file(plan, "/etc/sysctl.d/99-lowlatency-rps.conf"); got != "net.core.rps_default_mask = 1\n" {
		t.Errorf("default mask of packet steering: %q", got)
	}
	if file(plan, "/etc/udev/rules.d/99-lowlatency-rps.rules") == "" {
		t.Error("physical NICs are steered, too")
	}
}

func TestIrqbalanceMayBeStoppedTwice(t *testing.T) {
	plan := planOf(t, small(4, 1), func(s *v1alpha1.LowLatencyNodeProfileSpec) {
		s.System.StopServices = []v1alpha1.UnitName{"irqbalance.service"}
		s.Interrupts.Balancer = v1alpha1.BalancerStopped
	})
	if diff := cmp.Diff([]string{"irqbalance.service", "lowlatency-kernel-threads.service"}, unitNames(plan)); diff != "" {
		t.Errorf("units (-want +got):\n%s", diff)
	}
}

func TestDataPlane(t *testing.T) {
	lists := v1alpha1.ExplicitCPUs{Housekeeping: "0", Isolated: "1-2", DataPlane: "3", DataPlaneLoadBalancing: "Disabled"}
	plan := planOf(t, small(4, 1), explicit(lists))
	slice := unitOf(plan, "dataplane.slice").Content
	if !strings.Contains(slice, "AllowedCPUs=3\n") {
		t.Errorf("slice %q does not hold the data plane's CPUs", slice)
	}
	partition := unitOf(plan, "lowlatency-dataplane-partition.service").Content
	if !strings.Contains(partition, "ExecStart=/usr/local/bin/lowlatency-dataplane-partition dataplane.slice\n") {
		t.Errorf("unit %q makes no partition", partition)
	}
	if plan.Kubelet.ReservedSystemCPUs != "0,3" {
		t.Errorf("the kubelet reserves %s, want 0,3", plan.Kubelet.ReservedSystemCPUs)
	}
	lists.DataPlaneLoadBalancing = ""
	if u := unitOf(planOf(t, small(4, 1), explicit(lists)), "lowlatency-dataplane-partition.service"); u.Name != "" {
		t.Errorf("a balanced data plane gets a partition: %+v", u)
	}
}

func TestOfflineUnit(t *testing.T) {
	plan := planOf(t, small(4, 1), explicit(v1alpha1.ExplicitCPUs{Housekeeping: "0", Isolated: "1", Offline: "2-3"}))
	content := unitOf(plan, "lowlatency-offline-cpus.service").Content
	for _, line := range []string{"ExecStart=/usr/local/bin/lowlatency-offline-cpus 2 3\n", "RequiredBy=kubelet.service\n"} {
		if !strings.Contains(content, line) {
			t.Errorf("unit %q does not hold %q", content, line)
		}
	}
}
