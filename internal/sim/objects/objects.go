// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package objects builds the objects of a simulated fleet for tests: profiles, pools, nodes and what agents report.
package objects

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// Profile builds profiles.
type Profile struct {
	v1alpha1.LowLatencyNodeProfile
}

// MakeProfile makes a profile that selects nodes by the label role=<name>.
func MakeProfile(name string) *Profile {
	p := &Profile{}
	p.Name, p.UID, p.Generation = name, types.UID("uid-"+name), 1
	p.Spec.NodeSelector.MatchLabels = v1alpha1.Labels{"role": v1alpha1.LabelValue(name)}
	return p
}

// Selecting sets the labels of the nodes.
func (p *Profile) Selecting(labels v1alpha1.Labels) *Profile {
	p.Spec.NodeSelector.MatchLabels = labels
	return p
}

// Paused pauses the rollout.
func (p *Profile) Paused() *Profile {
	p.Spec.Rollout.State = v1alpha1.RolloutPaused
	return p
}

// Gated sets the gate to Taint.
func (p *Profile) Gated() *Profile {
	p.Spec.Verification.Gate = v1alpha1.GateTaint
	return p
}

// Obj returns the object.
func (p *Profile) Obj() *v1alpha1.LowLatencyNodeProfile { return p.DeepCopy() }

// MakeNode makes a node with labels, given as key, value, key, value.
func MakeNode(name string, labels ...string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{}}}
	for i := 0; i+1 < len(labels); i += 2 {
		node.Labels[labels[i]] = labels[i+1]
	}
	return node
}

// Report builds LowLatencyNodes.
type Report struct {
	v1alpha1.LowLatencyNode
}

// MakeReport makes the LowLatencyNode of a node of a profile. Its agent has said nothing yet.
func MakeReport(node, profile string) *Report {
	r := &Report{}
	r.Name, r.Labels = node, map[string]string{v1alpha1.LabelProfile: profile}
	r.OwnerReferences = []metav1.OwnerReference{{Kind: "Node", Name: node, UID: types.UID("uid-" + node)}}
	r.Spec.Profile = profile
	return r
}

// Inventory makes the agent report hardware.
func (r *Report) Inventory(inventory *v1alpha1.Inventory) *Report {
	r.Status.Inventory = inventory
	return r
}

// Verified makes the agent speak of a plan. The conditions Applied, DeJittered and NUMAAligned have the
// statuses T, F or U, in this order.
func (r *Report) Verified(hash, statuses string) *Report {
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

// Obj returns the object.
func (r *Report) Obj() *v1alpha1.LowLatencyNode { return r.DeepCopy() }

// InventoryOf is what the agent of a machine reports.
func InventoryOf(tb testing.TB, machine hosttree.Machine) *v1alpha1.Inventory {
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
