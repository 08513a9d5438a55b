// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

func TestHugepageSupply(t *testing.T) {
	const small, large = 2048, 1048576
	facts := &host.Facts{NUMANodes: []host.NUMANode{
		{ID: 0, Hugepages: []host.HugepagePool{
			{SizeKibibytes: small, Free: host.Known(int64(0), "test")}, {SizeKibibytes: large, Free: host.Known(int64(4), "test")},
		}},
		{ID: 1, Hugepages: []host.HugepagePool{
			{SizeKibibytes: small, Free: host.Known(int64(7), "test")}, {SizeKibibytes: large, Free: host.Absent[int64]("free_hugepages", "EPERM")},
		}},
	}}
	pages := func(sizes ...v1alpha1.HugepageSize) []v1alpha1.NICHugepages {
		all := make([]v1alpha1.NICHugepages, 0, len(sizes))
		for _, size := range sizes {
			all = append(all, v1alpha1.NICHugepages{Size: size, CountPerNIC: 1})
		}
		return all
	}
	on := func(node int) host.Fact[int] { return host.Known(node, "test") }
	cases := map[string]struct {
		pages []v1alpha1.NICHugepages
		node  host.Fact[int]
		want  v1alpha1.HugepageSupply
	}{
		"none reserved":             {nil, on(0), ""},
		"some left":                 {pages("2Mi"), on(1), v1alpha1.HugepagesLeft},
		"none left":                 {pages("2Mi"), on(0), v1alpha1.HugepagesExhausted},
		"none left of one size":     {pages("1Gi", "2Mi"), on(0), v1alpha1.HugepagesExhausted},
		"left on the other node":    {pages("1Gi"), on(0), v1alpha1.HugepagesLeft},
		"one size cannot be read":   {pages("2Mi", "1Gi"), on(1), v1alpha1.HugepagesUnknown},
		"a size without a pool":     {pages("32Mi"), on(1), v1alpha1.HugepagesUnknown},
		"a NUMA node that is not":   {pages("2Mi"), on(2), v1alpha1.HugepagesUnknown},
		"a NIC without a NUMA node": {pages("2Mi"), host.Absent[int]("numa_node", "-1"), v1alpha1.HugepagesUnknown},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := HugepageSupply(&v1alpha1.BypassNICPoolSpec{Hugepages: tc.pages}, &host.NIC{NUMANode: tc.node}, facts)
			if got != tc.want {
				t.Errorf("HugepageSupply() = %q, want %q", got, tc.want)
			}
		})
	}
}
