// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// Standing is how a BypassNICPool stands among the others.
type Standing struct {
	// Created is when it was created; nil for one that is in no cluster yet, which is younger than all others.
	Created *metav1.Time `json:"created,omitempty"`
	// ResourceOwner is the pool that its resource name belongs to; "" when that is itself. A name belongs to the pool
	// that has had NICs under it, else to the oldest that asks for it, whatever nodes the pools select.
	ResourceOwner string `json:"resourceOwner,omitempty"`
	// SameResource are the other pools that have its resource name, ascending.
	SameResource []string `json:"sameResource,omitempty"`
	// Incumbent tells that it has NICs of a node, where there are more pools than one node can have; false where that does not matter.
	Incumbent bool `json:"incumbent,omitempty"`
}

// Claimant is a BypassNICPool as far as it claims NICs.
type Claimant struct {
	Standing

	// Name of the BypassNICPool.
	Name string `json:"name"`
	// ResourceName is the name under which the kubelet hands its NICs out.
	ResourceName string `json:"resourceName"`
	// NICs are its selectors.
	NICs []v1alpha1.NICSelector `json:"nics"`
	// VirtualFunctions is how many virtual functions it creates on each NIC; 0 when it hands out the NICs
	// themselves.
	VirtualFunctions int32 `json:"virtualFunctions,omitempty"`
	// Agreement is what it offers to share NICs by.
	Agreement
}

// claimantOf returns what a pool claims NICs by.
func claimantOf(name string, spec *v1alpha1.BypassNICPoolSpec, standing Standing) Claimant {
	claimant := Claimant{Name: name, Standing: standing, ResourceName: spec.ResourceName, NICs: spec.NICs, Agreement: agreementOf(spec)}
	if spec.VirtualFunctions != nil {
		claimant.VirtualFunctions = spec.VirtualFunctions.CountPerNIC
	}
	return claimant
}

// Incumbents are the pools that have NICs of any node, by their names.
type Incumbents map[string]bool

// IncumbentsOf are the pools that have NICs as LowLatencyNodes record it.
func IncumbentsOf(nodes ...*v1alpha1.LowLatencyNode) Incumbents {
	incumbents := Incumbents{}
	for _, node := range nodes {
		for _, claim := range node.Spec.BypassNICs {
			incumbents[claim.Pool] = true
		}
	}
	return incumbents
}

// NeedIncumbents reports whether it matters to Claimants which pools hold NICs: only where two of the pools have the same resource name,
// or where there are more than one node can have.
func NeedIncumbents(pools []*v1alpha1.BypassNICPool) bool {
	if len(pools) > v1alpha1.MaxPoolsPerNode {
		return true
	}
	seen := make(map[string]bool, len(pools))
	for _, pool := range pools {
		if seen[pool.Spec.ResourceName] {
			return true
		}
		seen[pool.Spec.ResourceName] = true
	}
	return false
}

// Claimants returns what pools claim NICs by, in their order. They are all pools: to which of them a resource name belongs
// does not depend on the nodes that they select. The incumbents are those of all nodes; nil where nobody has recorded any.
func Claimants(pools []*v1alpha1.BypassNICPool, incumbents Incumbents) []Claimant {
	claimants := make([]Claimant, 0, len(pools))
	named := map[string][]int{}
	for i, pool := range pools {
		var standing Standing
		if !pool.CreationTimestamp.IsZero() {
			standing.Created = &pool.CreationTimestamp
		}
		standing.Incumbent = len(pools) > v1alpha1.MaxPoolsPerNode && incumbents[pool.Name]
		claimants = append(claimants, claimantOf(pool.Name, &pool.Spec, standing))
		named[pool.Spec.ResourceName] = append(named[pool.Spec.ResourceName], i)
	}
	for _, same := range named {
		settleResource(claimants, same, incumbents)
	}
	return claimants
}

// settleResource gives the resource name that some of the claimants have in common to the one that has NICs under it: pods
// run with them. A pool cannot change its resource name, so that it has had its NICs under this one. Of several, and when
// none has any, the oldest gets it. Age alone would not do: the clock of an API server can be set back.
func settleResource(claimants []Claimant, same []int, incumbents Incumbents) {
	if len(same) < 2 {
		return
	}
	owner := slices.MinFunc(same, func(a, b int) int {
		return cmp.Or(compareIncumbency(incumbents, claimants[a].Name, claimants[b].Name), CompareAge(&claimants[a], &claimants[b]))
	})
	for _, i := range same {
		for _, other := range same {
			if other != i {
				claimants[i].SameResource = append(claimants[i].SameResource, claimants[other].Name)
			}
		}
		slices.Sort(claimants[i].SameResource)
		if i != owner {
			claimants[i].ResourceOwner = claimants[owner].Name
		}
	}
}

// compareIncumbency puts a pool that holds NICs before one that does not.
func compareIncumbency(incumbents Incumbents, a, b string) int {
	switch {
	case incumbents[a] == incumbents[b]:
		return 0
	case incumbents[a]:
		return -1
	}
	return 1
}

// CompareStanding orders the pools of a node for which it has too many: those that hold NICs first, because pods run with them, then by age.
func CompareStanding(a, b *Claimant) int {
	switch {
	case a.Incumbent == b.Incumbent:
		return CompareAge(a, b)
	case a.Incumbent:
		return -1
	}
	return 1
}

