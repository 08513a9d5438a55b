// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// Member is a node that a profile selects, and what was decided for it.
type Member struct {
	Node *corev1.Node
	// Report is nil until the operator has created the LowLatencyNode.
	Report *v1alpha1.LowLatencyNode
	// OtherProfiles are the other profiles that select the node, ascending. A node that has any is left as it is.
	OtherProfiles []string
	// Pools are the BypassNICPools that select the node.
	Pools *PoolSet
	// Planned is nil until the agent has reported an inventory, and for a node of several profiles.
	Planned *Planned
	// Turned says that the platform has told the node to take the plan.
	Turned bool
	// Qualification is the measurement that the node has passed last of those that the profile asks for; nil when there is none.
	Qualification *v1alpha1.NodeQualification
}

// Name of the node.
func (m *Member) Name() string { return m.Node.Name }

// Plan is the plan that the profile wants of the node; nil when it has none.
func (m *Member) Plan() *plan.NodePlan {
	if m.Planned == nil {
		return nil
	}
	return m.Planned.Plan
}

// PlanHash is the hash of the plan that the node is to have; "" when it has none.
func (m *Member) PlanHash() string {
	if m.Plan() == nil {
		return ""
	}
	return m.Planned.Hash
}

// Current returns the agent's condition about the plan by which the node is judged. What an agent has said
// about another plan, or before the last boot, counts for nothing: then the condition is Unknown, and says what is awaited.
func (m *Member) Current(kind string) metav1.Condition {
	return CurrentCondition(m.Node, m.Report, m.Judged().Hash, kind)
}

// Status is the status of the agent's condition about the plan by which the node is judged.
func (m *Member) Status(kind string) metav1.ConditionStatus {
	if hash := m.Judged().Hash; hash != "" && m.Report.Status.VerifiedPlanHash == hash && IsOfBoot(m.Report, m.Node) {
		for i := range m.Report.Status.Conditions {
			if condition := &m.Report.Status.Conditions[i]; condition.Type == kind {
				return condition.Status
			}
		}
	}
	return metav1.ConditionUnknown
}

// Is reports whether the agent has found the condition to be True for the plan by which the node is judged.
func (m *Member) Is(kind string) bool { return m.Status(kind) == metav1.ConditionTrue }

// IsInForce reports whether the node has the plan that the profile wants of it.
func (m *Member) IsInForce() bool { return m.Plan() != nil && !m.IsPending() && m.IsSettled() }

// IsSettled reports whether the node had the plan by which it is judged in force when its agent renewed its heartbeat last.
// Nothing is under way on it, and a check that has failed has not been mended because the heartbeat is stale.
func (m *Member) IsSettled() bool {
	return m.Is(v1alpha1.ConditionApplied) || m.Current(v1alpha1.ConditionApplied).Reason == v1alpha1.ReasonHeartbeatStale
}

// WantedSpec is the spec that the LowLatencyNode of the member is to have.
func (m *Member) WantedSpec(profile string) v1alpha1.LowLatencyNodeSpec {
	judged := m.Judged()
	spec := v1alpha1.LowLatencyNodeSpec{
		Profile: profile, PlanHash: judged.Hash, PlanConfigMap: judged.ConfigMap, PlannedPools: m.plannedPools(),
		BypassPools: m.Pools.Names(), BypassNICs: m.claimed(), Qualification: m.Qualification,
	}
	if m.IsPending() {
		spec.PendingPlanHash = m.Planned.Hash
	}
	return spec
}

// PoolToKeep is the machine config pool in which the node stays until the platform moves it; "" for none. A node that
// comes from another profile is never in none on the way. One that carries the label of a machine config pool and of no
// profile was not put there by the operator.
func (m *Member) PoolToKeep() string {
	if m.Node.Labels[v1alpha1.LabelProfile] == "" {
		return ""
	}
	return m.Node.Labels[v1alpha1.LabelPool]
}

// plannedPools are the pools with which the plan was made by which the node is judged.
func (m *Member) plannedPools() []v1alpha1.PlannedPool {
	switch {
	case m.Plan() != nil && !m.IsPending():
		return m.Pools.Generations()
	case m.Report != nil:
		return m.Report.Spec.PlannedPools
	default:
		return nil
	}
}

// claimed is which pool has which NIC of the node.
func (m *Member) claimed() []v1alpha1.BypassNICClaim {
	pools := m.Pools.On(m.Report)
	if m.Planned == nil || m.Report == nil {
		return pools.recorded
	}
	return pools.Record(m.Planned.Claimed, m.Report.Status.Inventory)
}

// IsUpToDate reports whether writing the LowLatencyNode of a node would change nothing.
func IsUpToDate(report *v1alpha1.LowLatencyNode, spec v1alpha1.LowLatencyNodeSpec, node *corev1.Node) bool {
	return report != nil && equality.Semantic.DeepEqual(report.Spec, spec) && report.Labels[v1alpha1.LabelProfile] == spec.Profile &&
		slices.ContainsFunc(report.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == node.UID })
}

// HasInventory reports whether an agent has reported the hardware of its node.
func HasInventory(report *v1alpha1.LowLatencyNode) bool {
	return report != nil && report.Status.Inventory != nil
}

// CurrentCondition is the condition of the report of a node as far as it speaks of the plan with the hash and of the current
// boot.
func CurrentCondition(node *corev1.Node, report *v1alpha1.LowLatencyNode, planHash, kind string) metav1.Condition {
	unknown := func(reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: reason, Message: message}
	}
	switch {
	case !HasInventory(report):
		return unknown(v1alpha1.ReasonAwaitingInventory, "the agent has not reported an inventory yet")
	case !IsOfBoot(report, node):
		return unknown(v1alpha1.ReasonAwaitingVerification, "the agent has not looked at the node since its last boot yet")
	case planHash == "":
		return unknown(v1alpha1.ReasonAwaitingPlan, "there is no plan for the node")
	case report.Status.VerifiedPlanHash != planHash:
		return unknown(v1alpha1.ReasonAwaitingVerification, "the agent has not verified plan "+planHash+" yet")
	}
	for _, condition := range report.Status.Conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return unknown(v1alpha1.ReasonAwaitingVerification, "the agent has not reported "+kind+" yet")
}
