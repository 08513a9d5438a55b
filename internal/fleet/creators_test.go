// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

// TestCreators: NICs on which virtual functions are created matter where another pool selects virtual functions.
func TestCreators(t *testing.T) {
	recorded := []v1alpha1.BypassNICClaim{{Pool: "creator", PCIAddress: objects.FirstPort}, {Pool: "whole", PCIAddress: objects.SecondPort}}
	creator, whole, functions := objects.MakePool("creator").Obj(), objects.MakePool("whole").Obj(), objects.MakePool("functions").Obj()
	creator.Spec.VirtualFunctions = &v1alpha1.VirtualFunctionsSpec{CountPerNIC: 4}
	functions.Spec.NICs = []v1alpha1.NICSelector{{Vendor: "1924"}, {Role: v1alpha1.RoleVirtualFunction}}
	cases := map[string]struct {
		pools []*v1alpha1.BypassNICPool
		want  []v1alpha1.BypassNICClaim
	}{
		"nobody selects virtual functions": {[]*v1alpha1.BypassNICPool{creator, whole}, nil},
		"a pool selects virtual functions": {[]*v1alpha1.BypassNICPool{creator, functions, whole}, recorded[:1]},
		"nobody creates virtual functions": {[]*v1alpha1.BypassNICPool{functions, whole}, []v1alpha1.BypassNICClaim{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, NodePools{PoolSet: NewPoolSet(tc.pools, nil, nil), recorded: recorded}.creators()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
