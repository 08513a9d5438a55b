// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package topology

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNICKinds(t *testing.T) {
	nics := []NIC{
		{Vendor: "8086", Device: "1521", Name: "eno2"}, {Vendor: "15b3", Device: "1015", PCIAddress: "0000:3b:00.0"},
		{Vendor: "8086", Device: "1521", Name: "eno1"}, {Vendor: "15b3", Device: "1013", Name: "ib0"},
	}
	kinds := NICKinds(nics)
	want := []NICKind{{"15b3", "1013", []string{"ib0"}}, {"15b3", "1015", []string{"0000:3b:00.0"}}, {"8086", "1521", []string{"eno1", "eno2"}}}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
	if got, want := DescribeNICKinds(kinds), "15b3:1013 (ib0), 15b3:1015 (0000:3b:00.0), 8086:1521 (eno1, eno2)"; got != want {
		t.Errorf("described as %q, want %q", got, want)
	}
	kinds[2].Names = []string{"a", "b", "c", "d", "e", "f"}
	if got, want := DescribeNICKinds(kinds[2:]), "8086:1521 (a, b, c, d, 2 more)"; got != want {
		t.Errorf("described as %q, want %q", got, want)
	}
	if got := DescribeNICKinds(nil); got != "" {
		t.Errorf("no kinds are described as %q", got)
	}
}
