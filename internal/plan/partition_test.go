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
		"no CPU at all": {&topology.Topology{Architecture: "amd64", Vendor: "Intel"}, nil,
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
	want := []string{"plan.numa-isolated Medium spec.cpus.derived"}
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
