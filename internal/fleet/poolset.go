// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// PoolSet are the BypassNICPools that select a node. Nodes that the same pools select share one. A nil set is empty.
type PoolSet struct {
	// pools in ascending order of their names, at most v1alpha1.MaxPoolsPerNode.
	pools []*v1alpha1.BypassNICPool
	// names of the pools.
	names []string
	// identity is equal for sets of the same pools of the same generations.
	identity string
}

// NewPoolSet makes a set of pools that are in ascending order of their names. Of more than v1alpha1.MaxPoolsPerNode it has
// the first.
func NewPoolSet(pools []*v1alpha1.BypassNICPool) *PoolSet {
	set := &PoolSet{pools: shorten.List(pools, v1alpha1.MaxPoolsPerNode)}
	for _, pool := range set.pools {
		set.names = append(set.names, pool.Name)
		set.identity += fmt.Sprintf("%s/%d ", pool.UID, pool.Generation)
	}
	return set
}

// key identifies the pools and their generations; "" for none.
func (s *PoolSet) key() string {
	if s == nil {
		return ""
	}
	return s.identity
}

// Names of the pools, ascending. Not to be changed.
func (s *PoolSet) Names() []string {
	if s == nil {
		return nil
	}
	return s.names
}

// Planned are the pools with the NICs that each of them has on a node with these NICs.
func (s *PoolSet) Planned(nics []topology.NIC) []plan.Pool {
	if s == nil {
		return nil
	}
	return bypass.PlannedPools(s.pools, nics)
}

// claim is what one of the pools has on a node with these NICs.
func (s *PoolSet) claim(pool string, nics []topology.NIC) bypass.Claim {
	return bypass.ClaimOf(pool, s.claimants(), nics)
}

// claimants are what the pools claim NICs by, in their order.
func (s *PoolSet) claimants() []bypass.Claimant {
	if s == nil {
		return nil
	}
	return bypass.Claimants(s.pools)
}

// PoolIndex finds the pools of nodes. It is not safe for concurrent use.
type PoolIndex struct {
	pools  []*v1alpha1.BypassNICPool
	known  map[string]*PoolSet
	buffer []byte
}

// NewPoolIndex makes an index over pools that are in ascending order of their names.
func NewPoolIndex(pools []*v1alpha1.BypassNICPool) *PoolIndex {
	return &PoolIndex{pools: pools, known: map[string]*PoolSet{}}
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
	set := NewPoolSet(slices.DeleteFunc(slices.Clone(x.pools), func(pool *v1alpha1.BypassNICPool) bool {
		return !Selects(pool.Spec.NodeSelector, node)
	}))
	x.known[string(x.buffer)] = set
	return set
}
