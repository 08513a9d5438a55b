// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

type change = func(*v1alpha1.LowLatencyNodeProfileSpec)

// partitionCase is a machine, a profile and the partition that they make.
type partitionCase struct {
	machine                        *topology.Topology
	profile                        []change
	wantHousekeeping, wantIsolated string
	wantFindings                   []string
}

func runPartitionCases(t *testing.T, cases map[string]partitionCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := planOf(t, tc.machine, tc.profile...)
			if got := plan.CPUs.Housekeeping.String(); got != tc.wantHousekeeping {
				t.Errorf("housekeeping %s, want %s", got, tc.wantHousekeeping)
			}
			if got := plan.CPUs.Isolated.String(); got != tc.wantIsolated {
				t.Errorf("isolated %s, want %s", got, tc.wantIsolated)
			}
			if diff := cmp.Diff(tc.wantFindings, findingsOf(tc.machine, tc.profile...)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDerivedNumberOfCores counts from every NUMA node or from the first.
func TestDerivedNumberOfCores(t *testing.T) {
	runPartitionCases(t, map[string]partitionCase{
		"one core of each NUMA node by default": {
			machine:          xeon(),
			wantHousekeeping: "0,20,40,60", wantIsolated: "1-19,21-39,41-59,61-79",
		},
		"two cores without NUMA on more than four": {
			machine:          small(8, 2),
			wantHousekeeping: "0-1,8-9", wantIsolated: "2-7,10-15",
		},
		"two cores from the only NUMA node": {
			machine: small(8, 1), profile: []change{derived(v1alpha1.DerivedCPUs{Spread: v1alpha1.SpreadFirstNUMANode})},
			wantHousekeeping: "0-1", wantIsolated: "2-7",
		},
		"one core of four from the first NUMA node": {
			machine: small(4, 1), profile: []change{derived(v1alpha1.DerivedCPUs{Spread: v1alpha1.SpreadFirstNUMANode})},
			wantHousekeeping: "0", wantIsolated: "1-3",
		},
		"two cores of five from the first NUMA node": {
			machine: small(5, 1), profile: []change{derived(v1alpha1.DerivedCPUs{Spread: v1alpha1.SpreadFirstNUMANode})},
			wantHousekeeping: "0-1", wantIsolated: "2-4",
		},
		"one core of four": {
			machine:          small(4, 1),
			wantHousekeeping: "0", wantIsolated: "1-3",
		},
		"as many as asked for": {
			machine: xeon(), profile: []change{derived(v1alpha1.DerivedCPUs{HousekeepingCores: 3})},
			wantHousekeeping: "0-2,20-22,40-42,60-62", wantIsolated: "3-19,23-39,43-59,63-79",
		},
		"from the first NUMA node": {
			machine: xeon(), profile: []change{derived(v1alpha1.DerivedCPUs{HousekeepingCores: 3, Spread: v1alpha1.SpreadFirstNUMANode})},
			wantHousekeeping: "0-2,40-42", wantIsolated: "3-39,43-79",
			wantFindings: []string{"plan.numa-housekeeping Low spec.cpus.derived"},
		},
		"two in all from the first NUMA node by default": {
			machine: xeon(), profile: []change{derived(v1alpha1.DerivedCPUs{Spread: v1alpha1.SpreadFirstNUMANode})},
			wantHousekeeping: "0-1,40-41", wantIsolated: "2-39,42-79",
			wantFindings: []string{"plan.numa-housekeeping Low spec.cpus.derived"},
		},
	})
}

// TestDerivedNearNICsAndCaches weighs locality against the number of cores.
func TestDerivedNearNICsAndCaches(t *testing.T) {
	runPartitionCases(t, map[string]partitionCase{
		"away from the bypass NIC of NUMA node 1": {
			machine: xeon(), profile: []change{solarflare,
				derived(v1alpha1.DerivedCPUs{HousekeepingCores: 21, Spread: v1alpha1.SpreadFirstNUMANode, KeepNearBypassNICs: v1alpha1.NearNICIsolated})},
			wantHousekeeping: "0-20,40-60", wantIsolated: "21-39,61-79",
			wantFindings: []string{"plan.numa-isolated Medium spec.cpus.derived"},
		},
		"away from the bypass NIC of NUMA node 0, but for the boot CPU": {
			machine: xeon(), profile: []change{
				func(s *v1alpha1.LowLatencyNodeProfileSpec) {
					s.Network.NICs = []v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"ens1f0"}}}
				},
				derived(v1alpha1.DerivedCPUs{HousekeepingCores: 3, Spread: v1alpha1.SpreadFirstNUMANode, KeepNearBypassNICs: v1alpha1.NearNICIsolated})},
			wantHousekeeping: "0,20-21,40,60-61", wantIsolated: "1-19,22-39,41-59,62-79",
		},
		"one core only near the bypass NIC": {
			machine: xeon(), profile: []change{solarflare,
				derived(v1alpha1.DerivedCPUs{HousekeepingCores: 4, KeepNearBypassNICs: v1alpha1.NearNICIsolated})},
			wantHousekeeping: "0-3,20,40-43,60", wantIsolated: "4-19,21-39,44-59,61-79",
		},
		"rounded up to whole caches": {
			machine: large(), profile: []change{derived(v1alpha1.DerivedCPUs{HousekeepingCores: 1})},
			wantHousekeeping: "0-7,128-135,256-263,384-391", wantIsolated: "8-127,136-255,264-383,392-511",
			wantFindings: []string{"plan.housekeeping-share Low spec.cpus.derived"},
		},
		"rounded up near the bypass NIC, too": {
			machine: withNIC(large(), new(1)), profile: []change{solarflare, derived(v1alpha1.DerivedCPUs{HousekeepingCores: 9, KeepNearBypassNICs: v1alpha1.NearNICIsolated})},
			wantHousekeeping: "0-15,128-135,256-271,384-391", wantIsolated: "16-127,136-255,272-383,392-511",
			wantFindings: []string{"plan.housekeeping-share Low spec.cpus.derived"},
		},
		"not rounded up to more than a quarter": {
			machine: epyc(), profile: []change{derived(v1alpha1.DerivedCPUs{HousekeepingCores: 2, Spread: v1alpha1.SpreadPerNUMANode})},
			wantHousekeeping: "0-1,8-9,16-17,24-25,32-33,40-41,48-49,56-57,64-65,72-73,80-81,88-89,96-97,104-105,112-113,120-121",
			wantIsolated:     "2-7,10-15,18-23,26-31,34-39,42-47,50-55,58-63,66-71,74-79,82-87,90-95,98-103,106-111,114-119,122-127",
			wantFindings:     []string{"plan.housekeeping-share Low spec.cpus.derived", "plan.shared-cache Low spec.cpus.derived"},
		},
		"rounded up to more than a quarter when asked to": {
			machine: epyc(), profile: []change{derived(v1alpha1.DerivedCPUs{HousekeepingCores: 2, SharedCaches: v1alpha1.CacheSharingExcluded})},
			wantHousekeeping: "0-3,8-11,16-19,24-27,32-35,40-43,48-51,56-59,64-67,72-75,80-83,88-91,96-99,104-107,112-115,120-123",
			wantIsolated:     "4-7,12-15,20-23,28-31,36-39,44-47,52-55,60-63,68-71,76-79,84-87,92-95,100-103,108-111,116-119,124-127",
			wantFindings:     []string{"plan.housekeeping-share Low spec.cpus.derived"},
		},
		"not rounded when sharing is allowed": {
			machine: large(), profile: []change{derived(v1alpha1.DerivedCPUs{HousekeepingCores: 1, SharedCaches: v1alpha1.CacheSharingAllowed})},
			wantHousekeeping: "0,128,256,384", wantIsolated: "1-127,129-255,257-383,385-511",
		},
		"not rounded when nothing would be left": {
			machine: small2Caches(), profile: []change{derived(v1alpha1.DerivedCPUs{HousekeepingCores: 5})},
			wantHousekeeping: "0-4", wantIsolated: "5-7",
			wantFindings: []string{"plan.shared-cache Low spec.cpus.derived"},
		},
	})
}

