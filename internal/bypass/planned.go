// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
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
		pool := plan.Pool{Name: claim.Pool, Spec: spec, NICs: claim.NICs}
		if isolation := stackOf(spec).isolation; isolation != nil {
			pool.Isolation = isolation(&spec.Stack)
		}
		planned = append(planned, pool)
	}
	return planned
}
