// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// Shares returns what each of the pools that select a node hands out on it, in the order of the pools: the NICs that
// it selects, without those that several pools claim. Of two pools with one resource name neither has a NIC: the
// kubelet would serve the one that registered last, whatever NIC the other has promised.
func Shares(pools []*v1alpha1.BypassNICPool, nics []topology.NIC) [][]topology.NIC {
	claims := make(map[string][]topology.NIC, len(pools))
	resources := map[string]int{}
	for _, pool := range pools {
		claims[pool.Name] = Claims(&pool.Spec, nics)
		resources[pool.Spec.ResourceName]++
	}
	contested := Conflicts(claims)
	shares := make([][]topology.NIC, 0, len(pools))
	for _, pool := range pools {
		shares = append(shares, slices.DeleteFunc(Select(pool.Spec.NICs, nics), func(nic topology.NIC) bool {
			return resources[pool.Spec.ResourceName] > 1 || len(contested[nic.PCIAddress]) > 0
		}))
	}
	return shares
}

// RivalOf returns another pool as a rival of the pool on the nodes that both select. Pools with one resource name
// contest all NICs of each other; see Shares.
func RivalOf(pool, other *v1alpha1.BypassNICPool, nodes []string) Rival {
	terms := other.Spec.NICs
	if pool.Spec.ResourceName == other.Spec.ResourceName {
		terms = append(slices.Clone(terms), pool.Spec.NICs...)
	}
	return Rival{Name: other.Name, NICs: terms, Nodes: nodes}
}
