// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package status

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// TestConflictsOfANode: a NIC that several pools claim is told of once, and its virtual functions are not told of besides.
func TestConflictsOfANode(t *testing.T) {
	nic := func(address string) bypass.NICConflict {
		return bypass.NICConflict{NIC: topology.NIC{PCIAddress: address, Name: "ens1"}, Pools: []string{"other"}}
	}
	function := nic("0000:af:02.0")
	function.Through = objects.FirstPort
	creator := nic(objects.FirstPort)
	creator.Function = "0000:af:02.0"
	cases := map[string]struct {
		claim bypass.Claim
		want  []string
		says  string
	}{
		"none":                         {bypass.Claim{}, []string{}, ""},
		"a NIC":                        {bypass.Claim{Conflicts: []bypass.NICConflict{nic(objects.FirstPort)}}, []string{objects.FirstPort}, "belongs to BypassNICPool other"},
		"a NIC and a virtual function": {bypass.Claim{Conflicts: []bypass.NICConflict{nic(objects.FirstPort), function}}, []string{objects.FirstPort}, "ens1"},
		"a virtual function and a NIC": {bypass.Claim{Conflicts: []bypass.NICConflict{function, nic(objects.SecondPort)}}, []string{objects.SecondPort}, "ens1"},
		"a NIC of whose virtual functions another pool has one": {
			bypass.Claim{Conflicts: []bypass.NICConflict{creator}}, []string{objects.FirstPort}, "virtual function 0000:af:02.0 of NIC " + objects.FirstPort,
		},
		"a NIC that is kept": {bypass.Claim{Kept: []bypass.NICConflict{nic(objects.FirstPort)}}, []string{objects.FirstPort}, "this pool keeps it"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := &fleet.PoolNode{Node: objects.MakeNode("n1"), Selection: fleet.NICSelection{Claim: tc.claim}}
			findings := conflictFindings(n)
			got := make([]string, 0, len(findings))
			for _, found := range findings {
				got = append(got, found.address)
				if found.reason != v1alpha1.ReasonNICClaimConflict || found.node != "n1" || !strings.Contains(found.text, tc.says) {
					t.Errorf("finding %+v, want %q in its text", found, tc.says)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("addresses (-want +got):\n%s", diff)
			}
		})
	}
}
