// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package enactment decides how plans come to ordinary hosts: which node has its turn, and what is done on a node that has it.
// Everything is decided from what is observed now, from what is on the API server and from what the guards report: an operator
// that was killed at any moment goes on where the nodes are. It is pure.
package enactment

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
)

// Action is what becomes of a host.
type Action string

const (
	// Enact brings a plan to the host.
	Enact Action = "Enact"
	// Remove brings the host back to what it was before all plans.
	Remove Action = "Remove"
)

// Wanted is what is to become of a node.
type Wanted struct {
	Action Action
	// PlanHash of the plan; "" for Remove.
	PlanHash string
	// Refused says why the plan cannot be written on this host; "" when it can.
	Refused string
}

// Turn is what the operator has written down about a node that it changes.
type Turn struct {
	// Since is when the turn began.
	Since time.Time
}

// Issued is the instruction that is there for a node.
type Issued struct {
	Number   int64
	Action   Action
	PlanHash string
	// Reboots tells that the guard may reboot the host.
	Reboots bool
	Since   time.Time
	// Delivered tells that the pod which hands it over has run, and has not said that it could not: the guard may have taken it, and says so later.
	Delivered bool
	// Trouble is what that pod said when it failed last; "" where it has not.
	Trouble string
	// IsOutdated tells that it was signed with another key than the operator has now.
	IsOutdated bool
}

// Drain is what is left on a node that pods are evicted from.
type Drain struct {
	// Left are the pods that are to go and are still there, as namespace/name.
	Left []string
	// Blocked says of those that may not be evicted now why.
	Blocked []string
}

// Node is what is known of a node now.
type Node struct {
	Name string
	// Profile that governs the node; "" for none.
	Profile string
	// IsControlPlane nodes are changed one at a time.
	IsControlPlane bool
	// IsReady is what the kubelet says, and IsReporting that the agent has looked at the node in its present boot.
	IsReady, IsReporting bool
	// Unrenewed says of a node that has its turn why nothing tells that its kubelet lives now, which said last that it is ready: it is not
	// ready then. "" for any other node.
	Unrenewed string
	// IsCordoned tells that nobody schedules pods there, IsOurCordon that the operator has done it.
	IsCordoned, IsOurCordon bool
	// IsChanged tells that the operator has something on the node, or has had it and does not know that it is gone. IsUnheard tells of
	// such a node that no agent says what has become of that, not even in a report from before.
	IsChanged, IsUnheard bool
	// IsHeld tells that the operator keeps others from replacing the node.
	IsHeld bool
	// IsGated tells that pods are kept off because the node is not verified.
	IsGated bool
	// IsApplied tells that the agent has found the wanted plan on the running node.
	IsApplied bool
	// Lock says who else works on the node; "" for nobody.
	Lock string
	// Wanted is nil when the node is to stay as it is.
	Wanted *Wanted
	// Reported is what the guard says; nil where there is none.
	Reported *v1alpha1.NodeEnactment
	// Retry is the number of the failed instruction after which somebody wants another attempt; 0 for none.
	Retry int64
	// Turn and Issued are nil when there is none.
	Turn   *Turn
	Issued *Issued
	// Drain is nil when nobody has looked.
	Drain *Drain
	// HasCurrentKey tells that the guard takes instructions of the operator's key.
	HasCurrentKey bool
	// HasFormerKey tells that the guard takes instructions of a key that the operator had before.
	HasFormerKey bool
	// Estranged says why the guard takes no instructions of the operator; "" when it does, and where there is none.
	Estranged string
}

// report is what the guard says, an empty one where there is none.
func (n *Node) report() v1alpha1.NodeEnactment {
	if n.Reported == nil {
		return v1alpha1.NodeEnactment{}
	}
	return *n.Reported
}

// isWorking reports whether the guard is changing the host.
func (n *Node) isWorking() bool {
	return slices.Contains([]v1alpha1.EnactmentPhase{
		v1alpha1.EnactmentReceived, v1alpha1.EnactmentWritten, v1alpha1.EnactmentArmed, v1alpha1.EnactmentVerifying, v1alpha1.EnactmentTakingBack,
	}, n.report().Phase)
}

// isUnreadable reports whether the agent cannot read what the guard says: what is known of it is from before, and neither that it works nor that it
// does not.
func (n *Node) isUnreadable() bool { return n.report().Phase == v1alpha1.EnactmentUnreadable }

// unread says so, with what the agent says about it.
func (n *Node) unread() string {
	return "its agent cannot read what the guard says: " + strings.TrimSuffix(n.report().Message, ".")
}

// isByHand reports whether somebody changes the host with the guard, and not the operator.
func (n *Node) isByHand() bool { return n.isWorking() && n.report().Number == 0 }

// isUnclaimed tells of a node that is done that an instruction of the operator has put its plan in force, and that the Node has nothing that says so: it was deleted and
// made anew.
func (n *Node) isUnclaimed() bool {
	return !n.IsChanged && n.HasCurrentKey && n.Wanted != nil && n.Wanted.Action == Enact &&
		n.report().Number != 0 && n.report().InForcePlanHash != ""
}

