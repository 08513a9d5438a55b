// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// PlannedPools are pools as a plan of a node wants them that they all select: each with the NICs that it claims there, and
// with how its stack drives them.
func PlannedPools(pools []*v1alpha1.BypassNICPool, claims []Claim) []plan.Pool {
	planned := make([]plan.Pool, 0, len(pools))
	for i, claim := range claims {
		spec := &pools[i].Spec
		pool := plan.Pool{
			Name: claim.Pool, Spec: spec, NICs: claim.NICs, ResourceOwner: claim.ResourceOwner, Conflicts: plannedConflicts(claim.Conflicts),
		}
		for _, shared := range claim.Shared {
			pool.Shared = append(pool.Shared, shared.PCIAddress)
		}
		if isolation := stackOf(spec).isolation; isolation != nil {
			pool.Isolation = isolation(&spec.Stack)
		}
		planned = append(planned, pool)
	}
	return planned
}

// plannedConflicts groups NICs by the other pools that have them.
func plannedConflicts(conflicts []NICConflict) []plan.PoolConflict {
	var groups []plan.PoolConflict
	for _, conflict := range conflicts {
		if conflict.Through != "" {
			continue // What is said of the NIC on which it is created says all.
		}
		at := slices.IndexFunc(groups, func(g plan.PoolConflict) bool { return slices.Equal(g.Pools, conflict.Pools) })
		if at < 0 {
			at = len(groups)
			groups = append(groups, plan.PoolConflict{Pools: conflict.Pools})
		}
		groups[at].NICs = append(groups[at].NICs, conflict.NIC)
	}
	return groups
}
