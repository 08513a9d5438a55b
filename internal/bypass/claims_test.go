// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// asking is a pool for NICs at the addresses.
func asking(name, resource string, addresses ...v1alpha1.PCIAddress) *v1alpha1.BypassNICPool {
	return &v1alpha1.BypassNICPool{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.BypassNICPoolSpec{
			ResourceName: resource, NICs: []v1alpha1.NICTerm{{PCIAddresses: addresses}},
		},
	}
}

func TestShares(t *testing.T) {
	cases := map[string]struct {
		pools []*v1alpha1.BypassNICPool
		want  [][]string
	}{
		"no pool":  {want: [][]string{}},
		"one pool": {pools: []*v1alpha1.BypassNICPool{asking("a", "x.example/a", nearOne, nearZero)}, want: [][]string{{nearZero, nearOne}}},
		"a NIC that two pools select": {
			pools: []*v1alpha1.BypassNICPool{asking("a", "x.example/a", nearZero, nearOne), asking("b", "x.example/b", nearOne, nowhere)},
			want:  [][]string{{nearZero}, {nowhere}},
		},
		"two pools with one resource": {
			pools: []*v1alpha1.BypassNICPool{
				asking("a", "x.example/a", nearZero), asking("b", "x.example/a", nearOne), asking("c", "x.example/c", nowhere),
			},
			want: [][]string{{}, {}, {nowhere}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			shares := Shares(tc.pools, twoNodes().NICs)
			got := make([][]string, 0, len(shares))
			for _, share := range shares {
				addresses := make([]string, 0, len(share))
				for _, nic := range share {
					addresses = append(addresses, nic.PCIAddress)
				}
				got = append(got, addresses)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRivalOf(t *testing.T) {
	mine, other := asking("a", "x.example/a", nearZero), asking("b", "x.example/b", nearOne)
	want := Rival{Name: "b", NICs: other.Spec.NICs, Nodes: []string{"n"}}
	if diff := cmp.Diff(want, RivalOf(mine, other, []string{"n"})); diff != "" {
		t.Error(diff)
	}
	other.Spec.ResourceName = mine.Spec.ResourceName
	want.NICs = []v1alpha1.NICTerm{other.Spec.NICs[0], mine.Spec.NICs[0]}
	if diff := cmp.Diff(want, RivalOf(mine, other, []string{"n"})); diff != "" {
		t.Error(diff)
	}
	if len(other.Spec.NICs) != 1 {
		t.Error("the terms of the other pool were changed")
	}
}
