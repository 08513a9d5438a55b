// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// member is a node that the profile selects, and what was decided for it.
type member struct {
	node *corev1.Node
	// report is nil until the operator has created the LowLatencyNode.
	report *v1alpha1.LowLatencyNode
	// rivals are the other profiles that select the node, ascending. A node with rivals is left as it is.
	rivals []string
	// pools are the BypassNICPools that select the node.
	pools *poolSet
	// planned is nil until the agent has reported an inventory, and for a node with rivals.
	planned *planned
}

func (m *member) name() string { return m.node.Name }

// plan is the plan of the node; nil when it has none.
func (m *member) plan() *plan.NodePlan {
	if m.planned == nil {
		return nil
	}
	return m.planned.plan
}

// planHash is the hash of the plan that the node is to have; "" when it has none.
func (m *member) planHash() string {
	if m.plan() == nil {
		return ""
	}
	return m.planned.hash
}

// decision is what the profile makes of the world.
type decision struct {
	// members in ascending order of their names.
	members []member
	intent  *fleet.Intent
}

// decide sorts the nodes, plans for them and groups them by plan.
func decide(w *profileWorld, plans *planner) *decision {
	d := &decision{intent: &fleet.Intent{
		Profile:  w.profile,
		Nodes:    w.nodes,
		Held:     map[string]string{},
		ReadOnly: w.profile.Spec.Rollout.State == v1alpha1.RolloutPaused,
	}}
	pools := newPoolIndex(w.pools)
	for _, node := range w.nodes {
		rivals := rivals(w.others, node)
		switch {
		case selectsNode(w.profile, node):
			d.members = append(d.members, member{
				node: node, report: w.reports[node.Name], rivals: rivals, pools: pools.of(node),
			})
		case len(rivals) > 0 && node.Labels[v1alpha1.LabelProfile] == w.profile.Name:
			d.intent.Held[node.Name] = fmt.Sprintf("profile %s is about to take it over", rivals[0])
		}
	}
	slices.SortFunc(d.members, func(a, b member) int { return cmp.Compare(a.name(), b.name()) })
	d.planMembers(w.profile, plans)
	d.intent.Shapes = shapes(d.members)
	return d
}

// decideReturn sorts the nodes of a profile that is being deleted. Nothing is planned; a node that another
// profile selects is left to that profile.
func decideReturn(w *profileWorld) *decision {
	d := &decision{intent: &fleet.Intent{Profile: w.profile, Nodes: w.nodes, Held: map[string]string{}}}
	for _, node := range w.nodes {
		ours := node.Labels[v1alpha1.LabelProfile] == w.profile.Name
		if rivals := rivals(w.others, node); ours && len(rivals) > 0 {
			d.intent.Held[node.Name] = fmt.Sprintf("profile %s is about to take it over", rivals[0])
		}
	}
	return d
}

// rivals are the profiles that select the node, ascending.
func rivals(others []*v1alpha1.LowLatencyNodeProfile, node *corev1.Node) []string {
	var names []string
	for _, other := range others {
		if selectsNode(other, node) {
			names = append(names, other.Name)
		}
	}
	slices.Sort(names)
	return names
}

func (d *decision) planMembers(profile *v1alpha1.LowLatencyNodeProfile, plans *planner) {
	d.intent.Selected = make([]string, 0, len(d.members))
	for i := range d.members {
		m := &d.members[i]
		d.intent.Selected = append(d.intent.Selected, m.name())
		switch {
		case len(m.rivals) > 0:
			d.intent.Held[m.name()] = fmt.Sprintf("profile %s selects it, too", strings.Join(m.rivals, ", "))
		case !hasInventory(m.report):
			d.intent.Held[m.name()] = "its agent has not reported an inventory yet"
		default:
			m.planned = plans.plan(profile, m.pools, m.name(), m.report.Status.Inventory)
			if m.plan() == nil {
				d.intent.Held[m.name()] = "the profile cannot be met on it"
			}
		}
	}
}

func hasInventory(report *v1alpha1.LowLatencyNode) bool {
	return report != nil && report.Status.Inventory != nil
}

// shapes groups the members that have a plan by its hash.
func shapes(members []member) []fleet.Shape {
	var all []fleet.Shape
	at := map[string]int{}
	for i := range members {
		m := &members[i]
		hash := m.planHash()
		if hash == "" {
			continue
		}
		position, found := at[hash]
		if !found {
			position = len(all)
			at[hash] = position
			all = append(all, fleet.Shape{Hash: hash, Plan: m.planned.plan, Signature: m.planned.signature})
		}
		shape := &all[position]
		shape.Nodes = append(shape.Nodes, m.name())
		shape.Signature = min(shape.Signature, m.planned.signature)
	}
	slices.SortFunc(all, func(a, b fleet.Shape) int { return cmp.Compare(a.Hash, b.Hash) })
	return all
}

// current returns the agent's condition about the plan that the node is to have now. What an agent has said
// about another plan counts for nothing: then the condition is Unknown, and says what is awaited.
func (m *member) current(kind string) metav1.Condition {
	return currentCondition(m.report, m.planHash(), kind)
}

// status is the status of the agent's condition about the plan that the node is to have now.
func (m *member) status(kind string) metav1.ConditionStatus {
	if hash := m.planHash(); hash != "" && m.report.Status.VerifiedPlanHash == hash {
		for i := range m.report.Status.Conditions {
			if condition := &m.report.Status.Conditions[i]; condition.Type == kind {
				return condition.Status
			}
		}
	}
	return metav1.ConditionUnknown
}

// is tells whether the agent has found the condition to be True for the current plan.
func (m *member) is(kind string) bool { return m.status(kind) == metav1.ConditionTrue }

// isInForce tells whether the node has had its plan in force when its agent was heard last. Nothing is under way on it, and
// a check that has failed has not been mended because the agent is silent.
func (m *member) isInForce() bool {
	return m.is(v1alpha1.ConditionApplied) || m.current(v1alpha1.ConditionApplied).Reason == v1alpha1.ReasonAgentSilent
}

// currentCondition is the condition of a report as far as it speaks of the plan with the hash.
func currentCondition(report *v1alpha1.LowLatencyNode, planHash, kind string) metav1.Condition {
	unknown := func(reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: reason, Message: message}
	}
	switch {
	case !hasInventory(report):
		return unknown(v1alpha1.ReasonAwaitingInventory, "the agent has not reported an inventory yet")
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