// TestDerivedUnusualCPUs divides threads, offline CPUs and odd numbering.
func TestDerivedUnusualCPUs(t *testing.T) {
	runPartitionCases(t, map[string]partitionCase{
		"first threads without multithreading": {
			machine: xeon(), profile: []change{smtDisabled},
			wantHousekeeping: "0,20", wantIsolated: "1-19,21-39",
		},
		"first threads when nosmt is in force already": {
			machine: withoutSMT(xeon(), true), profile: []change{smtDisabled},
			wantHousekeeping: "0,20", wantIsolated: "1-19,21-39",
		},
		"siblings that nosmt took offline come back": {
			machine:          withoutSMT(xeon(), true),
			wantHousekeeping: "0,20,40,60", wantIsolated: "1-19,21-39,41-59,61-79",
		},
		"siblings that the host does not name stay out": {
			machine:          withoutSMT(xeon(), false),
			wantHousekeeping: "0,20", wantIsolated: "1-19,21-39",
			wantFindings: []string{"plan.offline-cpus Medium spec.cpus.simultaneousMultithreading"},
		},
		"a NUMA node with memory only needs no housekeeping": {
			machine:          withMemoryNode(xeon()),
			wantHousekeeping: "0,20,40,60", wantIsolated: "1-19,21-39,41-59,61-79",
		},
		"sparse numbers": {
			machine: layout{architecture: "amd64", vendor: "AMD", numaNodes: 2, coresPerNode: 3, threads: 1, first: 4, stride: 4,
				memoryPerNode: 8 * gibibyte}.topology(),
			wantHousekeeping: "4,16", wantIsolated: "8,12,20,24",
		},
		"an offline CPU belongs to nothing": {
			machine:          offlined(xeon(), 5),
			wantHousekeeping: "0,20,40,60", wantIsolated: "1-4,6-19,21-39,41-59,61-79",
		},
		"CPUs whose core is unknown count as cores": {
			machine:          coreless(small(4, 1)),
			wantHousekeeping: "0", wantIsolated: "1-3",
		},
	})
}

