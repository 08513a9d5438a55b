// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package topology

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// looseTopology has offline siblings, a core on no NUMA node, a CPU in no core and a memory-only node.
func looseTopology(t *testing.T) *Topology {
	t.Helper()
	return &Topology{
		Online: list(t, "0-5"), Offline: list(t, "6-7"), Present: list(t, "0-7"),
		Cores: []Core{
			{CPUs: list(t, "0,6"), NUMANode: 0, Package: 0, L3: 0},
			{CPUs: list(t, "1"), NUMANode: 0, Package: 0, L3: 0},
			{CPUs: list(t, "2-3"), NUMANode: 4, Package: 0, L3: -1},
			{CPUs: list(t, "4"), NUMANode: -1, Package: -1, L3: -1},
		},
		L3Domains: cpusSets(t, "0-1"),
		NUMANodes: []NUMANode{{ID: 0, CPUs: list(t, "0-1")}, {ID: 1}, {ID: 4, CPUs: list(t, "2-3")}},
	}
}

func TestQueriesOfCPUs(t *testing.T) {
	top := looseTopology(t)
	cases := map[string]struct {
		cpu                  int
		wantSiblings, wantL3 string
		wantNode             int
	}{
		"with an offline sibling":       {cpu: 0, wantSiblings: "0,6", wantL3: "0-1", wantNode: 0},
		"offline":                       {cpu: 6, wantSiblings: "0,6", wantNode: 0},
		"without L3 cache":              {cpu: 2, wantSiblings: "2-3", wantNode: 4},
		"on no NUMA node":               {cpu: 4, wantSiblings: "4", wantNode: -1},
		"in no core":                    {cpu: 5, wantNode: -1},
		"which the machine has not got": {cpu: 9, wantNode: -1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := top.SiblingsOf(tc.cpu).String(); got != tc.wantSiblings {
				t.Errorf("siblings of CPU %d: %q, want %q", tc.cpu, got, tc.wantSiblings)
			}
			if got := top.L3Of(tc.cpu).String(); got != tc.wantL3 {
				t.Errorf("L3 of CPU %d: %q, want %q", tc.cpu, got, tc.wantL3)
			}
			if got := top.NUMANodeOf(tc.cpu); got != tc.wantNode {
				t.Errorf("NUMA node of CPU %d: %d, want %d", tc.cpu, got, tc.wantNode)
			}
		})
	}
}

func TestQueriesOfTheMachine(t *testing.T) {
	top := looseTopology(t)
	cores := map[int][]string{0: {"0,6", "1"}, 4: {"2-3"}, 7: nil}
	for node, want := range cores {
		got := each(top.CoresOf(node), func(c Core) string { return c.CPUs.String() })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("cores of NUMA node %d (-want +got):\n%s", node, diff)
		}
	}
	if got := top.WithoutCore().String(); got != "5" {
		t.Errorf("online CPUs without core: %s, want 5", got)
	}
	got := each(top.NUMANodesWithCPUs(), func(n NUMANode) int { return n.ID })
	if diff := cmp.Diff([]int{0, 4}, got); diff != "" {
		t.Errorf("NUMA nodes with CPUs (-want +got):\n%s", diff)
	}
	if !top.HasNUMA() {
		t.Error("three NUMA nodes are NUMA")
	}
	if node, ok := top.NUMANode(4); !ok || node.CPUs.String() != "2-3" {
		t.Errorf("NUMA node 4: %v, %v", node, ok)
	}
	if _, ok := top.NUMANode(2); ok {
		t.Error("NUMA node 2 does not exist")
	}
}

