// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package enactment

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// goOn decides about a node that is begun.
func (n *Node) goOn(now time.Time) (Step, State) {
	step, stage, message := n.next(now)
	step.Node = n.Name
	if stage == StageChanging && n.Turn != nil && now.Sub(n.Turn.Since) >= turnLimit {
		stage, message = StageLate, message+", for longer than it should"
	}
	return step, State{Node: n.Name, Stage: stage, Message: message}
}

func (n *Node) next(now time.Time) (Step, Stage, string) {
	switch {
	case n.Turn == nil:
		return Step{Verb: TakeTurn}, StageChanging, "its turn goes on"
	case n.isWorking():
		return Step{}, StageChanging, n.working()
	case n.isUnreadable():
		return n.stay()
	case n.Issued != nil:
		return n.pursue(now)
	case n.Lock != "":
		return Step{}, StageChanging, n.Lock + "; it is left alone meanwhile"
	case n.isDone() || n.hasFailed() || n.Wanted.Refused != "" || n.Estranged != "":
		return n.finish()
	default:
		return n.change(now)
	}
}

// pursue goes on with an instruction.
func (n *Node) pursue(now time.Time) (Step, Stage, string) {
	switch {
	case n.isAnswered():
		return Step{Verb: Withdraw}, StageChanging, "the guard has answered"
	case !n.mayWithdraw():
	case !n.isMeant():
		return Step{Verb: Withdraw}, StageChanging, "the instruction is withdrawn, because another is to take its place"
	case n.Lock != "":
		return Step{Verb: Withdraw}, StageChanging, n.Lock + "; the instruction is withdrawn"
	}
	return n.handOver(now)
}

// stay keeps everything as it is while nothing is read of the guard, but for an instruction that has not got to it and is not to.
func (n *Node) stay() (Step, Stage, string) {
	step := Step{}
	if n.Issued != nil && !n.Issued.Delivered && (!n.isMeant() || n.Lock != "") {
		step.Verb = Withdraw
	}
	return step, StageLate, n.unread()
}

// change begins what is wanted.
func (n *Node) change(now time.Time) (Step, Stage, string) {
	if n.needsReboot() {
		return n.empty(now)
	}
	if n.Wanted.Action == Remove {
		return n.instruct(now), StageChanging, "its guard is to leave, without a reboot: no plan is in force on it"
	}
	return n.instruct(now), StageChanging, "it is to have the plan without a reboot, if it can"
}

// working says how far the guard is.
func (n *Node) working() string {
	return map[v1alpha1.EnactmentPhase]string{
		v1alpha1.EnactmentReceived:   "the guard has the instruction",
		v1alpha1.EnactmentWritten:    "the guard writes and verifies it",
		v1alpha1.EnactmentArmed:      "it reboots to try the plan",
		v1alpha1.EnactmentTakingBack: "the plan is taken back",
		v1alpha1.EnactmentVerifying:  "it has started with the plan, which is being verified",
	}[n.report().Phase]
}

// instruct is a new instruction. Its number is above all that the guard can have seen, also where nothing is left of what was
// written down about them: the time in seconds grows, and one more than the last does where a clock was set back.
func (n *Node) instruct(now time.Time) Step {
	return Step{
		Verb: Instruct, Number: max(n.report().Number+1, now.Unix()), Reboots: n.needsReboot(),
		Again: n.isRetry(),
	}
}

// handOver waits for the guard.
func (n *Node) handOver(now time.Time) (Step, Stage, string) {
	step := Step{Verb: HandOver}
	refusal := n.refusal()
	switch {
	case refusal != "":
		return step, StageLate, refusal
	case n.Issued.Trouble != "" && !n.Issued.Delivered:
		return step, StageLate, "the guard cannot be handed its instruction: " + n.Issued.Trouble
	case now.Sub(n.Issued.Since) >= handOverLimit:
		return step, StageLate, "the guard has not taken its instruction: " +
			cmp.Or(n.Issued.Trouble, "see the pod that hands it over, in the namespace of the agents")
	default:
		return step, StageChanging, "the instruction is handed to the guard"
	}
}

// empty makes a node ready to reboot.
func (n *Node) empty(now time.Time) (Step, Stage, string) {
	switch {
	case !n.IsCordoned:
		return Step{Verb: Cordon}, StageChanging, "it is cordoned"
	case n.Drain == nil:
		return Step{Verb: Evict}, StageChanging, "its pods are evicted"
	case len(n.Drain.Blocked) > 0 && now.Sub(n.Turn.Since) >= blockedLimit:
		return Step{Verb: Evict}, StageBlocked, "pods may not be evicted: " + some(n.Drain.Blocked)
	case len(n.Drain.Left)+len(n.Drain.Blocked) > 0:
		return Step{Verb: Evict}, StageChanging, "its pods are evicted: " + some(append(n.Drain.Blocked, n.Drain.Left...))
	default:
		return n.instruct(now), StageChanging, "it is empty"
	}
}

// finish ends the turn. A node that has rebooted takes pods again when its kubelet is ready and its agent has looked at it.
func (n *Node) finish() (Step, Stage, string) {
	stage, message := StageChanging, "its turn ends"
	if n.hasFailed() {
		stage, message = StageFailed, n.failure()
	}
	isEnacted := n.Wanted != nil && n.Wanted.Action == Enact && n.isDone()
	switch {
	case !n.IsReady:
		return Step{}, stage, whileAwaiting(stage, message, cmp.Or(n.Unrenewed, "its kubelet is not ready yet"))
	case !n.IsReporting:
		return Step{}, stage, whileAwaiting(stage, message, "its agent has not looked at it since it has rebooted")
	case isEnacted && !n.IsApplied:
		return Step{}, stage, "its agent has not found the plan on it yet"
	case n.IsOurCordon || n.IsHeld:
		return Step{Verb: Uncordon}, stage, message
	default:
		return Step{Verb: EndTurn}, stage, message
	}
}

// whileAwaiting is the message of a turn that ends once something has happened. Of a node that has failed, that comes after what has failed.
func whileAwaiting(stage Stage, message, awaited string) string {
	if stage == StageFailed {
		return message + "; " + awaited
	}
	return awaited
}

// some are the first of many.
func some(texts []string) string {
	const shown = 3
	if more := len(texts) - shown; more > 0 {
		return strings.Join(texts[:shown], "; ") + fmt.Sprintf("; and %d more", more)
	}
	return strings.Join(texts, "; ")
}
