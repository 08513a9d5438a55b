// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

func nothing(*v1alpha1.LowLatencyNodeProfileSpec) {}

// changedSettings lists what a change of the profile adds to or takes from a list of settings.
func changedSettings(t *testing.T, machine *topology.Topology, of func(*NodePlan) []Setting, c change) []string {
	t.Helper()
	write := func(s Setting) string { return s.Name + "=" + s.Value }
	return difference(list(of(planOf(t, machine)), write), list(of(planOf(t, machine, c)), write))
}

func sysctls(p *NodePlan) []Setting { return p.Sysctls }
func sysfs(p *NodePlan) []Setting   { return p.Sysfs }

func TestSysctls(t *testing.T) {
	want := []string{"kernel.hung_task_timeout_secs=600", "kernel.nmi_watchdog=0", "kernel.numa_balancing=0",
		"kernel.sched_rt_runtime_us=-1", "kernel.timer_migration=1", "vm.compaction_proactiveness=0",
		"vm.dirty_background_ratio=3", "vm.dirty_ratio=10", "vm.stat_interval=10", "vm.swappiness=10"}
	got := list(planOf(t, xeon()).Sysctls, func(s Setting) string {
		if s.Origin.Detail == "" {
			t.Errorf("%s has no origin", s.Name)
		}
		return s.Name + "=" + s.Value
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kernel parameters (-want +got):\n%s", diff)
	}
	cases := map[string]struct {
		machine *topology.Topology
		change  change
		want    string
	}{
		"kept": {xeon(), func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			s.Kernel = v1alpha1.KernelSpec{Watchdogs: "Kept", TimerMigration: "Kept", RealTimeThrottling: "Kept"}
			s.NUMA.AutomaticBalancing = "Kept"
		}, "-kernel.nmi_watchdog=0 -kernel.numa_balancing=0 -kernel.sched_rt_runtime_us=-1 -kernel.timer_migration=1"},
		"timers stay": {xeon(), func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Kernel.TimerMigration = "Disabled" },
			"-kernel.timer_migration=1 +kernel.timer_migration=0"},
		"steering": {xeon(), func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Network.ReceivePacketSteering = "AllDevices" },
			"+net.core.rps_default_mask=10000100,00100001"},
		"own parameters":   {xeon(), parameter("net.core.busy_poll", "50"), "+net.core.busy_poll=50"},
		"the same again":   {xeon(), parameter("vm.swappiness", "10"), ""},
		"real-time kernel": {xeon(), realTime(nothing), "-kernel.numa_balancing=0"},
		"busy polling on a real-time kernel": {xeon(), realTime(parameter("net.core.busy_poll", "50")),
			"-kernel.numa_balancing=0"},
		"other parameters on a real-time kernel": {xeon(), realTime(parameter("net.core.netdev_budget", "50")),
			"-kernel.numa_balancing=0 +net.core.netdev_budget=50"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(strings.Fields(tc.want), changedSettings(t, tc.machine, sysctls, tc.change)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

// realTime asks for the real-time kernel besides.
func realTime(further change) change {
	return func(s *v1alpha1.LowLatencyNodeProfileSpec) {
		s.Kernel.Type = v1alpha1.KernelRealTime
		further(s)
	}
}

func TestKernelThreads(t *testing.T) {
	throttled := func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Kernel.RealTimeThrottling = v1alpha1.ActivityKept }
	all := []string{"ksoftirqd 11", "ktimers 11", "rcuc 11"}
	cases := map[string]struct {
		change change
		want   []string
	}{
		"real-time programs may run for ever":             {nothing, all},
		"real-time programs are throttled":                {throttled, nil},
		"they are throttled where softirqs have a thread": {realTime(throttled), all},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, thread := range planOf(t, xeon(), tc.change).KernelThreads {
				got = append(got, thread.Name+" "+strconv.Itoa(thread.Priority))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("threads with a priority (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRecommendedDriver: the models are those that the kernel calls sandybridge to skylake, and later ones.
func TestRecommendedDriver(t *testing.T) {
	machineOf := func(vendor string, family, model int) *topology.Topology {
		machine := xeon()
		machine.Vendor, machine.Family, machine.ModelNumber = vendor, family, model
		return machine
	}
	const silent, low = "", "plan.frequency-driver Low spec.power.frequencyDriver"
	cases := map[string]struct {
		machine  *topology.Topology
		want     v1alpha1.FrequencyDriverMode
		wantText string
		wantNote string
	}{
		"Sandy Bridge":          {machineOf("Intel", 6, 45), "Disabled", "intel_pstate=disable", silent},
		"Broadwell":             {machineOf("Intel", 6, 79), "Disabled", "intel_pstate=disable", silent},
		"Skylake, Cascade Lake": {machineOf("Intel", 6, 85), "Disabled", "intel_pstate=disable", silent},
		"Comet Lake":            {machineOf("Intel", 6, 165), "Disabled", "intel_pstate=disable", silent},
		"Ice Lake":              {machineOf("Intel", 6, 106), "Active", "intel_pstate=active", silent},
		"Sapphire Rapids":       {machineOf("Intel", 6, 143), "Active", "intel_pstate=active", silent},
		"another family":        {machineOf("Intel", 19, 85), "Active", "intel_pstate=active", silent},
		"an unknown family":     {machineOf("Intel", 0, 0), "Active", "intel_pstate=active", low},
		"AMD":                   {machineOf("AMD", 25, 1), "Guided", "amd_pstate=guided", silent},
		"arm64":                 {arm(), "Kept", "", silent},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan, findings := New(Input{Profile: profileWith(driver(v1alpha1.FrequencyDriverRecommended)), Topology: tc.machine})
			if got := plan.Power.FrequencyDriver; got != tc.want {
				t.Errorf("the driver is %s, want %s", got, tc.want)
			}
			if tc.wantText != "" && !slices.Contains(arguments(plan), tc.wantText) {
				t.Errorf("arguments are %q, want %s among them", arguments(plan), tc.wantText)
			}
			notes := list(findings, func(f Finding) string { return f.Rule + " " + string(f.Severity) + " " + f.Field })
			if noted := strings.Join(notes, ", "); noted != tc.wantNote {
				t.Errorf("findings are %q, want %q", noted, tc.wantNote)
			}
		})
	}
	withoutDriver := func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Power.Turbo = "Disabled" }
	got := changedSettings(t, machineOf("Intel", 6, 85), sysfs, withoutDriver)
	if diff := cmp.Diff([]string{"+/sys/devices/system/cpu/cpufreq/boost=0"}, got); diff != "" {
		t.Errorf("turbo without intel_pstate (-want +got):\n%s", diff)
	}
}

func parameter(name, value string) change {
	return func(s *v1alpha1.LowLatencyNodeProfileSpec) {
		s.System.KernelParameters = []v1alpha1.KernelParameter{{Name: name, Value: value}}
	}
}

func TestSysfs(t *testing.T) {
	const cpu = "/sys/devices/system/cpu/"
	turbo := func(mode v1alpha1.TurboMode) change {
		return func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Power.Turbo = mode }
	}
	cases := map[string]struct {
		machine *topology.Topology
		change  change
		want    string
	}{
		"pages kept": {xeon(), func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			s.Memory.TransparentHugepages, s.Memory.SamePageMerging = "Kept", "Kept"
		}, "-/sys/kernel/mm/ksm/run=2 -/sys/kernel/mm/transparent_hugepage/enabled=never"},
		"real-time kernel": {xeon(), realTime(nothing), "-/sys/kernel/mm/transparent_hugepage/enabled=never"},
		"Intel turbo off":  {xeon(), turbo("Disabled"), "+" + cpu + "intel_pstate/no_turbo=1"},
		"Intel turbo on":   {xeon(), turbo("Enabled"), "+" + cpu + "intel_pstate/no_turbo=0"},
		"Intel without intel_pstate": {xeon(), func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			s.Power.Turbo, s.Power.FrequencyDriver = "Disabled", "Disabled"
		}, "+" + cpu + "cpufreq/boost=0"},
		"AMD turbo on":  {epyc(), turbo("Enabled"), "+" + cpu + "cpufreq/boost=1"},
		"arm turbo off": {arm(), turbo("Disabled"), "+" + cpu + "cpufreq/boost=0"},
		"frequency caps": {small(2, 1), func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			s.Power.IsolatedMaximumFrequencyKilohertz, s.Power.HousekeepingMaximumFrequencyKilohertz = 3000000, 1500000
		}, "+" + cpu + "cpu0/cpufreq/scaling_max_freq=1500000 +" + cpu + "cpu1/cpufreq/scaling_max_freq=3000000"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(strings.Fields(tc.want), changedSettings(t, tc.machine, sysfs, tc.change)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
	plan := planOf(t, xeon())
	for _, path := range []string{"/sys/devices/virtual/workqueue/cpumask", "/sys/bus/workqueue/devices/writeback/cpumask"} {
		if !slices.ContainsFunc(plan.Sysfs, func(s Setting) bool { return s.Name == path && s.Value == "10000100,00100001" }) {
			t.Errorf("%s does not hold the housekeeping CPUs", path)
		}
	}
}

func TestHardwareFindings(t *testing.T) {
	caps := func(isolated int32) change {
		return func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			s.Power.IsolatedMaximumFrequencyKilohertz, s.Power.HousekeepingMaximumFrequencyKilohertz = isolated, 1600000
		}
	}
	other := xeon()
	other.Vendor = "Hygon"
	nowhere := xeon()
	nowhere.Architecture = ""
	riscv := xeon()
	riscv.Architecture = "riscv64"
	threadedArm := layout{architecture: "arm64", vendor: "ARM", release: "6.12.0", numaNodes: 1, coresPerNode: 4, threads: 2,
		memoryPerNode: 8 * gibibyte, stride: 1}.topology()
	newerArm := layout{architecture: "arm64", vendor: "ARM", release: "6.15.1", numaNodes: 1, coresPerNode: 4, threads: 2,
		memoryPerNode: 8 * gibibyte, stride: 1}.topology()
	cases := map[string]struct {
		machine *topology.Topology
		change  change
		want    []string
	}{
		"a frequency in range":     {xeon(), caps(3600000), nil},
		"a frequency out of range": {xeon(), caps(3600001), []string{"plan.frequency-range Critical spec.power.isolatedMaximumFrequencyKilohertz"}},
		"an unknown range": {arm(), caps(2000000), []string{"plan.frequency-range Low spec.power.housekeepingMaximumFrequencyKilohertz",
			"plan.frequency-range Low spec.power.isolatedMaximumFrequencyKilohertz"}},
		"Intel cannot guide": {xeon(), driver(v1alpha1.FrequencyDriverGuided), []string{"plan.frequency-driver High spec.power.frequencyDriver"}},
		"arm needs no mode":  {arm(), driver(v1alpha1.FrequencyDriverGuided), nil},
		"another vendor":     {other, nothing, []string{"plan.vendor Medium status.inventory"}},
		"turbo of another vendor": {other, func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Power.Turbo = "Disabled" },
			[]string{"plan.turbo Medium spec.power.turbo", "plan.vendor Medium status.inventory"}},
		"an unknown architecture": {nowhere, nothing, []string{"plan.architecture Critical status.inventory"}},
		"another architecture":    {riscv, nothing, []string{"plan.architecture Critical status.inventory"}},
		"large pages on amd64": {xeon(), func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Memory.KernelPageSize = "64Ki" },
			[]string{"plan.page-size Critical spec.memory.kernelPageSize"}},
		"large pages in real time": {arm(), func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			s.Memory.KernelPageSize, s.Kernel.Type = "64Ki", "RealTime"
		}, []string{"plan.real-time-kernel Critical spec.memory.kernelPageSize"}},
		"no IOMMU on arm":       {arm(), iommu(v1alpha1.IOMMUDisabled), []string{"plan.iommu High spec.kernel.iommu"}},
		"nosmt on an older arm": {threadedArm, smtDisabled, []string{"plan.smt Medium spec.cpus.simultaneousMultithreading"}},
		"nosmt on a newer arm":  {newerArm, smtDisabled, nil},
		"a parameter that real-time kernels lack": {xeon(), realTime(parameter("net.core.busy_read", "50")),
			[]string{"plan.kernel-parameters Medium spec.system.kernelParameters[0]"}},
		"a contradicted parameter": {xeon(), parameter("vm.swappiness", "60"), []string{"plan.kernel-parameters Critical spec.system.kernelParameters[0]"}},
		"an unsafe parameter":      {xeon(), parameter("vm.x", "1\n2"), []string{"plan.unsafe-text Critical spec.system.kernelParameters[0]"}},
		"an unsafe name":           {xeon(), parameter("vm", "1"), []string{"plan.unsafe-text Critical spec.system.kernelParameters[0]"}},
		"an unsafe module": {xeon(), func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.System.UnloadModules = []v1alpha1.ModuleName{"a b"} },
			[]string{"plan.unsafe-text Critical spec.system.unloadModules[0]"}},
		"an unsafe unit": {xeon(), func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			s.System.StopServices = []v1alpha1.UnitName{"../x.service"}
		},
			[]string{"plan.unsafe-text Critical spec.system.stopServices[0]"}},
		"the kubelet stopped": {xeon(), func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			s.System.StopServices = []v1alpha1.UnitName{"a.service", "kubelet.service"}
		},
			[]string{"plan.dangerous-setting Critical spec.system.stopServices[1]"}},
		"irqbalance stopped and needed": {xeon(), func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			s.System.StopServices = []v1alpha1.UnitName{"irqbalance.service"}
		},
			[]string{"plan.stop-services Critical spec.system.stopServices"}},
		"a virtual machine without a stable counter": {unstable("KVM"), nothing, []string{"plan.clock High spec.kernel.clocksource"}},
		"the same with its hypervisor's clock":       {unstable("KVM"), keptClock, nil},
		"a processor without a stable counter":       {unstable(""), keptClock, []string{"plan.clock Medium spec.cpus.tick"}},
		"a selector without NICs": {xeon(), func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			s.Network.NICs = []v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"ens1f0"}}, {Vendor: "ffff"}}
		}, []string{"plan.nic-selection Low spec.network.nics[1]"}},
		"no NIC selected": {small(4, 1), solarflare, []string{"plan.nic-selection Medium spec.network.nics[0]"}},
		"a NIC somewhere": {withNIC(arm(), nil), solarflare, []string{"plan.nic-locality High spec.network.nics"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, findingsOf(tc.machine, tc.change)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestServicesOfThePlatform: which services a node needs depends on the platform, too.
func TestServicesOfThePlatform(t *testing.T) {
	stopped := profileWith(func(s *v1alpha1.LowLatencyNodeProfileSpec) {
		s.System.StopServices = []v1alpha1.UnitName{"platform-agent.service"}
	})
	rules := PlatformRules{Services: []string{"platform-agent.service"}}
	if plan, findings := New(Input{Profile: stopped, Topology: xeon(), Platform: rules}); plan != nil || len(findings) != 1 ||
		findings[0].Rule != "plan.dangerous-setting" {
		t.Errorf("plan %v, findings %s: want the service kept", plan, describe(findings))
	}
	if plan, findings := New(Input{Profile: stopped, Topology: xeon()}); plan == nil {
		t.Errorf("no plan on another platform: %s", describe(findings))
	}
}

func TestProfileNameIsSafe(t *testing.T) {
	profile := profileWith()
	profile.Name = "../../etc"
	plan, findings := New(Input{Profile: profile, Topology: xeon()})
	if plan != nil || len(findings) != 1 || findings[0].Rule != "plan.profile-name" {
		t.Errorf("plan %v, findings %s", plan, describe(findings))
	}
}

func TestPowerPlanIsWhatTheHostCanHave(t *testing.T) {
	cases := map[string]struct {
		machine *topology.Topology
		want    v1alpha1.FrequencyDriverMode
	}{
		"Intel": {xeon(), v1alpha1.FrequencyDriverKept},
		"AMD":   {epyc(), v1alpha1.FrequencyDriverGuided},
		"arm64": {arm(), v1alpha1.FrequencyDriverKept},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := planOf(t, tc.machine, driver(v1alpha1.FrequencyDriverGuided)).Power.FrequencyDriver; got != tc.want {
				t.Errorf("driver mode %s, want %s", got, tc.want)
			}
		})
	}
}

