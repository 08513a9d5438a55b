// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// TestDescribeAll: a virtual function is one of the NIC that lists it.
func TestDescribeAll(t *testing.T) {
	const physical, other, first, second = "0000:3b:00.0", "0000:3b:00.1", "0000:3b:02.0", "0000:3b:02.1"
	claimed := host.NIC{PCIAddress: second}
	claimed.PhysicalFunction = host.Known(other, "physfn")
	cases := map[string]struct {
		nics []host.NIC
		want map[string]string
	}{
		"no virtual functions": {[]host.NIC{{PCIAddress: physical}}, map[string]string{physical: ""}},
		"the host says nothing else about them": {
			[]host.NIC{{PCIAddress: physical, VirtualFunctions: []string{first, second}}, {PCIAddress: other}},
			map[string]string{physical: "", other: "", first: physical, second: physical},
		},
		"the host lists them, too": {
			[]host.NIC{{PCIAddress: first}, {PCIAddress: physical, VirtualFunctions: []string{first}}},
			map[string]string{physical: "", first: physical},
		},
		"the function names its NIC itself": {
			[]host.NIC{{PCIAddress: physical, VirtualFunctions: []string{second}}, claimed}, map[string]string{physical: "", second: other},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for _, nic := range describeAll(tc.nics) {
				got[nic.PCIAddress] = nic.PhysicalFunction
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestPlannedConflicts: NICs that the same pools claim are told of together.
func TestPlannedConflicts(t *testing.T) {
	nic := func(address string) topology.NIC { return topology.NIC{PCIAddress: address} }
	conflicts := []NICConflict{
		{NIC: nic("a"), Pools: []string{"x"}}, {NIC: nic("b"), Pools: []string{"x", "y"}}, {NIC: nic("c"), Pools: []string{"x"}},
	}
	want := []plan.PoolConflict{{Pools: []string{"x"}, NICs: []topology.NIC{nic("a"), nic("c")}}, {Pools: []string{"x", "y"}, NICs: []topology.NIC{nic("b")}}}
	if diff := cmp.Diff(want, plannedConflicts(conflicts)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := plannedConflicts(nil); got != nil {
		t.Errorf("no conflict is %+v", got)
	}
}
