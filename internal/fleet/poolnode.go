// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
)

// isPaused reports whether the rollout of a profile that governs a node is paused.
func isPaused(profiles []*v1alpha1.LowLatencyNodeProfile, names []string) bool {
	return slices.ContainsFunc(profiles, func(profile *v1alpha1.LowLatencyNodeProfile) bool {
		return slices.Contains(names, profile.Name) && profile.Spec.Rollout.State == v1alpha1.RolloutPaused
	})
}

// InForce says whether the node has the share of the pool that the node's plan holds in force: hugepages, virtual functions,
// drivers. It is True only when the plan was made with the current spec of the pool, and the agent has found it applied. A
// heartbeat that has become stale since changes nothing here: what it makes unknown are the NICs.
func (n *PoolNode) InForce(pool *v1alpha1.BypassNICPool) metav1.Condition {
	applied := metav1.Condition{
		Type: v1alpha1.ConditionApplied, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonAwaitingPlan,
		Message: "the node has no plan yet that was made with the current spec of this pool",
	}
	if n.Report == nil || !slices.Contains(n.Report.Spec.PlannedPools, v1alpha1.PlannedPool{Name: pool.Name, Generation: pool.Generation}) {
		return applied
	}
	applied = CurrentCondition(n.Node, n.Report, InForce(n.Report).Hash, v1alpha1.ConditionApplied)
	if applied.Reason == v1alpha1.ReasonHeartbeatStale {
		applied.Status = metav1.ConditionTrue
	}
	return applied
}

// HealthyUnits are how many units the healthy NICs among these give.
func HealthyUnits(nics []*v1alpha1.NodeBypassNIC) int64 {
	var units int64
	for _, nic := range nics {
		if nic.Health == v1alpha1.NICHealthy {
			units += int64(nic.Units)
		}
	}
	return units
}

// MissingUnits are how many of these the scheduler cannot hand out: those that the kubelet does not advertise, and of a DRA driver
// those that it does not offer in ResourceSlices.
func (n *PoolNode) MissingUnits(pool *v1alpha1.BypassNICPool) int64 {
	if bypass.Allocation(&pool.Spec) == v1alpha1.AllocationDynamic {
		return max(0, HealthyUnits(n.NICs)-n.Published)
	}
	advertised := n.Node.Status.Allocatable[corev1.ResourceName(pool.Spec.ResourceName)]
	return max(0, HealthyUnits(n.NICs)-advertised.Value())
}
