// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// PlanReference names a plan; the zero value names none.
type PlanReference struct {
	// Hash of the plan.
	Hash string
	// ConfigMap is the name of the ConfigMap that holds it.
	ConfigMap string
}

// InForce is the plan that a node has and is judged by, as the operator has recorded it in its LowLatencyNode. A new plan
// takes its place when the platform has told the node to take it, and not before: a spec that cannot be met, a paused
// rollout and a node that waits for its turn change nothing here.
func InForce(report *v1alpha1.LowLatencyNode) PlanReference {
	if report == nil {
		return PlanReference{}
	}
	return PlanReference{Hash: report.Spec.PlanHash, ConfigMap: report.Spec.PlanConfigMap}
}

// Judged is the plan by which the node is judged: the wanted one when the node's turn has come or when it has none in
// force, else the one in force.
func (m *Member) Judged() PlanReference {
	inForce := InForce(m.Report)
	switch {
	case m.Plan() == nil:
		return inForce
	case m.Turned || inForce.Hash == "":
		return PlanReference{Hash: m.Planned.Hash, ConfigMap: m.Planned.ConfigMap}
	default:
		return inForce
	}
}

// IsPending reports whether the node keeps another plan than the wanted one until its turn comes.
func (m *Member) IsPending() bool { return m.Plan() != nil && m.Judged().Hash != m.Planned.Hash }

// TakeTurns notes which nodes the platform has told to take their plan.
func (d *ProfileDecision) TakeTurns(turned map[string]bool) {
	for i := range d.Members {
		d.Members[i].Turned = turned[d.Members[i].Name()]
	}
}
