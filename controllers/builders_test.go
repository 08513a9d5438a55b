// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// profileWrapper builds profiles.
type profileWrapper struct {
	v1alpha1.LowLatencyNodeProfile
}

// makeProfile makes a profile that selects nodes by the label role=<name>.
func makeProfile(name string) *profileWrapper {
	p := &profileWrapper{}
	p.Name, p.UID, p.Generation = name, types.UID("uid-"+name), 1
	p.Spec.NodeSelector.MatchLabels = v1alpha1.Labels{"role": v1alpha1.LabelValue(name)}
	return p
}

func (p *profileWrapper) selecting(labels v1alpha1.Labels) *profileWrapper {
	p.Spec.NodeSelector.MatchLabels = labels
	return p
}

func (p *profileWrapper) paused() *profileWrapper {
	p.Spec.Rollout.State = v1alpha1.RolloutPaused
	return p
}

func (p *profileWrapper) gated() *profileWrapper {
	p.Spec.Verification.Gate = v1alpha1.GateTaint
	return p
}

func (p *profileWrapper) obj() *v1alpha1.LowLatencyNodeProfile { return p.DeepCopy() }

// makeNode makes a node with labels, given as key, value, key, value.
func makeNode(name string, labels ...string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{}}}
	for i := 0; i+1 < len(labels); i += 2 {
		node.Labels[labels[i]] = labels[i+1]
	}
	return node
}

// reportWrapper builds LowLatencyNodes.
type reportWrapper struct {
	v1alpha1.LowLatencyNode
}

func makeReport(node, profile string) *reportWrapper {
	r := &reportWrapper{}
	r.Name, r.Labels = node, map[string]string{v1alpha1.LabelProfile: profile}
	r.OwnerReferences = []metav1.OwnerReference{{Kind: "Node", Name: node, UID: types.UID("uid-" + node)}}
	r.Spec.Profile = profile
	return r
}

func (r *reportWrapper) inventory(inventory *v1alpha1.Inventory) *reportWrapper {
	r.Status.Inventory = inventory
	return r
}

// verified makes the agent speak of a plan. The conditions Applied, DeJittered and NUMAAligned have the
// statuses T, F or U, in this order.
func (r *reportWrapper) verified(hash, statuses string) *reportWrapper {
	r.Spec.PlanHash, r.Status.VerifiedPlanHash = hash, hash
	if r.Status.Inventory == nil {
		r.Status.Inventory = &v1alpha1.Inventory{Hash: "inventory", KernelCommandLine: "root=/dev/sda"}
	}
	for i, kind := range []string{v1alpha1.ConditionApplied, v1alpha1.ConditionDeJittered, v1alpha1.ConditionNUMAAligned} {
		condition := map[byte]metav1.Condition{
			'T': {Type: kind, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonVerified, Message: "proven"},
			'F': {Type: kind, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonChecksFailed, Message: kind + " is disproven by IRQ 142"},
			'U': {Type: kind, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonChecksUnknown, Message: kind + " has no facts"},
		}[statuses[i]]
		r.Status.Conditions = append(r.Status.Conditions, condition)
	}
	return r
}

func (r *reportWrapper) obj() *v1alpha1.LowLatencyNode { return r.DeepCopy() }

// makePlanned makes the outcome of planning that has a plan.
func makePlanned(hash string) *planned {
	return &planned{
		plan: &plan.NodePlan{Profile: "trading", KernelArguments: []plan.Argument{{Text: "nohz=on"}}},
		hash: hash, configMap: "trading-" + hash, signature: "signature",
	}
}

// impossiblePlan makes the outcome of planning that has none.
func impossiblePlan() *planned {
	return &planned{findings: []plan.Finding{
		{Rule: "plan.turbo", Severity: v1alpha1.SeverityLow, Field: "spec.power.turbo", Message: "doubtful."},
		{
			Rule: "plan.cpus-exist", Severity: v1alpha1.SeverityCritical, Field: "spec.cpus", Message: "CPU 99 does not exist.",
			Remedy: "Name one that does.",
		},
	}}
}

// verifiedMember makes a member whose agent has verified the plan that it is to have.
func verifiedMember(name, hash, statuses string) member {
	return member{node: makeNode(name), report: makeReport(name, "trading").verified(hash, statuses).obj(), planned: makePlanned(hash)}
}

// inventoryOf is what the agent of a machine reports.
func inventoryOf(tb testing.TB, machine hosttree.Machine) *v1alpha1.Inventory {
	tb.Helper()
	root := tb.TempDir()
	if err := machine.Write(root); err != nil {
		tb.Fatal(err)
	}
	opened, err := host.Open(root)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() {
		if err := opened.Close(); err != nil {
			tb.Error(err)
		}
	}()
	facts, err := opened.Read(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	hardware, err := topology.FromFacts(facts)
	if err != nil {
		tb.Fatal(err)
	}
	return topology.Inventory(facts, hardware)
}
