// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// PlannedPools are pools as a plan of a node wants them that they all select: each with the NICs that it has there, and
// with how its stack drives them.
func PlannedPools(pools []*v1alpha1.BypassNICPool, nics []topology.NIC) []plan.Pool {
	planned := make([]plan.Pool, 0, len(pools))
	for i, claim := range Claims(Claimants(pools), nics) {
		spec := &pools[i].Spec
		pool := plan.Pool{Name: claim.Pool, Spec: spec, NICs: claim.NICs, SameResource: claim.SameResource, Conflicts: plannedConflicts(claim.Conflicts)}
		if isolation := stackOf(spec).isolation; isolation != nil {
			pool.Isolation = isolation(&spec.Stack)
		}
		planned = append(planned, pool)
	}
	return planned
}

// plannedConflicts groups NICs by the other pools that claim them.
func plannedConflicts(conflicts []NICConflict) []plan.PoolConflict {
	var groups []plan.PoolConflict
	for _, conflict := range conflicts {
		at := slices.IndexFunc(groups, func(g plan.PoolConflict) bool { return slices.Equal(g.Pools, conflict.Pools) })
		if at < 0 {
			at = len(groups)
			groups = append(groups, plan.PoolConflict{Pools: conflict.Pools})
		}
		groups[at].NICs = append(groups[at].NICs, conflict.NIC)
	}
	return groups
}