// CompareAge orders pools: the older one first, of those of one second the first by name. A pool that is in no cluster yet is
// younger than all that are.
func CompareAge(a, b *Claimant) int {
	byTime := 0
	switch {
	case a.Created != nil && b.Created != nil:
		byTime = a.Created.Compare(b.Created.Time)
	case a.Created != nil:
		byTime = -1
	case b.Created != nil:
		byTime = 1
	}
	return cmp.Or(byTime, strings.Compare(a.Name, b.Name))
}

// Held says which pools have had which NIC of a node up to now: their names by the address of the NIC. They are several
// where they agreed to share it.
type Held map[string][]string

// HeldBy is what a LowLatencyNode records.
func HeldBy(recorded []v1alpha1.BypassNICClaim) Held {
	if len(recorded) == 0 {
		return nil
	}
	held := make(Held, len(recorded))
	for _, claim := range recorded {
		held[claim.PCIAddress] = append(held[claim.PCIAddress], claim.Pool)
	}
	return held
}

// Claim is what a pool has of the NICs of a node, and why not more.
type Claim struct {
	// Pool is its name.
	Pool string
	// Unserved means that v1alpha1.MaxPoolsPerNode other pools of the node hold NICs or are older. It then claims no NIC.
	Unserved bool
	// ResourceOwner is another pool that its resource name belongs to; "" when there is none. It then claims no NIC: the
	// kubelet would serve the pool that registered last, whatever NIC the other has promised.
	ResourceOwner string
	// NICs are those that it selects and has, in ascending order of PCI address. A pool that creates virtual
	// functions has these with their NIC.
	NICs []topology.NIC
	// Kept are the NICs that it has and that other pools claim, too, in ascending order of PCI address.
	Kept []NICConflict
	// Conflicts are the NICs that it claims and does not have, in ascending order of PCI address.
	Conflicts []NICConflict
	// Shared are the NICs that it has together with other pools, in ascending order of PCI address.
	Shared []SharedNIC
}

// NICConflict is a NIC that several pools claim.
type NICConflict struct {
	NIC topology.NIC
	// Pools are the other pools, ascending: those that claim the NIC in vain, or those that have it.
	Pools []string
	// Disagreement is why one of Pools does not share the NIC with this pool although one of both offers it; "" when
	// neither does.
	Disagreement string
	// Held is the address of what the pool that has the NIC has recorded: the NIC itself, the NIC on which that pool
	// creates it, or Function.
	Held string
	// Through is the physical function that the other pools have in place of the NIC, which the pool would create on it;
	// "" when they have the NIC.
	Through string
	// Function is a virtual function on the NIC that the other pools have in place of the NIC, so that this pool may not
	// create its own there; "" when they have the NIC.
	Function string
}

// Conflict returns the conflict about a NIC that the pool does not have; nil when there is none.
func (c *Claim) Conflict(address string) *NICConflict {
	index := slices.IndexFunc(c.Conflicts, func(conflict NICConflict) bool { return conflict.NIC.PCIAddress == address })
	if index < 0 {
		return nil
	}
	return &c.Conflicts[index]
}

// Recorded are the NICs of claims as a LowLatencyNode records them, in ascending order of PCI address.
func Recorded(claims []Claim) []v1alpha1.BypassNICClaim {
	var recorded []v1alpha1.BypassNICClaim
	for _, claim := range claims {
		for _, nic := range claim.NICs {
			recorded = append(recorded, v1alpha1.BypassNICClaim{PCIAddress: nic.PCIAddress, Pool: claim.Pool})
		}
	}
	slices.SortFunc(recorded, CompareRecorded)
	return recorded
}

// CompareRecorded orders what a LowLatencyNode records: by the address of the NIC, then by the name of the pool.
func CompareRecorded(a, b v1alpha1.BypassNICClaim) int {
	return cmp.Or(topology.ComparePCIAddresses(a.PCIAddress, b.PCIAddress), strings.Compare(a.Pool, b.Pool))
}

// Claims decides what each of the pools that select a node has of its NICs, in the order of the pools. It is the one
// answer to this question: for the plan and the status of pools, for what the device plugin and the DRA driver hand
// out, and for the command line.
//
// A pool claims the NICs that its selectors match and, when it creates virtual functions, all virtual functions of these.
// Of several pools that claim a NIC, the one that has had it keeps it; else the oldest has it, and with it those that
// agree with all that have it to share it (Agreement). A pool that has a NIC and
// creates virtual functions has all of these. It may not have a NIC of whose virtual functions another pool has one:
// changing their number would take that away.
func Claims(pools []Claimant, held Held, nics []topology.NIC) []Claim {
	c := newContest(pools, nics)
	c.keep(held)
	c.share()
	claims := make([]Claim, 0, len(pools))
	for i := range pools {
		claims = append(claims, c.claim(&pools[i]))
	}
	return claims
}

// ClaimOf is Claims for one of the pools.
func ClaimOf(pool string, pools []Claimant, held Held, nics []topology.NIC) Claim {
	for _, claim := range Claims(pools, held, nics) {
		if claim.Pool == pool {
			return claim
		}
	}
	return Claim{Pool: pool}
}
