// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// TestValuesOfHazards: a setting is dangerous with some values only.
func TestValuesOfHazards(t *testing.T) {
	dangerous := map[string]change{}
	harmless := map[string]change{}
	for _, text := range []v1alpha1.KernelArgument{
		"acpi=off", "acpi=ht", "noapic", "numa=off", "numa=fake", "selinux=0", "selinux=off", "enforcing=0", "apparmor=0", "security=none", "lsm=yama,bpf",
		"systemd.unified_cgroup_hierarchy=0", "systemd.unified_cgroup_hierarchy=no", "systemd.legacy_systemd_cgroup_controller=1",
	} {
		dangerous["argument "+string(text)] = argument(text)
	}
	for _, text := range []v1alpha1.KernelArgument{
		"acpi=on", "acpi=force", "acpi=strict", "numa=on", "selinux=1", "selinux=2", "enforcing=1", "apparmor=1", "security=selinux", "lsm=lockdown,selinux",
		"systemd.unified_cgroup_hierarchy=yes", "systemd.legacy_systemd_cgroup_controller=0", "systemd.legacy_systemd_cgroup_controller=no",
	} {
		harmless["argument "+string(text)] = argument(text)
	}
	for name, values := range map[string]map[string]bool{
		"vm.overcommit_memory": {"0": false, "1": false, "2": true}, "kernel.modules_disabled": {"0": false, "1": true},
		"net.ipv4.ip_forward": {"0": true, "1": false, "2": false}, "net.ipv6.conf.all.forwarding": {"0": true, "1": false},
	} {
		for value, isDangerous := range values {
			map[bool]map[string]change{true: dangerous, false: harmless}[isDangerous]["parameter "+name+"="+value] = parameterSet(name, value)
		}
	}
	for _, text := range []string{"readOnlyPort: 1", "cgroupDriver: cgroupfs", "registerNode: false", "enableServer: false"} {
		dangerous["kubelet "+text] = configuration(text)
	}
	for _, text := range []string{"readOnlyPort: 0", "cgroupDriver: systemd", "registerNode: true", "enableServer: true"} {
		harmless["kubelet "+text] = configuration(text)
	}
	expectHazards(t, dangerous, 1)
	expectHazards(t, harmless, 0)
}

// expectHazards wants that many findings of each setting.
func expectHazards(t *testing.T, settings map[string]change, want int) {
	t.Helper()
	for name, setting := range settings {
		if got := hazardsOf(xeon(), setting); len(got) != want || want > 0 && !strings.HasPrefix(got[0], "Critical spec.") {
			t.Errorf("%s: findings %q, want %d", name, got, want)
		}
	}
}

// TestSplitSiblingsInASentence names eight cores.
func TestSplitSiblingsInASentence(t *testing.T) {
	_, findings := New(Input{
		Profile: profileWith(explicit(v1alpha1.ExplicitCPUs{Housekeeping: "0-9,20-21,60-61", Isolated: "10-19,22-59,62-79"})), Topology: xeon(),
	})
	want := "housekeeping and isolated CPUs share the cores of CPUs 0,40; 1,41; 2,42; 3,43; 4,44; 5,45; 6,46; 7,47 and others."
	if len(findings) != 1 || findings[0].Message != want {
		t.Errorf("findings %s", describe(findings))
	}
}

// TestLengthOfTheCommandLine is exact: each argument counts with the space or the end behind it.
func TestLengthOfTheCommandLine(t *testing.T) {
	length := 0
	for _, text := range arguments(planOf(t, small(4, 1))) {
		length += len(text) + 1
	}
	filling := func(bytes int) change {
		var texts []v1alpha1.KernelArgument
		for i := 0; bytes > 0; i++ {
			name := "a" + strings.Repeat("b", i) + "="
			size := min(bytes, 200)
			if bytes-size > 0 && bytes-size < 100 {
				size -= 100
			}
			texts = append(texts, v1alpha1.KernelArgument(name+strings.Repeat("x", size-1-len(name))))
			bytes -= size
		}
		return argument(texts...)
	}
	if got := findingsOf(small(4, 1), filling(maximumCommandLine-length)); len(got) > 0 {
		t.Errorf("as long as can be: %q", got)
	}
	want := []string{"plan.command-line-length Critical spec.kernel.additionalArguments"}
	if diff := cmp.Diff(want, findingsOf(small(4, 1), filling(maximumCommandLine-length+1))); diff != "" {
		t.Errorf("one byte more (-want +got):\n%s", diff)
	}
}

// TestListsOfTheProfileAreEchoed: what a profile lists is among the settings in force, as coming from it.
func TestListsOfTheProfileAreEchoed(t *testing.T) {
	for field, setting := range map[string]change{
		"spec.system.stopServices":             stopped("bluetooth.service"),
		"spec.system.unloadModules":            unloaded("ip_tables"),
		"spec.system.kernelParameters":         parameterSet("net.core.busy_poll", "50"),
		"spec.kernel.additionalArguments":      argument("audit=0"),
		"spec.memory.hugepages":                hugepages(v1alpha1.HugepageReservation{Size: "1Gi", Count: 1}),
		"spec.network.nics":                    solarflare,
		"spec.kubelet.additionalConfiguration": configuration("maxPods: 100"),
		"spec.containerRuntime.runtimeClassName": func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			s.ContainerRuntime.RuntimeClassName = "performance-trading"
		},
		"spec.verification.waivedChecks": func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			s.Verification.WaivedChecks = []v1alpha1.WaivedCheck{{Check: "power.turbo", Reason: "fixed in firmware"}}
		},
	} {
		found := ""
		for _, text := range settingsOf(setting) {
			if strings.HasPrefix(text, field+" = ") {
				found = text
			}
		}
		if !strings.HasSuffix(found, "(Profile)") {
			t.Errorf("%s: %q", field, found)
		}
	}
}

