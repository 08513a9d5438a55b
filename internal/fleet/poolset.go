// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// PoolSet are the BypassNICPools that select a node. Nodes that the same pools select share one. A nil set is empty.
type PoolSet struct {
	// pools in ascending order of their names, at most v1alpha1.MaxPoolsPerNode: those that hold NICs first, then the oldest.
	pools []*v1alpha1.BypassNICPool
	// claimants are what the pools claim NICs by, in the same order.
	claimants []bypass.Claimant
	// names of the pools.
	names []string
	// generations are the pools as a plan that was made with them names them.
	generations []v1alpha1.PlannedPool
	// identity is equal for sets of the same pools of the same generations that stand alike among all pools.
	identity string
}

// NewPoolSet makes a set of all the pools that there are, of which the incumbents have NICs, and those select the node that the
// function chooses; nil chooses all.
func NewPoolSet(all []*v1alpha1.BypassNICPool, incumbents bypass.Incumbents, selecting func(*v1alpha1.BypassNICPool) bool) *PoolSet {
	return newPoolSet(all, bypass.Claimants(all, incumbents), selecting)
}

func newPoolSet(all []*v1alpha1.BypassNICPool, claimants []bypass.Claimant, selecting func(*v1alpha1.BypassNICPool) bool) *PoolSet {
	chosen := make([]int, 0, len(all))
	for i, pool := range all {
		if selecting == nil || selecting(pool) {
			chosen = append(chosen, i)
		}
	}
	slices.SortFunc(chosen, func(a, b int) int { return bypass.CompareStanding(&claimants[a], &claimants[b]) })
	chosen = shorten.List(chosen, v1alpha1.MaxPoolsPerNode)
	slices.SortFunc(chosen, func(a, b int) int { return cmp.Compare(all[a].Name, all[b].Name) })
	set := &PoolSet{}
	for _, i := range chosen {
		set.pools, set.claimants, set.names = append(set.pools, all[i]), append(set.claimants, claimants[i]), append(set.names, all[i].Name)
		set.generations = append(set.generations, v1alpha1.PlannedPool{Name: all[i].Name, Generation: all[i].Generation})
		set.identity += fmt.Sprintf("%s/%d/%s ", all[i].UID, all[i].Generation, claimants[i].ResourceOwner)
	}
	return set
}

// Names of the pools, ascending. Not to be changed.
func (s *PoolSet) Names() []string {
	if s == nil {
		return nil
	}
	return s.names
}

// Generations are the pools as a plan that was made with them names them. Not to be changed.
func (s *PoolSet) Generations() []v1alpha1.PlannedPool {
	if s == nil {
		return nil
	}
	return s.generations
}

// On are the pools on a node where they have had NICs as its LowLatencyNode records it; nil when there is none.
func (s *PoolSet) On(report *v1alpha1.LowLatencyNode) NodePools {
	if s == nil || report == nil {
		return NodePools{PoolSet: s}
	}
	return NodePools{PoolSet: s, recorded: report.Spec.BypassNICs}
}

// NodePools are the BypassNICPools that select a node, and what they have of its NICs. The zero value is none.
type NodePools struct {
	*PoolSet

	// recorded is which pool has had which NIC.
	recorded []v1alpha1.BypassNICClaim
}

// key identifies all that claims depend on but the NICs; "" for no pools. What a pool has had decides only where
// there is another one.
func (p NodePools) key() string {
	switch {
	case p.PoolSet == nil:
		return ""
	case len(p.pools) < 2:
		return p.identity
	}
	var key strings.Builder
	key.WriteString(p.identity)
	for _, claim := range p.recorded {
		key.WriteString(claim.PCIAddress + "=" + claim.Pool + " ")
	}
	return key.String()
}

// claims are what the pools have on a node with these NICs, in the order of their names.
func (p NodePools) claims(nics []topology.NIC) []bypass.Claim {
	if p.PoolSet == nil {
		return nil
	}
	return bypass.Claims(p.claimants, bypass.HeldBy(p.recorded), nics)
}

// planned are the pools as a plan for a node with these NICs wants them, and which of them has which NIC.
func (p NodePools) planned(nics []topology.NIC) ([]plan.Pool, []v1alpha1.BypassNICClaim) {
	if p.PoolSet == nil {
		return nil, nil
	}
	claims := p.claims(nics)
	return bypass.PlannedPools(p.pools, claims), bypass.Recorded(claims)
}

// claim is what one of the pools has on a node with these NICs.
func (p NodePools) claim(pool string, nics []topology.NIC) bypass.Claim {
	for _, claim := range p.claims(nics) {
		if claim.Pool == pool {
			return claim
		}
	}
	return bypass.Claim{Pool: pool}
}

// creators are the NICs that pools have on which they create virtual functions, where another pool selects virtual
// functions.
func (p NodePools) creators() []v1alpha1.BypassNICClaim {
	if p.PoolSet == nil || !slices.ContainsFunc(p.claimants, selectsFunctions) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.recorded), func(claim v1alpha1.BypassNICClaim) bool {
		return !slices.ContainsFunc(p.claimants, func(c bypass.Claimant) bool { return c.Name == claim.Pool && c.VirtualFunctions > 0 })
	})
}

func selectsFunctions(claimant bypass.Claimant) bool {
	return slices.ContainsFunc(claimant.NICs, func(s v1alpha1.NICSelector) bool { return s.Role == v1alpha1.RoleVirtualFunction })
}

// Record is what the LowLatencyNode of the node is to record of the claims: what the pools have, and what they had of
// NICs that the inventory does not list now. A NIC that is away for a moment is not lost by that.
func (p NodePools) Record(claimed []v1alpha1.BypassNICClaim, inventory *v1alpha1.Inventory) []v1alpha1.BypassNICClaim {
	record := slices.Clone(claimed)
	for _, held := range p.recorded {
		isThere := inventory != nil && slices.ContainsFunc(inventory.NICs, func(nic v1alpha1.InventoryNIC) bool { return nic.PCIAddress == held.PCIAddress })
		if !isThere && slices.Contains(p.Names(), held.Pool) {
			record = append(record, held)
		}
	}
	record = shorten.List(record, v1alpha1.MaxBypassNICs)
	slices.SortFunc(record, bypass.CompareRecorded)
	return record
}

// PoolIndex finds the pools of nodes. It is not safe for concurrent use.
type PoolIndex struct {
	pools     []*v1alpha1.BypassNICPool
	claimants []bypass.Claimant
	known     map[string]*PoolSet
	buffer    []byte
}

// NewPoolIndex makes an index over all pools, of which the incumbents have NICs.
func NewPoolIndex(pools []*v1alpha1.BypassNICPool, incumbents bypass.Incumbents) *PoolIndex {
	return &PoolIndex{pools: pools, claimants: bypass.Claimants(pools, incumbents), known: map[string]*PoolSet{}}
}

// Of returns the pools that select the node; nil when none does.
func (x *PoolIndex) Of(node *corev1.Node) *PoolSet {
	x.buffer = x.buffer[:0]
	for i, pool := range x.pools {
		if Selects(pool.Spec.NodeSelector, node) {
			x.buffer = append(strconv.AppendInt(x.buffer, int64(i), 10), ' ')
		}
	}
	if len(x.buffer) == 0 {
		return nil
	}
	if known, found := x.known[string(x.buffer)]; found {
		return known
	}
	set := newPoolSet(x.pools, x.claimants, func(pool *v1alpha1.BypassNICPool) bool { return Selects(pool.Spec.NodeSelector, node) })
	x.known[string(x.buffer)] = set
	return set
}
