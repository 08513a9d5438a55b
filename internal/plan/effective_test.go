// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

func TestDefaults(t *testing.T) {
	want := strings.TrimSpace(`
spec.containerRuntime.execPlacement = FirstCPU (Default)
spec.cpus.derived.housekeepingCores = 1 per NUMA node, at least 2 in all on nodes with more than 4 cores (Default)
spec.cpus.derived.keepNearBypassNICs = NoPreference (Default)
spec.cpus.derived.sharedCaches = Avoided (Default)
spec.cpus.derived.spread = PerNUMANode (Default)
spec.cpus.isolation = Static (Default)
spec.cpus.partition = Derived (Default)
spec.cpus.simultaneousMultithreading = Kept (Default)
spec.cpus.tick = Stopped (Default)
spec.interrupts.balancer = Restricted (Default)
spec.interrupts.placement = Housekeeping (Default)
spec.kernel.clocksource = ReliableTSC (Default)
spec.kernel.iommu = Passthrough (Default)
spec.kernel.machineChecks = Kept (Default)
spec.kernel.realTimeThrottling = Disabled (Default)
spec.kernel.timerMigration = Enabled (Default)
spec.kernel.type = Default (Default)
spec.kernel.watchdogs = Disabled (Default)
spec.kubelet.evictionHardMemory = 100Mi (Default)
spec.kubelet.fullCores = Required (Default)
spec.kubelet.kubeReservedMemory = 500Mi (Default)
spec.kubelet.resourceManagement = KubeletManagers (Default)
spec.kubelet.systemReservedMemory = 500Mi (Default)
spec.memory.kernelPageSize = 4Ki (Default)
spec.memory.samePageMerging = Disabled (Default)
spec.memory.transparentHugepages = Disabled (Default)
spec.network.queues = Kept (Default)
spec.network.receivePacketSteering = Off (Default)
spec.numa.automaticBalancing = Disabled (Default)
spec.numa.scope = Pod (Default)
spec.numa.topologyPolicy = SingleNUMANode (Default)
spec.pools.management = Managed (Default)
spec.power.frequencyDriver = Recommended (Default)
spec.power.governor = Performance (Default)
spec.power.idleStates = ShallowByQoS (Default)
spec.power.preset = LowLatency (Default)
spec.power.turbo = Kept (Default)
spec.rollout.bootFallback = Automatic (Default)
spec.rollout.state = Active (Default)
spec.system.packetFilter = Kept (Default)
spec.system.stopServices = fwupd-refresh.timer (Default)
spec.verification.failOn = Impact (Default)
spec.verification.gate = ReportOnly (Default)
spec.verification.repair = ReportOnly (Default)`)
	if diff := cmp.Diff(strings.Split(want, "\n"), settingsOf()); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

// settingsOf lists the settings of a profile for amd64, written as "field = value (origin)".
func settingsOf(changes ...change) []string {
	return list(Effective(profileWith(changes...), "amd64").Settings(), func(s v1alpha1.EffectiveSetting) string {
		return fmt.Sprintf("%s = %s (%s)", s.Field, s.Value, s.Origin)
	})
}

func TestDependentDefaults(t *testing.T) {
	cases := map[string]struct {
		change change
		want   []string
	}{
		"interrupts per pod keep irqbalance": {func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			s.Interrupts.Placement = v1alpha1.InterruptsPerPod
		}, []string{"spec.interrupts.balancer = Kept (Default)", "spec.interrupts.placement = PerPod (Profile)"}},
		"another topology policy": {topologyPolicy(v1alpha1.TopologyBestEffort), []string{
			"spec.kubelet.fullCores = NotRequired (Default)", "spec.numa.scope = Container (Default)", "spec.numa.topologyPolicy = BestEffort (Profile)"}},
		"no topology policy has no scope": {topologyPolicy(v1alpha1.TopologyNone), []string{
			"spec.kubelet.fullCores = NotRequired (Default)", "spec.numa.topologyPolicy = None (Profile)"}},
		"a preset": {preset(v1alpha1.PowerMaximumDeterminism), []string{
			"spec.power.frequencyDriver = Recommended (Preset)", "spec.power.governor = Performance (Preset)",
			"spec.power.idleStates = Polling (Preset)", "spec.power.preset = MaximumDeterminism (Profile)", "spec.power.turbo = Kept (Preset)"}},
		"a field beside a preset": {func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			s.Power = v1alpha1.PowerSpec{Preset: v1alpha1.PowerPerPod, FrequencyDriver: v1alpha1.FrequencyDriverActive}
		}, []string{"spec.power.frequencyDriver = Active (Profile)", "spec.power.governor = Kept (Preset)",
			"spec.power.idleStates = Kept (Preset)", "spec.power.preset = PerPod (Profile)", "spec.power.turbo = Kept (Preset)"}},
		"a default that is named": {func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.CPUs.Tick = v1alpha1.TickStopped },
			[]string{"spec.cpus.tick = Stopped (Profile)"}},
		"resources given by drivers": {func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			s.Kubelet.ResourceManagement = v1alpha1.ResourceManagementDRA
		}, []string{"spec.kubelet.resourceManagement = DynamicResourceAllocation (Profile)"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plain := settingsOf()
			got := slices.DeleteFunc(settingsOf(tc.change), func(s string) bool { return slices.Contains(plain, s) })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("changed settings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIOMMUDependsOnTheArchitecture(t *testing.T) {
	for architecture, want := range map[string]v1alpha1.IOMMUMode{"amd64": "Passthrough", "arm64": "Kept", "": ""} {
		if got := Effective(profileWith(), architecture).Spec.Kernel.IOMMU; got != want {
			t.Errorf("on %q the IOMMU mode is %q, want %q", architecture, got, want)
		}
	}
	settings := Effective(profileWith(), "").Settings()
	at := slices.IndexFunc(settings, func(s v1alpha1.EffectiveSetting) bool { return s.Field == "spec.kernel.iommu" })
	if at < 0 || settings[at].Value != "Passthrough on amd64, Kept on arm64" {
		t.Errorf("for nodes that differ the setting does not say on what it depends")
	}
}

// TestPresetsMatchTheDocumentation reads the table that kubectl explain prints.
func TestPresetsMatchTheDocumentation(t *testing.T) {
	source, err := os.ReadFile("../../api/v1alpha1/profile_tuning_types.go")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\s*//\s+(\w+) +\| (\S+) +\| (\S+) +\| (\S+) +\| (\S+)$`).FindAllStringSubmatch(string(source), -1)
	documented := map[v1alpha1.PowerPreset]powerSettings{}
	for _, row := range rows[1:] {
		for i, cell := range row {
			if cell == "-" {
				row[i] = "Kept"
			}
		}
		documented[v1alpha1.PowerPreset(row[1])] = powerSettings{v1alpha1.IdleStates(row[2]),
			v1alpha1.FrequencyDriverMode(row[3]), v1alpha1.FrequencyGovernor(row[4]), v1alpha1.TurboMode(row[5])}
	}
	if diff := cmp.Diff(documented, powerPresets(), cmp.AllowUnexported(powerSettings{})); diff != "" {
		t.Errorf("presets (-documented +code):\n%s", diff)
	}
}

// TestSettingsStayWithinTheBounds: the API takes 64 settings of at most 1024 characters.
func TestSettingsStayWithinTheBounds(t *testing.T) {
	full := func(s *v1alpha1.LowLatencyNodeProfileSpec) {
		s.Pools.MaximumUnavailableNodes = 3
		s.Memory = v1alpha1.MemorySpec{DefaultHugepageSize: "1Gi"}
		for i := range 64 {
			s.Memory.Hugepages = append(s.Memory.Hugepages, v1alpha1.HugepageReservation{Size: "1Gi", Count: 1, NUMANode: new(int32(i))})
			s.System.KernelParameters = append(s.System.KernelParameters,
				v1alpha1.KernelParameter{Name: "net.core." + strings.Repeat("ü", i), Value: strings.Repeat("1", 100)})
		}
		s.Power.IsolatedMaximumFrequencyKilohertz, s.Power.HousekeepingMaximumFrequencyKilohertz = 2000000, 2000000
		s.Kernel.AdditionalArguments = []v1alpha1.KernelArgument{"audit=0"}
		s.Network.NICs = []v1alpha1.NICSelector{{Vendor: "1924", Drivers: []v1alpha1.DriverName{"sfc"}}}
		s.Kubelet.AdditionalConfiguration = strings.Repeat("x", 16384)
		s.System.UnloadModules = []v1alpha1.ModuleName{"ip_tables"}
		s.Verification.Budget = &v1alpha1.JitterBudget{MaximumInterruptionMicroseconds: 10, StolenPartsPerMillion: 50}
		s.Verification.WaivedChecks = []v1alpha1.WaivedCheck{{Check: "power.turbo", Reason: "firmware"}}
	}
	lists := explicit(v1alpha1.ExplicitCPUs{Housekeeping: "0", Isolated: "1", Offline: "2", Shared: "3", DataPlane: "4"})
	settings := Effective(profileWith(full, lists), "amd64").Settings()
	if len(settings) > 64 || len(settings) < 50 {
		t.Errorf("%d settings", len(settings))
	}
	for i, s := range settings {
		if len(s.Value) == 0 || len(s.Value) > 1024 || !strings.HasPrefix(s.Field, "spec.") {
			t.Errorf("%s has a value of %d bytes", s.Field, len(s.Value))
		}
		if i > 0 && settings[i-1].Field >= s.Field {
			t.Errorf("%s is not in order", s.Field)
		}
	}
}

func TestEffectiveLeavesTheProfileAlone(t *testing.T) {
	profile := profileWith(derived(v1alpha1.DerivedCPUs{}), hugepages(v1alpha1.HugepageReservation{Size: "1Gi", Count: 1}))
	before := profile.DeepCopy()
	Effective(profile, "amd64")
	if diff := cmp.Diff(before, profile); diff != "" {
		t.Errorf("the profile changed:\n%s", diff)
	}
}
