// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"fmt"
	"slices"
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

// at gives pools the ages of their order: the first is the oldest.
func at(pools ...*v1alpha1.BypassNICPool) []*v1alpha1.BypassNICPool {
	for i, pool := range pools {
		pool.CreationTimestamp = metav1.Unix(int64(1000+i), 0)
	}
	return pools
}

const port, otherPort, functionA, functionB, functionC = "0000:3b:00.0", "0000:3b:00.1", "0000:3b:02.0", "0000:3b:02.1", "0000:3b:03.0"

// twoPorts are two NICs, of which the first has two virtual functions and the second one.
func twoPorts() []topology.NIC {
	return []topology.NIC{
		{PCIAddress: port}, {PCIAddress: otherPort},
		{PCIAddress: functionA, PhysicalFunction: port}, {PCIAddress: functionB, PhysicalFunction: port},
		{PCIAddress: functionC, PhysicalFunction: otherPort},
	}
}

// claimCase is what pools make of two NICs.
type claimCase struct {
	pools []*v1alpha1.BypassNICPool
	held  Held
	// want has for each pool its NICs, for each that it keeps from others "+NIC: pools", and for each conflict
	// "-NIC: pools", "-NIC through NIC: pools" or "-NIC for NIC: pools".
	want []string
}

func TestClaims(t *testing.T) {
	expectClaims(t, map[string]claimCase{
		"no pool":  {want: []string{}},
		"one pool": {pools: at(asking("a", "x.example/a", otherPort, port)), want: []string{"a: " + port + " " + otherPort}},
		"a NIC that two pools select, and nobody has had": {
			pools: at(asking("b", "x.example/b", otherPort), asking("a", "x.example/a", port, otherPort)),
			want:  []string{"b: " + otherPort + " +" + otherPort + ": a", "a: " + port + " -" + otherPort + ": b"},
		},
		"an older pool that has grown": {
			pools: at(asking("a", "x.example/a", port, otherPort), asking("b", "x.example/b", otherPort)),
			held:  Held{port: {"a"}, otherPort: {"b"}},
			want:  []string{"a: " + port + " -" + otherPort + ": b", "b: " + otherPort + " +" + otherPort + ": a"},
		},
		"what is held by a pool that does not claim it any more": {
			pools: at(asking("a", "x.example/a", port), asking("b", "x.example/b", port)),
			held:  Held{port: {"gone"}},
			want:  []string{"a: " + port + " +" + port + ": b", "b: -" + port + ": a"},
		},
		"what is held by a pool that has narrowed its selectors": {
			pools: at(asking("a", "x.example/a", otherPort), asking("b", "x.example/b", port)),
			held:  Held{port: {"a"}, otherPort: {"a"}},
			want:  []string{"a: " + otherPort, "b: " + port},
		},
		"pools of one second": {
			pools: []*v1alpha1.BypassNICPool{asking("b", "x.example/b", port), asking("a", "x.example/a", port)},
			want:  []string{"b: -" + port + ": a", "a: " + port + " +" + port + ": b"},
		},
		"a pool that is in no cluster yet": {
			pools: append(at(asking("b", "x.example/b", port)), asking("a", "x.example/a", port)),
			want:  []string{"b: " + port + " +" + port + ": a", "a: -" + port + ": b"},
		},
		"two newcomers at once": {
			pools: at(asking("c", "x.example/c", port), asking("a", "x.example/a", port), asking("b", "x.example/b", port)),
			held:  Held{port: {"c"}},
			want:  []string{"c: " + port + " +" + port + ": a,b", "a: -" + port + ": c", "b: -" + port + ": c"},
		},
		"pools with one resource": {
			pools: at(asking("b", "x.example/a", port), asking("a", "x.example/a", otherPort), asking("c", "x.example/c", otherPort)),
			want:  []string{"b: " + port, "a: resource of b", "c: " + otherPort},
		},
	})
}

