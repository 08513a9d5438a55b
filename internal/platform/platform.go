// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package platform is what the controllers know of the system that changes nodes: it takes an Intent, the
// plans and the nodes that are to have them, brings it to the nodes in steps, and says how far it is. What is
// known about one system only, such as OpenShift's machine-config operator, is in a package below this one.
package platform

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// Platform changes nodes. Both verbs take only the steps that are possible now and are called again
// whenever a watched object changes; neither blocks.
type Platform interface {
	// Roll brings the intent to the nodes.
	Roll(ctx context.Context, intent *Intent) (Outcome, error)
	// Return gives the nodes back and removes everything that Roll made.
	Return(ctx context.Context, intent *Intent) (Remainder, error)
	// Watches are the kinds whose changes may let the next step happen.
	Watches() []Watch
}

// Watch is a kind that a platform wants to hear of.
type Watch struct {
	// Object of the kind, empty.
	Object client.Object
	// Shared objects concern every profile. Others concern the profile that their label names.
	Shared bool
}

// Shape is one plan and the nodes that are to have it.
type Shape struct {
	// Hash of the plan.
	Hash string
	Plan *plan.NodePlan
	// Signature is the smallest topology signature of the nodes.
	Signature string
	// Nodes by name, ascending, at least one.
	Nodes []string
}

// Intent is what one profile wants of the platform.
type Intent struct {
	Profile *v1alpha1.LowLatencyNodeProfile
	// Shapes in ascending order of their hashes; empty while the profile is being deleted.
	Shapes []Shape
	// Nodes are all nodes of the cluster by name. They are shared with the cache: not to be changed.
	Nodes map[string]*corev1.Node
	// Selected are the names of the nodes that the profile's selector matches, ascending.
	Selected []string
	// Held are nodes that must not be changed, and why: their plan is impossible, two profiles select
	// them, or another profile is about to take them over.
	Held map[string]string
	// ReadOnly asks for the outcome without any write.
	ReadOnly bool
}

// Governs tells whether the profile's selector matches the node.
func (i *Intent) Governs(node string) bool {
	_, found := slices.BinarySearch(i.Selected, node)
	return found
}

// Phase says how far a pool is.
type Phase string

const (
	// PhaseInForce means that every node of the pool has what was rendered.
	PhaseInForce Phase = "InForce"
	// PhaseWriting means that the platform is taking in what was written; no node changes yet.
	PhaseWriting Phase = "Writing"
	// PhaseRolling means that nodes are being changed.
	PhaseRolling Phase = "Rolling"
	// PhaseStopped means that somebody else has paused the pool.
	PhaseStopped Phase = "Stopped"
	// PhaseHeld means that nothing is changed because the pool holds nodes that must not be.
	PhaseHeld Phase = "Held"
	// PhaseConflict means that nothing is applied because something else governs the nodes.
	PhaseConflict Phase = "Conflict"
	// PhaseFailed means that the platform reports a failure.
	PhaseFailed Phase = "Failed"
)

// Pool is how far one pool is.
type Pool struct {
	Name  string
	Phase Phase
	// Message is a sentence that names the pool and what it waits for or suffers from; "" when in force.
	Message string
}

// Conflict is something that only its owner can resolve.
type Conflict struct {
	// Reason is ReasonPoolConflict, ReasonPerformanceProfileConflict or ReasonPlatformFailed.
	Reason string
	// Node is the name of a node concerned; "" when it is about more than nodes.
	Node string
	// Message is a sentence that names the objects and the way out.
	Message string
}

// Outcome is how far the platform is with an intent.
type Outcome struct {
	// PoolOf is the pool of each shape by hash.
	PoolOf map[string]string
	// Pools in ascending order of their names.
	Pools     []Pool
	Conflicts []Conflict
	// RetryAfter is when to look again although no watched object changed; 0 for never.
	RetryAfter time.Duration
}

// Remainder is what still has to be given back or removed.
type Remainder struct {
	// Nodes that still have what the platform made, ascending.
	Nodes []string
	// Objects that still exist, as "MachineConfigPool trading-1a2b3c4d", ascending.
	Objects []string
	// Waiting says for what; "" when nothing is left.
	Waiting string
	// RetryAfter is when to look again although no watched object changed; 0 for never.
	RetryAfter time.Duration
}

// Done tells whether nothing is left.
func (r Remainder) Done() bool { return len(r.Nodes) == 0 && len(r.Objects) == 0 && r.Waiting == "" }