// TestNameOfTheRuntimeClass becomes a part of objects, and is refused where it cannot be one.
func TestNameOfTheRuntimeClass(t *testing.T) {
	for name, want := range map[string][]string{
		"": nil, "performance-trading": nil, "performance-a": nil,
		"performance-": {"plan.unsafe-text Critical spec.containerRuntime.runtimeClassName"},
		"trading\n":    {"plan.unsafe-text Critical spec.containerRuntime.runtimeClassName"},
	} {
		got := findingsOf(xeon(), func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.ContainerRuntime.RuntimeClassName = name })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", name, diff)
		}
	}
}

// TestWhatThePlanEchoes are the parts of a plan that say how it was made, which checks and statuses read.
func TestWhatThePlanEchoes(t *testing.T) {
	if got := planOf(t, xeon(), smtDisabled).CPUs.SMT; got != v1alpha1.SMTDisabled {
		t.Errorf("simultaneous multithreading %q", got)
	}
	if got := planOf(t, xeon()).CPUs.SMT; got != v1alpha1.SMTKept {
		t.Errorf("simultaneous multithreading %q", got)
	}
	allowed := derived(v1alpha1.DerivedCPUs{HousekeepingCores: 1, SharedCaches: v1alpha1.CacheSharingAllowed})
	if got := planOf(t, xeon(), allowed).CPUs.SharedCaches; got != v1alpha1.CacheSharingAllowed {
		t.Errorf("shared caches %q", got)
	}
	plan := planOf(t, xeon())
	if _, found := plan.BypassPool("none"); found {
		t.Error("a pool that nobody made is in the plan")
	}
	plan.BypassPools = []PoolPlan{{Name: "x2"}, {Name: "x3"}}
	if pool, found := plan.BypassPool("x3"); !found || pool.Name != "x3" {
		t.Errorf("pool %+v, found %t", pool, found)
	}
}

// TestKubeletValuesThatAreNone compares values that are no values of the kubelet by their text.
func TestKubeletValuesThatAreNone(t *testing.T) {
	same := sameKubeletValue("maxPods")
	for _, pair := range [][2]string{{"null", "{"}, {"{", "null"}, {"1", "{"}, {"{", "["}} {
		if same(pair[0], pair[1]) {
			t.Errorf("%s and %s are the same", pair[0], pair[1])
		}
	}
	if !same("{", "{") || !same(`"1Gi"`, `"1024Mi"`) {
		t.Error("the same values differ")
	}
}

// TestMemoryIsDoubtedOnce: a NUMA node that does not report its memory is named once, whatever asks for its pages.
func TestMemoryIsDoubtedOnce(t *testing.T) {
	machine := xeon()
	machine.NUMANodes[0].MemoryBytes = nil
	pages := hugepages(v1alpha1.HugepageReservation{Size: "1Gi", Count: 8, NUMANode: new(int32(0))}, v1alpha1.HugepageReservation{Size: "2Mi", Count: 8, NUMANode: new(int32(0))})
	if diff := cmp.Diff([]string{"plan.hugepage-memory Low spec.memory.hugepages[0]"}, findingsOf(machine, pages)); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

// TestReasonOfARebootForHugepages: pages of a gibibyte are rarely found after boot.
func TestReasonOfARebootForHugepages(t *testing.T) {
	for size, want := range map[v1alpha1.HugepageSize]string{"2Mi": whyAtOnce, "1Gi": whyFragmented} {
		one := planOf(t, xeon(), hugepages(v1alpha1.HugepageReservation{Size: size, Count: 1, NUMANode: new(int32(1))}))
		two := planOf(t, xeon(), hugepages(v1alpha1.HugepageReservation{Size: size, Count: 2, NUMANode: new(int32(1))}))
		found := ""
		for _, change := range Diff(one, two).Items {
			if strings.HasPrefix(change.What, "hugepages of ") {
				found = change.Why
			}
		}
		if found != want {
			t.Errorf("%s: %q, want %q", size, found, want)
		}
	}
}

// TestCachesThatOnlyDomainsTell: some hosts list their L3 domains and not the cache of each core.
func TestCachesThatOnlyDomainsTell(t *testing.T) {
	told, untold := large(), large()
	for i := range untold.Cores {
		untold.Cores[i].L3 = unknown
	}
	setting := derived(v1alpha1.DerivedCPUs{HousekeepingCores: 1})
	want := planOf(t, told, setting).CPUs
	if got := planOf(t, untold, setting).CPUs; got.Housekeeping.String() != want.Housekeeping.String() || want.Derivation.Reason != v1alpha1.PartitionWholeL3Domains {
		t.Errorf("housekeeping %s, want %s", got.Housekeeping, want.Housekeeping)
	}
}