func TestClaimsOfVirtualFunctions(t *testing.T) {
	expectClaims(t, map[string]claimCase{
		"a pool that creates virtual functions": {
			pools: at(creating("a", port)), want: []string{"a: " + port},
		},
		"a virtual function that an older pool creates": {
			pools: at(creating("a", port), askingForFunctions("b", functionA, functionC)),
			want:  []string{"a: " + port + " +" + functionA + ": b", "b: " + functionC + " -" + functionA + ": a"},
		},
		"virtual functions that a younger pool has created, beside an older pool that waits for one": {
			pools: at(askingForFunctions("b", functionA), creating("a", port)),
			held:  Held{port: {"a"}},
			want:  []string{"b: -" + functionA + ": a", "a: " + port + " +" + functionA + ": b"},
		},
		"a younger pool that would create virtual functions where an older pool has one": {
			pools: at(askingForFunctions("b", functionA), creating("a", port, otherPort)),
			want: []string{
				"b: " + functionA + " +" + functionA + ": a",
				"a: " + otherPort + " -" + port + " for " + functionA + ": b -" + functionA + ": b -" + functionB + " through " + port + ": b",
			},
		},
		"a pool that begins to create virtual functions where another one has one": {
			pools: at(creating("a", port), askingForFunctions("b", functionA)),
			held:  Held{port: {"a"}, functionA: {"b"}},
			want: []string{
				"a: -" + port + " for " + functionA + ": b -" + functionA + ": b -" + functionB + " through " + port + ": b",
				"b: " + functionA + " +" + functionA + ": a",
			},
		},
		"a NIC on which an older pool creates virtual functions": {
			pools: at(creating("a", port, otherPort), asking("b", "x.example/b", port)),
			want:  []string{"a: " + port + " " + otherPort + " +" + port + ": b", "b: -" + port + ": a"},
		},
		"a younger pool that would create virtual functions on a NIC of another one": {
			pools: at(asking("b", "x.example/b", port), creating("a", port, otherPort)),
			want: []string{
				"b: " + port + " +" + port + ": a",
				"a: " + otherPort + " -" + port + ": b -" + functionA + " through " + port + ": b -" + functionB + " through " + port + ": b",
			},
		},
		"two pools that create virtual functions on one NIC": {
			pools: at(creating("a", otherPort), creating("b", otherPort)),
			want:  []string{"a: " + otherPort + " +" + otherPort + ": b", "b: -" + otherPort + ": a -" + functionC + " through " + otherPort + ": a"},
		},
		"a virtual function beside its NIC": {
			pools: at(asking("a", "x.example/a", port), askingForFunctions("b", functionA)),
			want:  []string{"a: " + port, "b: " + functionA},
		},
	})
}

func expectClaims(t *testing.T, cases map[string]claimCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := make([]string, 0, len(tc.pools))
			for _, claim := range Claims(Claimants(tc.pools, nil), tc.held, twoPorts()) {
				got = append(got, printed(claim))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
		})
	}
}

// sharing is a pool for NICs at the addresses that it offers to share with others.
func sharing(name string, with []string, addresses ...v1alpha1.PCIAddress) *v1alpha1.BypassNICPool {
	pool := asking(name, "x.example/"+name, addresses...)
	pool.Spec.Sharing = v1alpha1.SharingSpec{Mode: v1alpha1.SharingShared, MaximumSharesPerNIC: 4, WithPools: with}
	return pool
}