// isDone reports whether the host is what it is to be. A plan that was brought to it by other means is left to those.
func (n *Node) isDone() bool {
	report := n.report()
	switch {
	case n.Wanted == nil || n.isWorking() || n.isUnreadable():
		return n.Wanted == nil
	case n.Wanted.Action == Remove:
		// A node of which nobody says anything may have a guard all the same.
		return n.IsReporting && (n.Reported == nil || report.Phase == v1alpha1.EnactmentRemoved)
	case report.InForcePlanHash != "":
		return report.InForcePlanHash == n.Wanted.PlanHash
	default:
		return n.IsApplied && report.Number == 0
	}
}

// hasFailed reports whether what is wanted was tried and did not come into force, so that trying it again is of no use.
func (n *Node) hasFailed() bool {
	return n.Wanted != nil && !n.isDone() && n.report().Number != n.Retry && n.hasFailedWith(n.Wanted.PlanHash)
}

// hasFailedWith reports whether the last thing that was tried is a plan, which did not come into force.
func (n *Node) hasFailedWith(planHash string) bool {
	report := n.report()
	return report.PlanHash == planHash && report.Number != 0 && instruction.IsFailure(instruction.Phase(report.Phase), instruction.Reason(report.Reason))
}

// isRetry reports whether the next instruction is another attempt at what has failed.
func (n *Node) isRetry() bool { return n.Retry != 0 && n.Retry == n.report().Number }

// needsReboot reports whether the host reboots, as far as is known. A plan is tried without at first, on a node whose pods go on: the
// guard refuses one that needs a reboot before it writes anything, and finds first whatever else keeps the plan from the host, so that no
// pod is evicted for a plan that cannot be written there. A host that is given back was changed already, unless its only
// plan was refused or has been taken back: the guard alone leaves such a host. Another attempt goes to an empty node at once: its number is that of the
// last instruction, and would not be any more after such a refusal.
func (n *Node) needsReboot() bool {
	report := n.report()
	return n.Wanted.Action == Remove && !n.isAsBefore() || n.isRetry() || report.PlanHash == n.Wanted.PlanHash &&
		report.Phase == v1alpha1.EnactmentRefused && report.Reason == v1alpha1.ReasonRebootForbidden
}

// isAsBefore reports whether the guard says that nothing of a plan is on the host: no plan is in force, and the last one was taken back, with the reboot
// that it took, or refused. One that was refused because it needs a reboot is followed by the turn in which it gets one.
func (n *Node) isAsBefore() bool {
	report := n.report()
	isRefused := report.Phase == v1alpha1.EnactmentRefused && report.Reason != v1alpha1.ReasonRebootForbidden
	return report.InForcePlanHash == "" && (report.Phase == v1alpha1.EnactmentTakenBack || isRefused)
}

// isAnswered reports whether the guard has taken the instruction, or refused it. One that was removed remembers none.
func (n *Node) isAnswered() bool {
	switch report := n.report(); {
	case n.Issued == nil:
		return false
	case n.Issued.Action == Remove && n.isDone() || report.Number >= n.Issued.Number:
		return true
	default:
		return report.Refusal != nil && report.Refusal.Number == n.Issued.Number && report.Refusal.Reason == v1alpha1.ReasonReplayed
	}
}

// refusal says why the guard has not taken the instruction that is there; "" when nothing tells that it has refused it.
func (n *Node) refusal() string {
	report := n.report()
	refusal := report.Refusal
	if refusal == nil && report.Phase == v1alpha1.EnactmentRefused && report.Number == 0 {
		refusal = &v1alpha1.EnactmentRefusal{Reason: report.Reason, Message: report.Message}
	}
	if refusal == nil || refusal.Number != 0 && refusal.Number != n.Issued.Number {
		return ""
	}
	return fmt.Sprintf("the guard refuses what it was handed (%s): %s", refusal.Reason, refusal.Message)
}

// isMeant reports whether the instruction is the one that the node is to have.
func (n *Node) isMeant() bool {
	return n.Wanted != nil && n.Wanted.Refused == "" && n.Estranged == "" && !n.Issued.IsOutdated && n.Issued.Action == n.Wanted.Action && n.Issued.PlanHash == n.Wanted.PlanHash &&
		(n.Issued.Reboots || !n.needsReboot())
}

// mayWithdraw reports whether the guard will not act on the instruction any more once it is gone. A guard is heard with a delay, so
// that one which was reached and says nothing may be about to reboot the host. One that takes instructions of another key than this was
// signed with has refused it, or will.
func (n *Node) mayWithdraw() bool {
	return !n.Issued.Delivered || n.refusal() != "" || n.Estranged != "" || n.Issued.IsOutdated && n.HasCurrentKey
}

// isBegun reports whether the operator is changing the node. Who has deleted the note of it does not stop that.
func (n *Node) isBegun() bool {
	return n.Turn != nil || n.Issued != nil && !n.isToldOfKey() || n.IsOurCordon || n.IsHeld || n.isWorking() && !n.isByHand()
}

// isUnavailable reports whether pods cannot count on the node because of the operator. What a guard does of which nothing is read may be anything.
func (n *Node) isUnavailable() bool {
	return n.isBegun() || n.isUnreadable() && n.Profile != "" || n.IsGated && n.report().InForcePlanHash != "" && n.isDone()
}