// small2Caches has one NUMA node with two L3 domains of four cores.
func small2Caches() *topology.Topology {
	return layout{architecture: "amd64", vendor: "AMD", numaNodes: 1, coresPerNode: 8, threads: 1, cachesPerNode: 2,
		memoryPerNode: 8 * gibibyte, stride: 1}.topology()
}

// offlined takes a CPU offline by hand; the kernel then names no siblings for it.
func offlined(t *topology.Topology, id int) *topology.Topology {
	gone := cpus.Of(id)
	t.Online, t.Offline = t.Online.Difference(gone), t.Offline.Union(gone)
	for i := range t.Cores {
		t.Cores[i].CPUs = t.Cores[i].CPUs.Difference(gone)
	}
	for i := range t.NUMANodes {
		t.NUMANodes[i].CPUs = t.NUMANodes[i].CPUs.Difference(gone)
	}
	return t
}

// coreless tells no cores and no caches.
func coreless(t *topology.Topology) *topology.Topology {
	t.Cores, t.L3Domains = nil, nil
	return t
}

func TestNothingToIsolate(t *testing.T) {
	cases := map[string]struct {
		machine *topology.Topology
		profile []change
		want    []string
	}{
		"a single core":         {small(1, 2), nil, []string{"plan.nothing-isolated Critical spec.cpus.derived"}},
		"more cores than there": {small(4, 1), []change{derived(v1alpha1.DerivedCPUs{HousekeepingCores: 9})}, []string{"plan.nothing-isolated Critical spec.cpus.derived"}},
		"no CPU at all": {&topology.Topology{Architecture: "amd64", Vendor: "Intel", Family: 6}, nil,
			[]string{"plan.no-housekeeping Critical spec.cpus.derived", "plan.nothing-isolated Critical spec.cpus.derived"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, findingsOf(tc.machine, tc.profile...)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNUMANodeWithoutIsolatedCPUs(t *testing.T) {
	machine := xeon()
	machine.NUMANodes[1].CPUs = cpus.Of(39)
	for i := range machine.Cores {
		switch {
		case i < 39:
			machine.Cores[i].NUMANode = 0
		default:
			machine.Cores[i].NUMANode = 1
		}
	}
	want := []string{"plan.numa-isolated Medium spec.cpus.derived", "plan.shared-cache Low spec.cpus.derived"}
	if diff := cmp.Diff(want, findingsOf(machine)); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestPlanningAgainAfterNosmtChangesNothing(t *testing.T) {
	before := planOf(t, xeon(), smtDisabled)
	for _, told := range []bool{true, false} {
		after := planOf(t, withoutSMT(xeon(), told), smtDisabled)
		if before.Hash() != after.Hash() {
			t.Errorf("siblings told %t: plan changes after the reboot:\n%s", told, cmp.Diff(before, after))
		}
	}
}

func TestBypassNICsOfPools(t *testing.T) {
	claimed := nic("0000:b0:00.0", "", "1924", new(1))
	plan, _ := New(Input{
		Profile:    profileWith(solarflare, derived(v1alpha1.DerivedCPUs{HousekeepingCores: 2, KeepNearBypassNICs: v1alpha1.NearNICIsolated})),
		Topology:   xeon(),
		BypassNICs: []topology.NIC{claimed, xeon().NICs[1]},
	})
	want := []NICPlan{
		{PCIAddress: "0000:af:00.0", Vendor: "1924", Device: "0b03", NUMANode: new(1)},
		{PCIAddress: "0000:b0:00.0", Vendor: "1924", Device: "0b03", NUMANode: new(1)},
	}
	if diff := cmp.Diff(want, plan.BypassNICs); diff != "" {
		t.Errorf("bypass NICs (-want +got):\n%s", diff)
	}
	if got := plan.CPUs.Housekeeping.String(); got != "0-1,20,40-41,60" {
		t.Errorf("housekeeping %s, want one core near the NICs", got)
	}
}

// TestCostOfAPartitionIsSaid: the number asked for, the number given, why, and what else could be chosen.
func TestCostOfAPartitionIsSaid(t *testing.T) {
	near := v1alpha1.DerivedCPUs{HousekeepingCores: 2, KeepNearBypassNICs: v1alpha1.NearNICIsolated}
	cases := map[string]struct {
		machine *topology.Topology
		profile []change
		want    Derivation
		wantSay []string
	}{
		"two cores of each of eight NUMA nodes": {
			machine: epyc(), profile: []change{derived(v1alpha1.DerivedCPUs{HousekeepingCores: 2})},
			want: Derivation{Asked: 16, Housekeeping: 16, Isolated: 48, Reason: v1alpha1.PartitionSharedL3Domains},
			wantSay: []string{
				"housekeeping takes 16 of 64 cores, 25%; 2 on each of 8 NUMA nodes. " +
					"Ask for fewer cores if that is too much. Or choose: spread FirstNUMANode with housekeepingCores 2 takes 4 cores.",
				"housekeeping and isolated CPUs share L3 domains on NUMA nodes 0-7: CPUs " +
					"0-3,8-11,16-19,24-27,32-35,40-43,48-51,56-59,64-67,72-75,80-83,88-91,96-99,104-107,112-115,120-123; " +
					"whole ones would take 32 of 64 cores instead of 16. Set spec.cpus.derived.sharedCaches to Allowed if it does no harm. " +
					"Or choose: spread FirstNUMANode with housekeepingCores 2 takes 4 cores; sharedCaches Excluded takes 32 cores.",
			},
		},
		"whole domains": {
			machine: large(), profile: []change{derived(v1alpha1.DerivedCPUs{HousekeepingCores: 1})},
			want: Derivation{Asked: 2, Housekeeping: 16, Isolated: 240, Reason: v1alpha1.PartitionWholeL3Domains},
			wantSay: []string{"housekeeping takes 16 of 256 cores, 6%; 1 on each of 2 NUMA nodes; it is rounded up from 2 to whole L3 domains. " +
				"Ask for fewer cores if that is too much. Or choose: spread FirstNUMANode with housekeepingCores 2 takes 8 cores; sharedCaches Allowed takes 2 cores."},
		},
		"fewer near the NIC": {
			machine: xeon(), profile: []change{solarflare, derived(near)},
			want: Derivation{Asked: 4, Housekeeping: 3, Isolated: 37, Reason: v1alpha1.PartitionFewerNearBypassNICs},
		},
		"as many as asked for near the NIC": {
			machine: xeon(), profile: []change{solarflare, derived(v1alpha1.DerivedCPUs{HousekeepingCores: 1, KeepNearBypassNICs: v1alpha1.NearNICIsolated})},
			want: Derivation{Asked: 2, Housekeeping: 2, Isolated: 38, Reason: v1alpha1.PartitionAsAsked},
		},
		"whole domains of the only NUMA node": {
			machine: small4Caches(), profile: []change{derived(v1alpha1.DerivedCPUs{HousekeepingCores: 1, Spread: v1alpha1.SpreadPerNUMANode})},
			want: Derivation{Asked: 1, Housekeeping: 4, Isolated: 12, Reason: v1alpha1.PartitionWholeL3Domains},
			wantSay: []string{"housekeeping takes 4 of 16 cores, 25%; it is rounded up from 1 to whole L3 domains. " +
				"Ask for fewer cores if that is too much. Or choose: sharedCaches Allowed takes 1 cores."},
		},
		"on the first NUMA node": {
			machine: xeon(), profile: []change{derived(v1alpha1.DerivedCPUs{HousekeepingCores: 3, Spread: v1alpha1.SpreadFirstNUMANode})},
			want: Derivation{Asked: 3, Housekeeping: 3, Isolated: 37, Reason: v1alpha1.PartitionAsAsked},
			wantSay: []string{"NUMA node 1 has isolated CPUs but no housekeeping CPU, so the kernel serves them from another NUMA node. " +
				"Make a core of this NUMA node housekeeping."},
		},
		"as asked": {
			machine: xeon(), want: Derivation{Asked: 2, Housekeeping: 2, Isolated: 38, Reason: v1alpha1.PartitionAsAsked},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan, findings := New(Input{Profile: profileWith(tc.profile...), Topology: tc.machine})
			if diff := cmp.Diff(&tc.want, plan.CPUs.Derivation); diff != "" {
				t.Errorf("derivation (-want +got):\n%s", diff)
			}
			said := list(findings, func(f Finding) string { return f.Message + " " + f.Remedy })
			if diff := cmp.Diff(tc.wantSay, said); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSharedCachesOfThePlanAreNotHeldAgainstIt: a plan that shares caches says so to its own check.
func TestSharedCachesOfThePlanAreNotHeldAgainstIt(t *testing.T) {
	for name, profile := range map[string]change{
		"derived":  derived(v1alpha1.DerivedCPUs{HousekeepingCores: 5}),
		"explicit": explicit(v1alpha1.ExplicitCPUs{Housekeeping: "0-4", Isolated: "5-7"}),
	} {
		if got := planOf(t, small2Caches(), profile).CPUs.SharedCaches; got != v1alpha1.CacheSharingAllowed {
			t.Errorf("%s: shared caches %q", name, got)
		}
	}
	if got := planOf(t, small2Caches(), explicit(v1alpha1.ExplicitCPUs{Housekeeping: "0-3", Isolated: "4-7"})).CPUs.SharedCaches; got != "" {
		t.Errorf("nothing shared: %q", got)
	}
}

// hybrid has eight fast cores, CPUs 0-7, and sixteen efficiency cores, CPUs 8-23, all without multithreading.
func hybrid() *topology.Topology {
	t := small(24, 1)
	t.Efficiency = set("8-23")
	return t
}

// TestEfficiencyCoresAreHousekeeping: the faster cores are kept for latency-critical pods.
func TestEfficiencyCoresAreHousekeeping(t *testing.T) {
	runPartitionCases(t, map[string]partitionCase{
		"the boot CPU, then efficiency cores": {
			machine: hybrid(), profile: []change{derived(v1alpha1.DerivedCPUs{HousekeepingCores: 4})},
			wantHousekeeping: "0,8-10", wantIsolated: "1-7,11-23",
			wantFindings: []string{"plan.efficiency-cores Low spec.cpus.derived"},
		},
		"all of them": {
			machine: hybrid(), profile: []change{derived(v1alpha1.DerivedCPUs{HousekeepingCores: 17, Spread: v1alpha1.SpreadFirstNUMANode})},
			wantHousekeeping: "0,8-23", wantIsolated: "1-7",
		},
		"named by the profile": {
			machine: hybrid(), profile: []change{explicit(v1alpha1.ExplicitCPUs{Housekeeping: "0-7", Isolated: "8-23"})},
			wantHousekeeping: "0-7", wantIsolated: "8-23",
		},
	})
	_, findings := New(Input{Profile: profileWith(), Topology: hybrid()})
	want := "isolated CPUs 9-23 are on efficiency cores, which are slower than the others that a pod may get. " +
		"Give housekeeping all of them, with the boot CPU 17 cores, by spec.cpus.derived.housekeepingCores."
	if len(findings) != 1 || findings[0].Message+" "+findings[0].Remedy != want {
		t.Errorf("findings %s, want %q", describe(findings), want)
	}
}

// small4Caches has one NUMA node with four caches of level 3, of four cores each.
func small4Caches() *topology.Topology {
	return layout{architecture: "amd64", vendor: "AMD", release: "6.12.0", numaNodes: 1, coresPerNode: 16, threads: 1,
		cachesPerNode: 4, memoryPerNode: 16 * gibibyte, stride: 1}.topology()
}
