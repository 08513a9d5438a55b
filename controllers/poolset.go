// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// livingPools are the BypassNICPools that are not being deleted, in ascending order of their names. They are shared
// with the cache: not to be changed.
func livingPools(ctx context.Context, reader client.Reader) ([]*v1alpha1.BypassNICPool, error) {
	var list v1alpha1.BypassNICPoolList
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing BypassNICPools: %w", err)
	}
	pools := make([]*v1alpha1.BypassNICPool, 0, len(list.Items))
	for i := range list.Items {
		if pool := &list.Items[i]; pool.DeletionTimestamp.IsZero() {
			pools = append(pools, pool)
		}
	}
	slices.SortFunc(pools, func(a, b *v1alpha1.BypassNICPool) int { return cmp.Compare(a.Name, b.Name) })
	return pools, nil
}

// poolSet are the pools that select a node. Nodes that the same pools select share one.
type poolSet struct {
	// pools in ascending order of their names, at most v1alpha1.MaxPoolsPerNode.
	pools []*v1alpha1.BypassNICPool
	// poolNames are their names.
	poolNames []string
	// identity is equal for sets of the same pools of the same generations.
	identity string
}

// key identifies the pools and their generations; "" for none.
func (s *poolSet) key() string {
	if s == nil {
		return ""
	}
	return s.identity
}

// names of the pools, ascending. Not to be changed.
func (s *poolSet) names() []string {
	if s == nil {
		return nil
	}
	return s.poolNames
}

// planned are the pools with the NICs that each of them has on a node with these NICs.
func (s *poolSet) planned(nics []topology.NIC) []plan.Pool {
	if s == nil {
		return nil
	}
	planned := make([]plan.Pool, 0, len(s.pools))
	for i, claim := range bypass.Claims(s.claimants(), nics) {
		planned = append(planned, plan.Pool{Name: claim.Pool, Spec: &s.pools[i].Spec, NICs: claim.NICs})
	}
	return planned
}

// claim is what one of the pools has on a node with these NICs.
func (s *poolSet) claim(pool string, nics []topology.NIC) bypass.Claim {
	return bypass.ClaimOf(pool, s.claimants(), nics)
}

// claimants are what the pools claim NICs by, in their order.
func (s *poolSet) claimants() []bypass.Claimant {
	if s == nil {
		return nil
	}
	return bypass.Claimants(s.pools)
}

// poolIndex finds the pools of nodes.
type poolIndex struct {
	pools  []*v1alpha1.BypassNICPool
	known  map[string]*poolSet
	buffer []byte
}

// newPoolIndex makes an index over pools that are in ascending order of their names.
func newPoolIndex(pools []*v1alpha1.BypassNICPool) *poolIndex {
	return &poolIndex{pools: pools, known: map[string]*poolSet{}}
}

// of returns the pools that select the node; nil when none does.
func (x *poolIndex) of(node *corev1.Node) *poolSet {
	x.buffer = x.buffer[:0]
	for i, pool := range x.pools {
		if matches(pool.Spec.NodeSelector, node) {
			x.buffer = append(strconv.AppendInt(x.buffer, int64(i), 10), ' ')
		}
	}
	if len(x.buffer) == 0 {
		return nil
	}
	if known, found := x.known[string(x.buffer)]; found {
		return known
	}
	set := newPoolSet(slices.DeleteFunc(slices.Clone(x.pools), func(pool *v1alpha1.BypassNICPool) bool {
		return !matches(pool.Spec.NodeSelector, node)
	}))
	x.known[string(x.buffer)] = set
	return set
}

func newPoolSet(pools []*v1alpha1.BypassNICPool) *poolSet {
	set := &poolSet{pools: shorten.List(pools, v1alpha1.MaxPoolsPerNode)}
	for _, pool := range set.pools {
		set.poolNames = append(set.poolNames, pool.Name)
		set.identity += fmt.Sprintf("%s/%d ", pool.UID, pool.Generation)
	}
	return set
}
