// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package importer

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cmdline"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// machineOf is a host of 16 CPUs on two NUMA nodes. CPU n and n+8 are threads of one core where there
// is multithreading.
func machineOf(architecture, vendor string) *topology.Topology {
	t := &topology.Topology{
		Architecture: architecture, Vendor: vendor, Family: 6, ModelNumber: 106, KernelRelease: "5.14.0-570.el9.x86_64",
		Online: cpus.Of(), Present: cpus.Of(),
	}
	threads := 2
	if architecture == "arm64" {
		threads = 1
	}
	numa := make([]cpus.Set, 2)
	for first := range 16 / threads {
		core := cpus.Of(first)
		if threads == 2 {
			core = cpus.Of(first, first+8)
		}
		node := first * threads / 8
		numa[node] = numa[node].Union(core)
		t.Cores = append(t.Cores, topology.Core{CPUs: core, NUMANode: node, Package: node, L3: node})
	}
	t.Packages, t.L3Domains = numa, numa
	t.Online = numa[0].Union(numa[1])
	t.Present = t.Online
	for id, set := range numa {
		t.NUMANodes = append(t.NUMANodes, topology.NUMANode{
			ID: id, CPUs: set, MemoryBytes: new(int64(64 << 30)), Distances: []int{10, 20},
			HugepageSizes: []int64{64, 2048, 32 << 10, 512 << 10, 1 << 20, 16 << 20},
		})
	}
	return t
}

// confirmed imports a profile and confirms by name what a plan refuses until somebody does.
func confirmed(document []byte) (*v1alpha1.LowLatencyNodeProfile, error) {
	profile, _, err := FromPerformanceProfile(document)
	if err != nil {
		return nil, err
	}
	for _, text := range profile.Spec.Kernel.AdditionalArguments {
		if hazard, dangerous := plan.ArgumentHazard(string(text)); dangerous && hazard.Acceptable {
			profile.Spec.AcceptedRisks = append(profile.Spec.AcceptedRisks, v1alpha1.AcceptedRisk{Setting: string(text), Reason: "imported"})
		}
	}
	return profile, nil
}

// performanceArguments are the kernel arguments that the Node Tuning Operator gives a node of the vendor,
// without the hugepages, by its TuneD templates openshift-node-performance*. A PerformanceProfile's own
// arguments come last and win.
func performanceArguments(t *testing.T, source *performanceProfile, vendor string) map[string]bool {
	t.Helper()
	arguments := append(partitionArguments(t, source), hintedArguments(source, vendor)...)
	additional, _, _ := strings.Cut(strings.Join(source.Spec.AdditionalKernelArgs, " "), " -- ")
	for text := range strings.FieldsSeq(additional) {
		name, _, _ := strings.Cut(text, "=")
		if name != "console" && name != "mce" {
			arguments = slices.DeleteFunc(arguments, func(other string) bool { return strings.HasPrefix(other+"=", name+"=") })
		}
		arguments = append(arguments, text)
	}
	set := map[string]bool{}
	for _, argument := range arguments {
		set[argument] = true
	}
	return set
}

