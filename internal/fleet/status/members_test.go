// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package status

import (
	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

// makePlanned makes the outcome of planning that has a plan.
func makePlanned(hash string) *fleet.Planned {
	return &fleet.Planned{
		Plan: &plan.NodePlan{Profile: "trading", KernelArguments: []plan.Argument{{Text: "nohz=on"}}},
		Hash: hash, ConfigMap: "trading-" + hash, Signature: "signature",
	}
}

// impossiblePlan makes the outcome of planning that has none.
func impossiblePlan() *fleet.Planned {
	return &fleet.Planned{Findings: []plan.Finding{
		{Rule: "plan.turbo", Severity: v1alpha1.SeverityLow, Field: "spec.power.turbo", Message: "doubtful."},
		{
			Rule: "plan.cpus-exist", Severity: v1alpha1.SeverityCritical, Field: "spec.cpus", Message: "CPU 99 does not exist.",
			Remedy: "Name one that does.",
		},
	}}
}

// verifiedMember makes a member whose agent has verified the plan that it is to have.
func verifiedMember(name, hash, statuses string) fleet.Member {
	return fleet.Member{Node: objects.MakeNode(name), Report: objects.MakeReport(name, "trading").Verified(hash, statuses).Obj(), Planned: makePlanned(hash)}
}

// pendingMember makes a member that has proven one plan and waits for its turn for another.
func pendingMember(name, inForce, wanted string) fleet.Member {
	m := verifiedMember(name, inForce, "TTT")
	m.Planned = makePlanned(wanted)
	return m
}
