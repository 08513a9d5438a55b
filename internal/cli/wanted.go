// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"cmp"
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// wanted is what files ask for: a profile, and the BypassNICPools beside it in ascending order of their names.
type wanted struct {
	profile *v1alpha1.LowLatencyNodeProfile
	pools   []*v1alpha1.BypassNICPool
	// incumbents are those of the pools that have NICs as the LowLatencyNodes beside them record it.
	incumbents bypass.Incumbents
	// platform whose rules hold; "" for OpenShift's.
	platform string
}

// wanted returns the profile with the name, or the only one when the name is empty, with the pools of the files.
func (m *manifests) wanted(profile string) (wanted, error) {
	chosen, err := m.profile(profile)
	return wanted{profile: chosen, pools: m.sortedPools(), incumbents: bypass.IncumbentsOf(m.nodes...)}, err
}

func (m *manifests) sortedPools() []*v1alpha1.BypassNICPool {
	return slices.SortedFunc(slices.Values(m.pools), func(a, b *v1alpha1.BypassNICPool) int { return cmp.Compare(a.Name, b.Name) })
}

// planned is a node with its plan, which it has already when it was made while the host was read.
func (w wanted) planned(node node) planned {
	if node.planned == nil {
		node.planned = w.plan(node)
	}
	return planned{node: node, Planned: node.planned}
}

// plan plans for a node, as the operator does.
func (w wanted) plan(node node) *fleet.Planned {
	pools := fleet.NewPoolSet(w.pools, w.incumbents, node.isSelectedBy).On(node.report)
	return fleet.PlanHardware(w.profile, pools, node.topology, platforms()[cmp.Or(w.platform, openShift)].Rules)
}

// checked plans for a node, and returns what the checks of its plan read of its host. Without a plan there is nothing to
// check.
func (w wanted) checked(node *node) host.Request {
	node.planned = w.plan(*node)
	if node.planned.Plan == nil {
		return host.Request{}
	}
	return verify.Requests(node.planned.Plan)
}

// isSelectedBy reports whether a pool selects the node. A host has no labels to hold against nodeSelector, so that it counts
// as selected; of a LowLatencyNode the operator has noted which pools select it.
func (n node) isSelectedBy(pool *v1alpha1.BypassNICPool) bool {
	return n.report == nil || len(n.report.Spec.BypassPools) == 0 || slices.Contains(n.report.Spec.BypassPools, pool.Name)
}