func TestClaimsByAgreement(t *testing.T) {
	elsewhere := sharing("b", []string{"a"}, port)
	elsewhere.Spec.Interrupts.Placement = v1alpha1.NICInterruptsKept
	expectClaims(t, map[string]claimCase{
		"both agree": {
			pools: at(sharing("a", []string{"b"}, port, otherPort), sharing("b", []string{"a"}, port)),
			want:  []string{"a: " + port + " " + otherPort + " =" + port + ": b", "b: " + port + " =" + port + ": a after 4"},
		},
		"both agree, and the younger has had it": {
			pools: at(sharing("a", []string{"b"}, port), sharing("b", []string{"a"}, port)),
			held:  Held{port: {"b"}},
			want:  []string{"a: " + port + " =" + port + ": b", "b: " + port + " =" + port + ": a after 4"},
		},
		"the older does not agree": {
			pools: at(asking("a", "x.example/a", port), sharing("b", []string{"a"}, port)),
			want: []string{
				"a: " + port + " +" + port + ": b (spec.sharing.withPools of BypassNICPool a does not name b)",
				"b: -" + port + ": a (spec.sharing.withPools of BypassNICPool a does not name b)",
			},
		},
		"the younger does not agree": {
			pools: at(sharing("a", []string{"b"}, port), asking("b", "x.example/b", port)),
			want: []string{
				"a: " + port + " +" + port + ": b (spec.sharing.withPools of BypassNICPool b does not name a)",
				"b: -" + port + ": a (spec.sharing.withPools of BypassNICPool b does not name a)",
			},
		},
		"an agreement that is withdrawn while both have it": {
			pools: at(sharing("a", []string{"gone"}, port), sharing("b", []string{"a"}, port)),
			held:  Held{port: {"a", "b"}},
			want: []string{
				"a: " + port + " +" + port + ": b (spec.sharing.withPools of BypassNICPool a does not name b)",
				"b: -" + port + ": a (spec.sharing.withPools of BypassNICPool a does not name b)",
			},
		},
		"interrupts in two places": {
			pools: at(sharing("a", []string{"b"}, port), elsewhere),
			want: []string{
				"a: " + port + " +" + port + ": b (spec.interrupts.placement of BypassNICPools a and b differ)",
				"b: -" + port + ": a (spec.interrupts.placement of BypassNICPools b and a differ)",
			},
		},
		"a third pool that agrees with one of two": {
			pools: at(sharing("a", []string{"b"}, port), sharing("b", []string{"a", "c"}, port), sharing("c", []string{"b"}, port)),
			want: []string{
				"a: " + port + " +" + port + ": c =" + port + ": b",
				"b: " + port + " +" + port + ": c =" + port + ": a after 4",
				"c: -" + port + ": a,b",
			},
		},
		"three agree": {
			pools: at(sharing("a", []string{"b", "c"}, port), sharing("b", []string{"a", "c"}, port), sharing("c", []string{"a", "b"}, port)),
			want: []string{
				"a: " + port + " =" + port + ": b,c", "b: " + port + " =" + port + ": a,c after 4", "c: " + port + " =" + port + ": a,b after 8",
			},
		},
		"an older newcomer that nobody agrees with": {
			pools: at(asking("c", "x.example/c", port), sharing("a", []string{"b"}, port), sharing("b", []string{"a"}, port)),
			held:  Held{port: {"a", "b"}},
			want: []string{
				"c: -" + port + ": a,b", "a: " + port + " +" + port + ": c =" + port + ": b", "b: " + port + " +" + port + ": c =" + port + ": a after 4",
			},
		},
		"a pool that creates virtual functions on the NIC": {
			pools: at(sharing("a", []string{"b"}, port), creating("b", port)),
			want: []string{
				"a: " + port + " +" + port + ": b (spec.sharing.withPools of BypassNICPool b does not name a)",
				"b: -" + port + ": a (spec.sharing.withPools of BypassNICPool b does not name a) -" + functionA + " through " + port + ": a -" +
					functionB + " through " + port + ": a",
			},
		},
	})
}

