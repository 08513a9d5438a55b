// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

func TestDescribeSelector(t *testing.T) {
	cases := map[string]struct {
		selector v1alpha1.NICSelector
		want     string
	}{
		"by name":           {v1alpha1.NICSelector{Interfaces: []v1alpha1.InterfacePattern{"ens*f0", "eth1"}}, "ens*f0|eth1"},
		"by vendor":         {v1alpha1.NICSelector{Vendor: "1924"}, "1924"},
		"by device":         {v1alpha1.NICSelector{Vendor: "1924", Devices: []v1alpha1.PCIID{"0b03", "0a03"}}, "1924:0b03|0a03"},
		"by driver":         {v1alpha1.NICSelector{Drivers: []v1alpha1.DriverName{"sfc"}}, "sfc"},
		"by place":          {v1alpha1.NICSelector{PCIAddresses: []v1alpha1.PCIAddress{"0000:3b:00.0"}, NUMANodes: []int32{0, 3}}, "0000:3b:00.0 NUMA node 0|3"},
		"virtual functions": {v1alpha1.NICSelector{Vendor: "8086", Role: v1alpha1.RoleVirtualFunction}, "8086 virtual functions"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := describeSelector(tc.selector); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