func TestMatchNICs(t *testing.T) {
	const (
		solarflare = "0000:3b:00.0"
		second     = "0000:3b:00.1"
		function   = "0000:3b:02.0"
		intel      = "0000:18:00.0"
		bound      = "0000:af:00.0"
	)
	top := &Topology{NICs: []NIC{
		{PCIAddress: intel, Name: "eno1", Vendor: "8086", Device: "1572", Driver: "i40e"},
		{PCIAddress: solarflare, Name: "ens2f0np0", Vendor: "1924", Device: "0b03", Driver: "sfc"},
		{PCIAddress: second, Name: "ens2f1np1", Vendor: "1924", Device: "0b03", Driver: "sfc", NUMANode: new(1)},
		{PCIAddress: function, Name: "ens2f0v0", Vendor: "1924", Device: "1b03", Driver: "sfc", PhysicalFunction: solarflare},
		{PCIAddress: bound, Vendor: "8086", Device: "158b", Driver: "vfio-pci"},
	}}
	cases := map[string]struct {
		selectors []v1alpha1.NICSelector
		want      []string
	}{
		"nothing":                           {},
		"empty selector":                    {selectors: []v1alpha1.NICSelector{{}}},
		"exact name":                        {selectors: []v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"eno1"}}}, want: []string{intel}},
		"a prefix is no match":              {selectors: []v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"eno"}}}},
		"star":                              {selectors: []v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"ens2f*"}}}, want: []string{solarflare, second}},
		"question mark":                     {selectors: []v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"ens2f?np?"}}}, want: []string{solarflare, second}},
		"negated":                           {selectors: []v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"!eno*"}}}, want: []string{solarflare, second}},
		"negated with vendor":               {selectors: []v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"!ens2f0*"}, Vendor: "1924"}}, want: []string{second}},
		"vendor":                            {selectors: []v1alpha1.NICSelector{{Vendor: "8086"}}, want: []string{intel, bound}},
		"vendor and device":                 {selectors: []v1alpha1.NICSelector{{Vendor: "8086", Devices: []v1alpha1.PCIID{"158b"}}}, want: []string{bound}},
		"driver":                            {selectors: []v1alpha1.NICSelector{{Drivers: []v1alpha1.DriverName{"sfc"}}}, want: []string{solarflare, second}},
		"all fields must match":             {selectors: []v1alpha1.NICSelector{{Vendor: "8086", Drivers: []v1alpha1.DriverName{"sfc"}}}},
		"virtual function by address":       {selectors: []v1alpha1.NICSelector{{PCIAddresses: []v1alpha1.PCIAddress{function}, Role: v1alpha1.RoleVirtualFunction}}, want: []string{function}},
		"no physical function there":        {selectors: []v1alpha1.NICSelector{{PCIAddresses: []v1alpha1.PCIAddress{function}}}},
		"some names but for one":            {selectors: []v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"ens*", "!*np1", "eno1"}}}, want: []string{intel, solarflare}},
		"a NUMA node":                       {selectors: []v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"*"}, NUMANodes: []int32{1}}}, want: []string{second}},
		"no name but a NUMA node":           {selectors: []v1alpha1.NICSelector{{NUMANodes: []int32{1}}}},
		"address with a field that differs": {selectors: []v1alpha1.NICSelector{{PCIAddresses: []v1alpha1.PCIAddress{function}, Drivers: []v1alpha1.DriverName{"vfio-pci"}}}},
		"virtual function not by name":      {selectors: []v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"ens2f0v0"}}}},
		"any selector matches, once each":   {selectors: []v1alpha1.NICSelector{{Drivers: []v1alpha1.DriverName{"sfc"}}, {Interfaces: []v1alpha1.InterfacePattern{"ens2f0np0"}}, {PCIAddresses: []v1alpha1.PCIAddress{intel}}}, want: []string{intel, solarflare, second}},
		"a pattern that is none":            {selectors: []v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"eno[1"}}, {Interfaces: []v1alpha1.InterfacePattern{"!eno[1"}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := each(SelectNICs(tc.selectors, top.NICs), func(nic NIC) string { return nic.PCIAddress })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	physical := top.PhysicalNICs()
	if len(physical) != 4 || len(top.NICs) != 5 {
		t.Errorf("%d physical NICs of %d", len(physical), len(top.NICs))
	}
	for _, nic := range physical {
		if nic.PCIAddress == function {
			t.Error("a virtual function among physical NICs")
		}
	}
}
