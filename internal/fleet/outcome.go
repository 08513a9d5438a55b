// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import "time"

// Phase says how far a group of nodes is.
type Phase string

const (
	// PhaseInForce means that every node of the group has what was rendered.
	PhaseInForce Phase = "InForce"
	// PhaseWriting means that the platform is taking in what was written; no node changes yet.
	PhaseWriting Phase = "Writing"
	// PhaseQueued means that the group is ready to change nodes, and waits until fewer are unavailable elsewhere.
	PhaseQueued Phase = "Queued"
	// PhaseRolling means that nodes are being changed.
	PhaseRolling Phase = "Rolling"
	// PhaseStopped means that somebody else has paused the group.
	PhaseStopped Phase = "Stopped"
	// PhaseHeld means that nothing is changed because the group holds nodes that must not be.
	PhaseHeld Phase = "Held"
	// PhaseConflict means that nothing is applied because something else governs the nodes.
	PhaseConflict Phase = "Conflict"
	// PhaseFailed means that the platform reports a failure.
	PhaseFailed Phase = "Failed"
)

// Group is how far one group of nodes is that the platform changes together. On OpenShift it is a machine config pool.
type Group struct {
	Name  string
	Phase Phase
	// Reason of a failure is one of the API; "" for ReasonPlatformFailed.
	Reason string
	// Message is a sentence that names the group and what it waits for or suffers from; "" when in force.
	Message string
}

// Conflict is something that only its owner can resolve.
type Conflict struct {
	// Reason is ReasonMachineConfigPoolConflict, ReasonPerformanceProfileConflict, ReasonRuntimeClassConflict,
	// ReasonObjectConflict or ReasonPlatformFailed.
	Reason string
	// Node is the name of a node concerned; "" when it is about more than nodes.
	Node string
	// Message is a sentence that names the objects and the way out.
	Message string
}

// Outcome is how far the platform is with an intent.
type Outcome struct {
	// GroupOf is the name of the group of each shape by hash.
	GroupOf map[string]string
	// Turned are those of the pending nodes of the intent that the platform has told to take their plan, by name.
	Turned map[string]bool
	// Returning are the nodes that were released and still have something of the platform's, ascending.
	Returning []string
	// Groups in ascending order of their names.
	Groups    []Group
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

// Done reports whether nothing is left.
func (r Remainder) Done() bool { return len(r.Nodes) == 0 && len(r.Objects) == 0 && r.Waiting == "" }