// TestStandings: a resource name belongs to the pool that has NICs under it, else to the oldest, and all pools know of each
// other.
func TestStandings(t *testing.T) {
	pools := at(asking("b", "x.example/same", port), asking("a", "x.example/same"), asking("c", "x.example/same"), asking("d", "x.example/d"))
	for name, tc := range map[string]struct {
		incumbents Incumbents
		want       []string
	}{
		"nobody has NICs": {
			want: []string{`b: of "", beside [a c]`, `a: of "b", beside [b c]`, `c: of "b", beside [a b]`, `d: of "", beside []`},
		},
		"a younger pool has some": {
			incumbents: Incumbents{"c": true, "d": true, "gone": true},
			want:       []string{`b: of "c", beside [a c]`, `a: of "c", beside [b c]`, `c: of "", beside [a b]`, `d: of "", beside []`},
		},
		"two have some": {
			incumbents: Incumbents{"a": true, "c": true},
			want:       []string{`b: of "a", beside [a c]`, `a: of "", beside [b c]`, `c: of "a", beside [a b]`, `d: of "", beside []`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := make([]string, 0, len(pools))
			for _, claimant := range Claimants(pools, tc.incumbents) {
				got = append(got, fmt.Sprintf("%s: of %q, beside %v", claimant.Name, claimant.ResourceOwner, claimant.SameResource))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("standings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestIncumbents: it matters who has NICs as soon as two pools have one resource name.
func TestIncumbents(t *testing.T) {
	node := &v1alpha1.LowLatencyNode{Spec: v1alpha1.LowLatencyNodeSpec{BypassNICs: []v1alpha1.BypassNICClaim{{PCIAddress: port, Pool: "a"}}}}
	if diff := cmp.Diff(Incumbents{"a": true}, IncumbentsOf(node, &v1alpha1.LowLatencyNode{})); diff != "" {
		t.Errorf("incumbents (-want +got):\n%s", diff)
	}
	pools := at(asking("a", "x.example/a"), asking("b", "x.example/b"), asking("c", "x.example/a"))
	if !NeedIncumbents(pools) || NeedIncumbents(pools[:2]) {
		t.Error("NeedIncumbents does not tell pools with one resource name from those with different ones")
	}
}

// TestNoNICIsClaimedTwice lets each of three pools be every kind of pool for every choice of NICs. Plans rely on it: they give
// each pool what it claims.
func TestNoNICIsClaimedTwice(t *testing.T) {
	var kinds []func(name string) *v1alpha1.BypassNICPool
	for _, ports := range [][]v1alpha1.PCIAddress{{port}, {otherPort}, {port, otherPort}} {
		kinds = append(kinds,
			func(name string) *v1alpha1.BypassNICPool { return asking(name, "x.example/"+name, ports...) },
			func(name string) *v1alpha1.BypassNICPool { return asking(name, "x.example/same", ports...) },
			func(name string) *v1alpha1.BypassNICPool { return sharing(name, []string{"a", "b"}, ports...) },
			func(name string) *v1alpha1.BypassNICPool { return sharing(name, []string{"a", "b", "c"}, ports...) },
			func(name string) *v1alpha1.BypassNICPool { return creating(name, ports...) })
	}
	for _, functions := range [][]v1alpha1.PCIAddress{{functionA}, {functionC}, {functionA, functionC}} {
		kinds = append(kinds, func(name string) *v1alpha1.BypassNICPool { return askingForFunctions(name, functions...) })
	}
	for _, a := range kinds {
		for _, b := range kinds {
			for _, c := range kinds {
				for _, held := range []Held{nil, {port: {"b"}, otherPort: {"c"}}, {functionA: {"c"}, port: {"a"}}} {
					pools := at(a("a"), b("b"), c("c"))
					expectOneOwner(t, pools, Claims(Claimants(pools, nil), held, twoPorts()))
				}
			}
		}
	}
}

// expectOneOwner wants no NIC in two claims but by an agreement of both pools, none on which a pool creates virtual functions
// beside one of another pool's, and a pool for every conflict.
func expectOneOwner(t *testing.T, pools []*v1alpha1.BypassNICPool, claims []Claim) {
	t.Helper()
	owners := agreedOwners(t, pools, claims)
	for _, claim := range claims {
		for _, conflict := range claim.Conflicts {
			if len(conflict.Pools) == 0 || slices.Contains(conflict.Pools, claim.Pool) {
				t.Fatalf("pool %s has a conflict with %v: %+v", claim.Pool, conflict.Pools, claims)
			}
		}
	}
	for _, claim := range claims {
		for _, kept := range claim.Kept {
			if holders := owners[kept.NIC.PCIAddress]; !slices.Contains(holders, claim.Pool) && !slices.Contains(owners[kept.NIC.PhysicalFunction], claim.Pool) {
				t.Fatalf("pool %s keeps NIC %s of pools %q: %+v", claim.Pool, kept.NIC.PCIAddress, holders, claims)
			}
		}
	}
}

// agreedOwners are the pools that have each NIC. Those that have one together must all name each other.
func agreedOwners(t *testing.T, pools []*v1alpha1.BypassNICPool, claims []Claim) map[string][]string {
	t.Helper()
	offers := map[string][]string{}
	for _, pool := range pools {
		offers[pool.Name] = pool.Spec.Sharing.WithPools
	}
	owners := map[string][]string{}
	for _, claim := range claims {
		for _, nic := range claim.NICs {
			for _, owner := range owners[nic.PCIAddress] {
				if !slices.Contains(offers[owner], claim.Pool) || !slices.Contains(offers[claim.Pool], owner) {
					t.Fatalf("pools %s and %s have NIC %s: %+v", owner, claim.Pool, nic.PCIAddress, claims)
				}
			}
			owners[nic.PCIAddress] = append(owners[nic.PCIAddress], claim.Pool)
		}
	}
	return owners
}

// TestClaimsAreSettled: what is recorded of claims makes the same claims, whichever pool is the oldest.
func TestClaimsAreSettled(t *testing.T) {
	for _, pools := range [][]*v1alpha1.BypassNICPool{
		{asking("a", "x.example/a", port), asking("b", "x.example/b", port, otherPort)},
		{creating("a", port), askingForFunctions("b", functionA, functionC)},
		{askingForFunctions("a", functionA), creating("b", port)},
		{creating("a", port), creating("b", port, otherPort), asking("c", "x.example/c", otherPort)},
	} {
		first := Claims(Claimants(at(pools...), nil), nil, twoPorts())
		held := HeldBy(Recorded(first))
		for i, pool := range pools {
			pool.CreationTimestamp = metav1.Unix(int64(2000-i), 0)
		}
		if diff := cmp.Diff(first, Claims(Claimants(pools, nil), held, twoPorts())); diff != "" {
			t.Errorf("claims when the ages are reversed (-first +then):\n%s", diff)
		}
	}
}

// printed is a claim as "POOL: NIC +KEPT: POOLS (DISAGREEMENT) -CONFLICT: POOLS (DISAGREEMENT) =SHARED: POOLS after RESERVED".
func printed(claim Claim) string {
	var text strings.Builder
	text.WriteString(claim.Pool + ":")
	for _, nic := range claim.NICs {
		text.WriteString(" " + nic.PCIAddress)
	}
	if claim.ResourceOwner != "" {
		text.WriteString(" resource of " + claim.ResourceOwner)
	}
	for _, kept := range claim.Kept {
		text.WriteString(" +" + kept.NIC.PCIAddress + ": " + strings.Join(kept.Pools, ",") + reason(kept.Disagreement))
	}
	for _, conflict := range claim.Conflicts {
		text.WriteString(" -" + conflict.NIC.PCIAddress)
		if conflict.Through != "" {
			text.WriteString(" through " + conflict.Through)
		}
		if conflict.Function != "" {
			text.WriteString(" for " + conflict.Function)
		}
		text.WriteString(": " + strings.Join(conflict.Pools, ",") + reason(conflict.Disagreement))
	}
	for _, shared := range claim.Shared {
		text.WriteString(" =" + shared.PCIAddress + ": " + strings.Join(shared.Pools, ","))
		if shared.Reserved > 0 {
			fmt.Fprintf(&text, " after %d", shared.Reserved)
		}
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
	claims := Claims(Claimants(pools, nil), nil, twoNodes().NICs)
	if diff := cmp.Diff(Claim{Pool: "unserved", Unserved: true}, claims[0]); diff != "" {
		t.Errorf("claim (-want +got):\n%s", diff)
	}
	if got, want := printed(claims[1]), "pool-00: "+nearZero; got != want {
		t.Errorf("claim is %q, want %q", got, want)
	}
}

// TestUnservedNewcomers: of more pools than a node can have, one that hands NICs out is served before one that is as old, or is said to be
// older because a clock was set back.
func TestUnservedNewcomers(t *testing.T) {
	pools := at(asking("zz-served", "x.example/z", nearZero))
	for i := range v1alpha1.MaxPoolsPerNode {
		pools = append(pools, at(asking(fmt.Sprintf("pool-%02d", i), fmt.Sprintf("x.example/%d", i), nowhere))...)
	}
	if !NeedIncumbents(pools) || NeedIncumbents(pools[:v1alpha1.MaxPoolsPerNode]) {
		t.Error("NeedIncumbents does not tell more pools than a node can have from as many")
	}
	last := len(pools) - 1
	for name, tc := range map[string]struct {
		incumbents Incumbents
		unserved   int
	}{
		"nobody has NICs":    {nil, 0},
		"the served one has": {Incumbents{"zz-served": true}, last},
	} {
		claims := Claims(Claimants(pools, tc.incumbents), nil, twoNodes().NICs)
		for i, claim := range claims {
			if claim.Unserved != (i == tc.unserved) {
				t.Errorf("%s: %s: unserved %v", name, claim.Pool, claim.Unserved)
			}
		}
	}
	if Claimants(pools[:2], Incumbents{"zz-served": true})[0].Incumbent {
		t.Error("a pool is written as an incumbent where that does not matter")
	}
}

// TestPlannedPools: a plan is told which NICs a pool has, and whether user space drives them.
func TestPlannedPools(t *testing.T) {
	nics := twoNodes().NICs
	onload, functions, unsafe := asking("a", "x.example/a", nearZero), asking("b", "x.example/b", nearOne), asking("c", "x.example/c", nowhere)
	onload.Spec.Stack = v1alpha1.BypassStack{Type: v1alpha1.StackOnload, Onload: &v1alpha1.OnloadStack{}}
	functions.Spec.Stack = v1alpha1.BypassStack{Type: v1alpha1.StackVFIO, VFIO: &v1alpha1.VFIOStack{}}
	unsafe.Spec.Stack = v1alpha1.BypassStack{Type: v1alpha1.StackVFIO, VFIO: &v1alpha1.VFIOStack{Isolation: v1alpha1.VFIOIsolationNoIOMMU}}
	pools := []*v1alpha1.BypassNICPool{onload, functions, unsafe}
	planned := PlannedPools(pools, Claims(Claimants(pools, nil), nil, nics))
	got := make([]string, 0, len(planned))
	for _, pool := range planned {
		got = append(got, fmt.Sprintf("%s %s %q", pool.Name, pool.NICs[0].PCIAddress, pool.Isolation))
	}
	want := []string{"a " + nearZero + ` ""`, "b " + nearOne + ` "IOMMU"`, "c " + nowhere + ` "NoIOMMU"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("planned pools (-want +got):\n%s", diff)
	}
}

func reason(disagreement string) string {
	if disagreement == "" {
		return ""
	}
	return " (" + disagreement + ")"
}
