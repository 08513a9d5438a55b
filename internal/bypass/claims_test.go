// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// asking is a pool for NICs at the addresses.
func asking(name, resource string, addresses ...v1alpha1.PCIAddress) *v1alpha1.BypassNICPool {
	return &v1alpha1.BypassNICPool{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.BypassNICPoolSpec{
			ResourceName: resource, NICs: []v1alpha1.NICSelector{{PCIAddresses: addresses}},
		},
	}
}

// creating is a pool that creates virtual functions on the NICs at the addresses.
func creating(name string, addresses ...v1alpha1.PCIAddress) *v1alpha1.BypassNICPool {
	pool := asking(name, "x.example/"+name, addresses...)
	pool.Spec.VirtualFunctions = &v1alpha1.VirtualFunctionsSpec{CountPerNIC: 2}
	return pool
}

// askingForFunctions is a pool for virtual functions at the addresses, whoever creates them.
func askingForFunctions(name string, addresses ...v1alpha1.PCIAddress) *v1alpha1.BypassNICPool {
	pool := asking(name, "x.example/"+name, addresses...)
	pool.Spec.NICs[0].Role = v1alpha1.RoleVirtualFunction
	return pool
}

func TestClaims(t *testing.T) {
	const port, otherPort, functionA, functionB, functionC = "0000:3b:00.0", "0000:3b:00.1", "0000:3b:02.0", "0000:3b:02.1", "0000:3b:03.0"
	nics := []topology.NIC{
		{PCIAddress: port}, {PCIAddress: otherPort},
		{PCIAddress: functionA, PhysicalFunction: port}, {PCIAddress: functionB, PhysicalFunction: port},
		{PCIAddress: functionC, PhysicalFunction: otherPort},
	}
	cases := map[string]struct {
		pools []*v1alpha1.BypassNICPool
		// want has for each pool its NICs, and for each conflict "NIC: pools" or "NIC through NIC: pools".
		want []string
	}{
		"no pool":  {want: []string{}},
		"one pool": {[]*v1alpha1.BypassNICPool{asking("a", "x.example/a", otherPort, port)}, []string{"a: " + port + " " + otherPort}},
		"a NIC that two pools select": {
			[]*v1alpha1.BypassNICPool{asking("a", "x.example/a", port, otherPort), asking("b", "x.example/b", otherPort)},
			[]string{"a: " + port + "; " + otherPort + " of b", "b:; " + otherPort + " of a"},
		},
		"a NIC that three pools select": {
			[]*v1alpha1.BypassNICPool{asking("c", "x.example/c", port), asking("a", "x.example/a", port), asking("b", "x.example/b", port)},
			[]string{"c:; " + port + " of a,b", "a:; " + port + " of b,c", "b:; " + port + " of a,c"},
		},
		"pools with one resource": {
			[]*v1alpha1.BypassNICPool{asking("a", "x.example/a", port), asking("b", "x.example/a", otherPort), asking("c", "x.example/c", otherPort)},
			[]string{"a: resource of b", "b: resource of a; " + otherPort + " of c", "c:; " + otherPort + " of b"},
		},
		"a pool that creates virtual functions": {
			[]*v1alpha1.BypassNICPool{creating("a", port)}, []string{"a: " + port},
		},
		"a virtual function that another pool creates": {
			[]*v1alpha1.BypassNICPool{creating("a", port), askingForFunctions("b", functionA, functionC)},
			[]string{"a: " + port + "; " + functionA + " of b", "b: " + functionC + "; " + functionA + " of a"},
		},
		"a NIC on which another pool creates virtual functions": {
			[]*v1alpha1.BypassNICPool{creating("a", port, otherPort), asking("b", "x.example/b", port)},
			[]string{
				"a: " + otherPort + "; " + port + " of b; " + functionA + " through " + port + " of b; " + functionB + " through " + port + " of b",
				"b:; " + port + " of a",
			},
		},
		"two pools that create virtual functions on one NIC": {
			[]*v1alpha1.BypassNICPool{creating("a", otherPort), creating("b", otherPort)},
			[]string{"a:; " + otherPort + " of b; " + functionC + " of b", "b:; " + otherPort + " of a; " + functionC + " of a"},
		},
		"a virtual function beside its NIC": {
			[]*v1alpha1.BypassNICPool{asking("a", "x.example/a", port), askingForFunctions("b", functionA)},
			[]string{"a: " + port, "b: " + functionA},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := make([]string, 0, len(tc.pools))
			for _, claim := range Claims(Claimants(tc.pools), nics) {
				got = append(got, printed(claim))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoNICIsClaimedTwice lets each of three pools be every kind of pool for every choice of NICs. Plans rely on it: they give
// each pool what it claims.
func TestNoNICIsClaimedTwice(t *testing.T) {
	const port, otherPort, functionA, functionB = "0000:3b:00.0", "0000:3b:00.1", "0000:3b:02.0", "0000:3b:03.0"
	nics := []topology.NIC{
		{PCIAddress: port}, {PCIAddress: otherPort},
		{PCIAddress: functionA, PhysicalFunction: port}, {PCIAddress: functionB, PhysicalFunction: otherPort},
	}
	var kinds []func(name string) *v1alpha1.BypassNICPool
	for _, ports := range [][]v1alpha1.PCIAddress{{port}, {otherPort}, {port, otherPort}} {
		kinds = append(kinds,
			func(name string) *v1alpha1.BypassNICPool { return asking(name, "x.example/"+name, ports...) },
			func(name string) *v1alpha1.BypassNICPool { return asking(name, "x.example/same", ports...) },
			func(name string) *v1alpha1.BypassNICPool { return creating(name, ports...) })
	}
	for _, functions := range [][]v1alpha1.PCIAddress{{functionA}, {functionB}, {functionA, functionB}} {
		kinds = append(kinds, func(name string) *v1alpha1.BypassNICPool { return askingForFunctions(name, functions...) })
	}
	claimed := 0
	for _, a := range kinds {
		for _, b := range kinds {
			for _, c := range kinds {
				owners := map[string]string{}
				claims := Claims(Claimants([]*v1alpha1.BypassNICPool{a("a"), b("b"), c("c")}), nics)
				for _, claim := range claims {
					for _, nic := range claim.NICs {
						if owner := owners[nic.PCIAddress]; owner != "" {
							t.Fatalf("pools %s and %s have NIC %s: %+v", owner, claim.Pool, nic.PCIAddress, claims)
						}
						owners[nic.PCIAddress] = claim.Pool
						claimed++
					}
				}
			}
		}
	}
	if claimed == 0 {
		t.Error("no pool has any NIC")
	}
}

// printed is a claim as "POOL: NIC NIC; NIC of POOLS; NIC through NIC of POOLS".
func printed(claim Claim) string {
	var text strings.Builder
	text.WriteString(claim.Pool + ":")
	for _, nic := range claim.NICs {
		text.WriteString(" " + nic.PCIAddress)
	}
	if len(claim.SameResource) > 0 {
		text.WriteString(" resource of " + strings.Join(claim.SameResource, ","))
	}
	for _, conflict := range claim.Conflicts {
		text.WriteString("; " + conflict.NIC.PCIAddress)
		if conflict.Through != "" {
			text.WriteString(" through " + conflict.Through)
		}
		text.WriteString(" of " + strings.Join(conflict.Pools, ","))
	}
	return text.String()
}

// TestUnservedPools: a pool that is not served takes no NIC from others, wherever it stands in the list.
func TestUnservedPools(t *testing.T) {
	pools := make([]*v1alpha1.BypassNICPool, 0, 1+v1alpha1.MaxPoolsPerNode)
	pools = append(pools, asking("unserved", "x.example/u", nearZero, nearOne))
	for i := range v1alpha1.MaxPoolsPerNode {
		pools = append(pools, asking(fmt.Sprintf("pool-%02d", i), fmt.Sprintf("x.example/%d", i), nowhere))
	}
	pools[1].Spec.NICs[0].PCIAddresses[0] = nearZero
	claims := Claims(Claimants(pools), twoNodes().NICs)
	if diff := cmp.Diff(Claim{Pool: "unserved", Unserved: true}, claims[0]); diff != "" {
		t.Errorf("claim (-want +got):\n%s", diff)
	}
	if got, want := printed(claims[1]), "pool-00: "+nearZero; got != want {
		t.Errorf("claim is %q, want %q", got, want)
	}
}

// TestPlannedPools: a plan is told which NICs a pool has, and whether user space drives them.
func TestPlannedPools(t *testing.T) {
	nics := twoNodes().NICs
	onload, functions, unsafe := asking("a", "x.example/a", nearZero), asking("b", "x.example/b", nearOne), asking("c", "x.example/c", nowhere)
	onload.Spec.Stack = v1alpha1.BypassStack{Type: v1alpha1.StackOnload, Onload: &v1alpha1.OnloadStack{}}
	functions.Spec.Stack = v1alpha1.BypassStack{Type: v1alpha1.StackVFIO, VFIO: &v1alpha1.VFIOStack{}}
	unsafe.Spec.Stack = v1alpha1.BypassStack{Type: v1alpha1.StackVFIO, VFIO: &v1alpha1.VFIOStack{Isolation: v1alpha1.VFIOIsolationNoIOMMU}}
	planned := PlannedPools([]*v1alpha1.BypassNICPool{onload, functions, unsafe}, nics)
	got := make([]string, 0, len(planned))
	for _, pool := range planned {
		got = append(got, fmt.Sprintf("%s %s %q", pool.Name, pool.NICs[0].PCIAddress, pool.Isolation))
	}
	want := []string{"a " + nearZero + ` ""`, "b " + nearOne + ` "IOMMU"`, "c " + nowhere + ` "NoIOMMU"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("planned pools (-want +got):\n%s", diff)
	}
}
