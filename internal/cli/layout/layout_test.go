// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package layout

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

func TestPackages(t *testing.T) {
	node := func(id int, ids ...int) topology.NUMANode { return topology.NUMANode{ID: id, CPUs: cpus.Of(ids...)} }
	cases := map[string]struct {
		machine topology.Topology
		want    map[int][]int
	}{
		"a NUMA node for each package": {
			topology.Topology{Packages: []cpus.Set{cpus.Of(0, 1), cpus.Of(2, 3)}, NUMANodes: []topology.NUMANode{node(0, 0, 1), node(1, 2, 3)}},
			map[int][]int{0: {0}, 1: {1}},
		},
		"several NUMA nodes in a package, and one without CPUs": {
			topology.Topology{Packages: []cpus.Set{cpus.Of(0, 1, 2, 3)}, NUMANodes: []topology.NUMANode{node(0, 0, 1), node(1, 2, 3), node(7)}},
			map[int][]int{0: {0, 1}, Unknown: {7}},
		},
		"no NUMA": {
			topology.Topology{Packages: []cpus.Set{cpus.Of(0), cpus.Of(1)}, NUMANodes: []topology.NUMANode{node(0, 0, 1)}},
			map[int][]int{Unknown: {0}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := map[int][]int{}
			for _, frame := range Packages(&tc.machine) {
				for _, node := range frame.Nodes {
					got[frame.ID] = append(got[frame.ID], node.ID)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestGroups(t *testing.T) {
	cores := []topology.Core{
		{CPUs: cpus.Of(0), Package: 1, L3: 2}, {CPUs: cpus.Of(1), Package: Unknown, L3: 0}, {CPUs: cpus.Of(2), Package: 1, L3: 2},
	}
	ids := func(groups []Group) map[int]int {
		found := map[int]int{}
		for _, group := range groups {
			found[group.ID] = len(group.Cores)
		}
		return found
	}
	byPackage := ByPackage(cores)
	if diff := cmp.Diff(map[int]int{1: 2, Unknown: 1}, ids(byPackage)); diff != "" || byPackage[0].ID != Unknown {
		t.Errorf("by package, the unknown one first: %s", diff)
	}
	byL3 := ByL3(cores)
	if diff := cmp.Diff(map[int]int{2: 2, 0: 1}, ids(byL3)); diff != "" || byL3[0].ID != 2 {
		t.Errorf("by L3 domain, in the order of cores: %s", diff)
	}
}

func TestNICs(t *testing.T) {
	machine := &topology.Topology{NICs: []topology.NIC{
		{PCIAddress: "a", NUMANode: new(0)}, {PCIAddress: "a.1", NUMANode: new(0), PhysicalFunction: "a"},
		{PCIAddress: "b", NUMANode: new(1)}, {PCIAddress: "c"},
	}}
	addresses := func(nics []topology.NIC) []string {
		found := make([]string, 0, len(nics))
		for _, nic := range nics {
			found = append(found, nic.PCIAddress)
		}
		return found
	}
	for want, numaNode := range map[string]*int{"a": new(0), "b": new(1), "c": nil} {
		if diff := cmp.Diff([]string{want}, addresses(PhysicalNICs(machine, numaNode))); diff != "" {
			t.Error(diff)
		}
	}
	if one, none := VirtualFunctions(machine, "a"), VirtualFunctions(machine, "b"); one != 1 || none != 0 {
		t.Errorf("virtual functions %d and %d, want 1 and 0", one, none)
	}
}