// TestQueuesOfSelectors writes what udev cannot ask for as the addresses that the host has, and equal selections alike.
func TestQueuesOfSelectors(t *testing.T) {
	cases := map[string]struct {
		selectors []v1alpha1.NICSelector
		want      NetworkPlan
	}{
		"a NUMA node": {
			selectors: []v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"*"}, NUMANodes: []int32{1}}},
			want:      NetworkPlan{Queues: 4, NICs: []v1alpha1.NICSelector{{PCIAddresses: []v1alpha1.PCIAddress{"0000:af:00.0", "0000:af:00.1"}}}},
		},
		"a NUMA node without such a NIC: no queue is set, and not that of every NIC": {
			selectors: []v1alpha1.NICSelector{{Vendor: "1924", NUMANodes: []int32{7}}},
			want:      NetworkPlan{},
		},
		"virtual functions that there are none of": {
			selectors: []v1alpha1.NICSelector{{Vendor: "1924", Role: v1alpha1.RoleVirtualFunction}, {Vendor: "1924"}},
			want:      NetworkPlan{Queues: 4, NICs: []v1alpha1.NICSelector{{Vendor: "1924"}}},
		},
		"virtual functions that there will be": {
			selectors: []v1alpha1.NICSelector{{PCIAddresses: []v1alpha1.PCIAddress{"0000:b0:02.1"}, Role: v1alpha1.RoleVirtualFunction}},
			want: NetworkPlan{Queues: 4, NICs: []v1alpha1.NICSelector{
				{PCIAddresses: []v1alpha1.PCIAddress{"0000:b0:02.1"}, Role: v1alpha1.RoleVirtualFunction},
			}},
		},
		"other words for one selection": {
			selectors: []v1alpha1.NICSelector{
				{Drivers: []v1alpha1.DriverName{"test", "sfc"}, Link: v1alpha1.LinkAny, Role: v1alpha1.RolePhysicalFunction},
				{Drivers: []v1alpha1.DriverName{"sfc", "test"}},
			},
			want: NetworkPlan{Queues: 4, NICs: []v1alpha1.NICSelector{{Drivers: []v1alpha1.DriverName{"sfc", "test"}}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := planOf(t, xeon(), func(s *v1alpha1.LowLatencyNodeProfileSpec) {
				s.Network.Queues, s.Network.NICs = v1alpha1.QueuesHousekeepingCPUs, tc.selectors
				s.Memory.Hugepages = nil
			})
			tc.want.Steering, tc.want.Origin = v1alpha1.PacketSteeringOff, Origin{FromField, "spec.network.queues"}
			if diff := cmp.Diff(tc.want, plan.Network); diff != "" {
				t.Errorf("network (-want +got):\n%s", diff)
			}
		})
	}
}

func TestQueues(t *testing.T) {
	plan := planOf(t, xeon(), func(s *v1alpha1.LowLatencyNodeProfileSpec) {
		s.Network.Queues = v1alpha1.QueuesHousekeepingCPUs
		s.Network.NICs = []v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"ens2f0"}}, {Interfaces: []v1alpha1.InterfacePattern{"ens1f0"}}}
	})
	want := NetworkPlan{Queues: 4, Steering: v1alpha1.PacketSteeringOff, Origin: Origin{FromField, "spec.network.queues"},
		NICs: []v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"ens1f0"}}, {Interfaces: []v1alpha1.InterfacePattern{"ens2f0"}}}}
	if diff := cmp.Diff(want, plan.Network); diff != "" {
		t.Errorf("network (-want +got):\n%s", diff)
	}
}

// unstable is a machine whose time-stamp counter is not stable, "" for hardware.
func unstable(hypervisor string) *topology.Topology {
	machine := xeon()
	machine.Hypervisor, machine.TimestampCounter = hypervisor, v1alpha1.TimestampCounterUnstable
	return machine
}

func keptClock(s *v1alpha1.LowLatencyNodeProfileSpec) {
	s.Kernel.Clocksource = v1alpha1.ClocksourceKept
}