// partitionArguments are those of [bootloader] that follow from spec.cpu.
func partitionArguments(t *testing.T, source *performanceProfile) []string {
	t.Helper()
	read := func(text *cpuText) cpus.Set {
		set, err := cpus.Parse(string(ptr.Deref(text, "")))
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	cpu := source.Spec.CPU
	dpdk := read(cpu.OvsDpdk)
	iso := read(cpu.Isolated).Union(dpdk)
	others := read(cpu.Reserved).Union(read(cpu.Shared))
	isolcpus := "isolcpus=managed_irq," + iso.String()
	if !isTrue(cpu.BalanceIsolated, true) {
		isolcpus = "isolcpus=domain,managed_irq," + iso.String()
	}
	arguments := []string{
		"skew_tick=1", "nohz=on", "rcu_nocbs=" + iso.String(), "systemd.cpu_affinity=" + others.String(),
		"nohz_full=" + iso.String(), isolcpus,
	}
	if !dpdk.IsEmpty() {
		arguments = append(arguments, "irqaffinity="+others.Union(read(cpu.Isolated)).String())
	}
	return arguments
}

// hintedArguments are those that follow from the hints, by vendor.
func hintedArguments(source *performanceProfile, vendor string) []string {
	realTime, highPower, perPod, _ := source.hints()
	// TuneD recommends intel_pstate=active for every processor since Ice Lake, which is what the test machine has.
	intelMode, amdMode := "active", "guided"
	switch {
	case perPod:
		intelMode, amdMode = "passive", "passive"
	case source.Spec.HardwareTuning != nil:
		amdMode = "active"
	}
	intel, amd := vendor == "Intel", vendor == "AMD"
	x86 := intel || amd
	var arguments []string
	for _, row := range []struct {
		condition bool
		arguments []string
	}{
		{realTime, []string{"nosoftlockup", "rcutree.kthread_prio=11"}},
		{intel, []string{"intel_iommu=on", "iommu=pt", "intel_pstate=" + intelMode}},
		{amd, []string{"iommu=pt", "amd_pstate=" + amdMode}},
		{x86 && realTime, []string{"tsc=reliable", "nmi_watchdog=0", "mce=off"}},
		{x86 && highPower, []string{"processor.max_cstate=1"}},
		{intel && highPower, []string{"intel_idle.max_cstate=0"}},
		{x86 && highPower && realTime, []string{"idle=poll"}},
	} {
		if row.condition {
			arguments = append(arguments, row.arguments...)
		}
	}
	return arguments
}

// notInPlan says why the plan of an import does not have an argument of the PerformanceProfile; "" when
// it should.
func notInPlan(name, text, vendor string) string {
	if text == "intel_idle.max_cstate=0" && vendor == "AMD" {
		return "the driver that reads it does not run on AMD"
	}
	if name == "overrides" && strings.Contains(text, "_pstate=") && vendor == "AMD" {
		return "the mode of Intel's driver became a field, which holds for AMD's, too; a remark says so"
	}
	return map[string]map[string]string{
		"every-field": {
			`dyndbg="file`:     "spaces and quotes cannot be expressed; a remark says so",
			"a.c":              "the same",
			`+p"`:              "the same",
			"irqaffinity=0-11": "with globallyDisableIrqLoadBalancing TuneD narrows it to the housekeeping CPUs at run time; the plan does so from boot on",
		},
		"overrides": {
			"mce=ignore_ce": "it has no effect beside mce=off; a remark says so",
			"nohz_full=4-7": "the partition follows from the CPU lists; a remark says so",
			"maxcpus=8":     "the same",
		},
		"ran-distributed-unit": {
			"rcupdate.rcu_normal_after_boot=0": "the cpu-partitioning profile of TuneD sets 1 in sysfs; a remark says so",
		},
	}[name][text]
}

// onlyInPlan says why an argument that a PerformanceProfile does not have means no difference; "" when it
// does. Keys are arguments, or their names.
func onlyInPlan(text, vendor string) string {
	name, _, _ := strings.Cut(text, "=")
	reasons := map[string]string{
		"rcupdate.rcu_normal_after_boot=1": "the cpu-partitioning profile of TuneD, which a PerformanceProfile includes, sets it in sysfs",
		"rcutree.nohz_full_patience_delay": "RCU interrupts isolated CPUs less with it, and kernels before 6.12 pass over it",
		"transparent_hugepage=never":       "a PerformanceProfile sets it through TuneD",
		"irqaffinity":                      "TuneD sets the affinity at run time",
		"processor.max_cstate":             "idle=poll makes it moot",
		"nosoftlockup":                     "it is written out beside nmi_watchdog=1",
		"nohz_full":                        "the partition follows from the CPU lists; a remark says so",
	}
	if vendor == "AMD" {
		reasons["amd_pstate=disable"] = "see notInPlan"
	}
	if vendor != "Intel" {
		reasons["intel_pstate"] = "the driver that reads it does not run there"
		reasons["intel_iommu"] = "the same"
		reasons["intel_idle.max_cstate"] = "the same"
	}
	if vendor != "AMD" {
		reasons["amd_pstate"] = "the driver that reads it does not run there"
	}
	if vendor == "ARM" {
		reasons["nmi_watchdog=0"] = "a PerformanceProfile sets the watchdog by sysctl on arm64"
	}
	return reasons[text] + reasons[name]
}

// hugepagePairs reads hugepages from a command line, by size, pairs of 0 pages left out.
func hugepagePairs(arguments []string) map[string]string {
	pairs, size := map[string]string{}, ""
	for _, argument := range arguments {
		name, value, _ := strings.Cut(argument, "=")
		switch name {
		case "default_hugepagesz":
			pairs["default"] = value
		case "hugepagesz":
			size = value
		case "hugepages":
			if value != "0" {
				pairs[size] = value
			}
		}
	}
	return pairs
}

// performanceHugepages are the hugepages of a PerformanceProfile: pairs on the command line, and pages on
// NUMA nodes.
func performanceHugepages(source *performanceProfile) (pairs map[string]string, local []string) {
	pairs = map[string]string{}
	if pages := source.Spec.HugePages; pages != nil {
		pairs["default"] = ptr.Deref(pages.DefaultHugepagesSize, "")
		for _, page := range pages.Pages {
			switch {
			case page.Count == 0:
			case page.Node == nil:
				pairs[page.Size] = strconv.Itoa(int(page.Count))
			default:
				local = append(local, fmt.Sprintf("%d of %si on %d", page.Count, page.Size, *page.Node))
			}
		}
	}
	return pairs, local
}

func TestImportedProfilesBootTheSameKernelArguments(t *testing.T) {
	hosts := map[string]*topology.Topology{
		"Intel": machineOf("amd64", "Intel"), "AMD": machineOf("amd64", "AMD"), "ARM": machineOf("arm64", "ARM"),
	}
	for name, document := range sources(t) {
		for vendor, host := range hosts {
			t.Run(name+" on "+vendor, func(t *testing.T) {
				source, _, err := decode(document)
				if err != nil {
					t.Fatal(err)
				}
				if !fits(name, vendor) {
					t.Skip("the profile is for other hosts")
				}
				profile, err := confirmed(document)
				if err != nil {
					t.Fatal(err)
				}
				planned, findings := plan.New(plan.Input{Profile: profile, Topology: host})
				if planned == nil {
					t.Fatalf("no plan: %+v", findings)
				}
				compareArguments(t, name, vendor, source, planned)
			})
		}
	}
}

// fits reports whether a profile of testdata is meant for hosts of the vendor: by its page sizes, and by
// arguments that x86 kernels alone read.
func fits(name, vendor string) bool {
	if name == "arm64" {
		return vendor == "ARM"
	}
	return vendor != "ARM" || !slices.Contains([]string{"high-power", "high-power-only", "v1", "overrides"}, name)
}

func compareArguments(t *testing.T, name, vendor string, source *performanceProfile, planned *plan.NodePlan) {
	t.Helper()
	got := make([]string, 0, len(planned.KernelArguments))
	for _, argument := range planned.KernelArguments {
		got = append(got, argument.Text)
	}
	want := performanceArguments(t, source, vendor)
	for text := range want {
		if !isAmongSame(got, text) && !isHugepages(text) && notInPlan(name, text, vendor) == "" {
			t.Errorf("the plan lacks %s: %v", text, got)
		}
	}
	for _, text := range got {
		if !isAmongSame(slices.Collect(maps.Keys(want)), text) && !isHugepages(text) && onlyInPlan(text, vendor) == "" {
			t.Errorf("a PerformanceProfile has no %s: %v", text, want)
		}
	}
	if name != "overrides" {
		compareHugepages(t, source, planned, got)
	}
}

// isAmongSame reports whether one of the arguments is the same to the kernel.
func isAmongSame(texts []string, text string) bool {
	return slices.ContainsFunc(texts, func(other string) bool { return cmdline.Machine{}.SameText(text, other) })
}

func isHugepages(text string) bool {
	return strings.HasPrefix(text, "hugepages") || strings.HasPrefix(text, "default_hugepagesz")
}

func compareHugepages(t *testing.T, source *performanceProfile, planned *plan.NodePlan, arguments []string) {
	t.Helper()
	pairs, local := performanceHugepages(source)
	if diff := cmp.Diff(pairs, hugepagePairs(arguments)); diff != "" {
		t.Errorf("hugepages on the command line (-want +got):\n%s", diff)
	}
	var gotLocal []string
	for _, pages := range planned.Hugepages {
		if pages.NUMANode != nil {
			gotLocal = append(gotLocal, fmt.Sprintf("%d of %s on %d", pages.Count, pages.Size, *pages.NUMANode))
		}
	}
	if diff := cmp.Diff(local, gotLocal); diff != "" {
		t.Errorf("hugepages on NUMA nodes (-want +got):\n%s", diff)
	}
}

// TestImportedProfilesConfigureTheSameKubelet compares with what the Node Tuning Operator renders into
// the KubeletConfig.
func TestImportedProfilesConfigureTheSameKubelet(t *testing.T) {
	cases := map[string]plan.KubeletPlan{
		"defaults": {
			CPUManagerPolicy: "static", CPUManagerReconcilePeriod: "5s",
			TopologyManagerPolicy: "best-effort", TopologyManagerScope: "container",
			MemoryManagerPolicy: "None", ReservedSystemCPUs: "0-1,8-9",
			SystemReserved: map[string]string{"memory": "500Mi"}, KubeReserved: map[string]string{"memory": "500Mi"},
		},
		"per-pod-power": {
			CPUManagerPolicy: "static", CPUManagerReconcilePeriod: "5s",
			CPUManagerPolicyOptions: map[string]string{"full-pcpus-only": "true"},
			TopologyManagerPolicy:   "single-numa-node", TopologyManagerScope: "container",
			// CPUs 1 and 9 were shared without mixedCpus; see the remark.
			MemoryManagerPolicy: "Static", ReservedSystemCPUs: "0-1,8-9",
			ReservedMemory: []plan.MemoryReservation{{NUMANode: 0, Limits: map[string]string{"memory": "1100Mi"}}},
			SystemReserved: map[string]string{"memory": "500Mi"}, KubeReserved: map[string]string{"memory": "500Mi"},
		},
		"every-field": {
			CPUManagerPolicy: "static", CPUManagerReconcilePeriod: "5s",
			CPUManagerPolicyOptions: map[string]string{"strict-cpu-reservation": "true"},
			TopologyManagerPolicy:   "restricted", TopologyManagerScope: "pod",
			// reserved, shared and ovsDpdk.
			MemoryManagerPolicy: "Static", ReservedSystemCPUs: "0-3,12-13",
			ReservedMemory: []plan.MemoryReservation{{NUMANode: 0, Limits: map[string]string{"memory": "2760Mi"}}},
			SystemReserved: map[string]string{"memory": "1536Mi"}, KubeReserved: map[string]string{"memory": "1Gi", "cpu": "500m"},
			Additional: map[string]any{"allowedUnsafeSysctls": []any{"net.core.somaxconn"}},
		},
		"dynamic-allocation": {
			CPUManagerPolicy: "none", TopologyManagerPolicy: "none", MemoryManagerPolicy: "None",
			// A PerformanceProfile reserves none of the following; see the remark.
			ReservedSystemCPUs: "0-1,8-9",
			SystemReserved:     map[string]string{"memory": "500Mi"}, KubeReserved: map[string]string{"memory": "500Mi"},
			Additional: map[string]any{"maxPods": float64(100)},
		},
	}
	documents := sources(t)
	for name, want := range cases {
		t.Run(name, func(t *testing.T) {
			profile, err := confirmed(documents[name])
			if err != nil {
				t.Fatal(err)
			}
			planned, findings := plan.New(plan.Input{Profile: profile, Topology: machineOf("amd64", "Intel")})
			if planned == nil {
				t.Fatalf("no plan: %+v", findings)
			}
			got := planned.Kubelet
			if memory := got.EvictionHard["memory.available"]; memory != string(profile.Spec.Kubelet.EvictionHardMemory) {
				t.Errorf("evictionHard %v", got.EvictionHard)
			}
			got.EvictionHard, got.Origin = nil, plan.Origin{}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("kubelet (-want +got):\n%s", diff)
			}
		})
	}
}

// TestImportedProfilesKeepTheCPUSets compares the CPU sets of the plan with those of the PerformanceProfile.
func TestImportedProfilesKeepTheCPUSets(t *testing.T) {
	cases := map[string]plan.CPUPlan{
		"every-field": {
			Housekeeping: cpus.Of(0, 1, 2, 3), Shared: cpus.Of(2, 3), Isolated: cpus.Of(4, 5, 6, 7, 8, 9, 10, 11, 12, 13),
			DataPlane: cpus.Of(12, 13), Offline: cpus.Of(14, 15),
			SMT: v1alpha1.SMTKept, Isolation: v1alpha1.IsolationStatic, Tick: v1alpha1.TickStopped,
			DataPlaneBalancing: v1alpha1.LoadBalancingDisabled,
		},
		"high-power": {
			Housekeeping: cpus.Of(0, 1), Isolated: cpus.Of(2, 3, 4, 5, 6, 7),
			SMT: v1alpha1.SMTDisabled, Isolation: v1alpha1.IsolationPerPod, Tick: v1alpha1.TickStopped,
		},
	}
	documents := sources(t)
	for name, want := range cases {
		t.Run(name, func(t *testing.T) {
			profile, err := confirmed(documents[name])
			if err != nil {
				t.Fatal(err)
			}
			planned, findings := plan.New(plan.Input{Profile: profile, Topology: machineOf("amd64", "Intel")})
			if planned == nil {
				t.Fatalf("no plan: %+v", findings)
			}
			got := planned.CPUs
			got.Origin = plan.Origin{}
			if diff := cmp.Diff(want, got, cmp.Comparer(cpus.Set.Equal)); diff != "" {
				t.Errorf("CPUs (-want +got):\n%s", diff)
			}
		})
	}
}
