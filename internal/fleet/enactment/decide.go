// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package enactment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// Verb is something that the operator does about a node.
type Verb string

const (
	// TakeTurn notes that the node is being changed, and keeps others from replacing it. Everything else comes after it.
	TakeTurn Verb = "TakeTurn"
	// Cordon keeps new pods off the node, and notes that it was the operator.
	Cordon Verb = "Cordon"
	// Evict asks the pods to go, once.
	Evict Verb = "Evict"
	// Instruct puts a signed instruction there, and a pod that hands it to the guard.
	Instruct Verb = "Instruct"
	// HandOver sees to it that there is a pod that hands the instruction to the guard.
	HandOver Verb = "HandOver"
	// Withdraw removes the instruction and the pod.
	Withdraw Verb = "Withdraw"
	// Uncordon lets pods come again, and others replace the node.
	Uncordon Verb = "Uncordon"
	// EndTurn removes the note.
	EndTurn Verb = "EndTurn"
	// TellKey puts the operator's key there with those before, and a pod that tells the guard of it.
	TellKey Verb = "TellKey"
	// Claim notes that the plan on the node is the operator's, which gives it back some day.
	Claim Verb = "Claim"
)

// Step is one thing to do. Each is followed by another look.
type Step struct {
	Node string
	Verb Verb
	// Number and Reboots of an instruction.
	Number  int64
	Reboots bool
	// Again tells that what was taken back before is to be tried again.
	Again bool
}

// Stage is how far a node is.
type Stage string

const (
	// StageDone nodes are as they are to be.
	StageDone Stage = "Done"
	// StageWaiting nodes wait for their turn.
	StageWaiting Stage = "Waiting"
	// StageChanging nodes have their turn.
	StageChanging Stage = "Changing"
	// StageBlocked nodes have pods that nobody may evict.
	StageBlocked Stage = "Blocked"
	// StageLate nodes have had their turn for longer than it should take.
	StageLate Stage = "Late"
	// StageRefused nodes cannot have the plan.
	StageRefused Stage = "Refused"
	// StageTold nodes have what they are to have, or wait for it, and their guards are told of the operator's key.
	StageTold Stage = "Told"
	// StageFailed nodes have tried and are as they were before.
	StageFailed Stage = "Failed"
)

// State is how far one node is, and why.
type State struct {
	Node  string
	Stage Stage
	// Message is a part of a sentence about the node; "" for StageDone.
	Message string
	// Holding are the standard conditions about maintenance that hold of the node.
	Holding []corev1.NodeConditionType
}

// Decision is what is to be done now about the nodes of one profile.
type Decision struct {
	Steps []Step
	// States of the nodes, ascending by their names.
	States []State
}

// How long the parts of a turn may take before the status says that they take long. Nothing is given up then: the guard on the
// host has a deadline of its own, and takes back what does not come up.
const (
	handOverLimit = 10 * time.Minute
	turnLimit     = time.Hour
	blockedLimit  = 5 * time.Minute
)

// Limits are the profile's.
type Limits struct {
	// Profile is the name of the profile, MaximumUnavailable how many nodes of all profiles together may be unavailable for it to
	// take another.
	Profile            string
	MaximumUnavailable int
	// MayBegin is false when no further node may be begun; those that are begun are finished.
	MayBegin bool
}

// Decide decides about the nodes of one profile. The nodes are those of all profiles, and all of the control plane.
func Decide(nodes []Node, limits Limits, now time.Time) Decision {
	d := Decision{}
	var waiting []*Node
	stopped := stopped(nodes, limits.Profile)
	for i := range nodes {
		n := &nodes[i]
		if n.Profile != limits.Profile {
			continue
		}
		step, state := n.decide(stopped, limits.MayBegin, now)
		d.add(step)
		if state.Stage == StageWaiting && state.Message == "" {
			waiting = append(waiting, n)
		}
		d.States = append(d.States, state)
	}
	d.tellKeys(nodes, limits, now)
	d.begin(nodes, waiting, limits)
	slices.SortFunc(d.States, func(a, b State) int { return cmp.Compare(a.Node, b.Node) })
	return d
}

// decide decides about one node, as far as the others leave it alone: a node that waits without a message could have a turn.
func (n *Node) decide(stopped string, mayBegin bool, now time.Time) (Step, State) {
	state := State{Node: n.Name, Stage: StageDone}
	switch {
	case n.isToldOfKey():
		return n.moveKey(now)
	case n.isBegun():
		step, state := n.goOn(now)
		state.Holding = n.duringTurn(step.Verb)
		return step, state
	case n.Estranged != "" && n.Wanted != nil:
		state = State{Node: n.Name, Stage: StageRefused, Message: n.Estranged}
	case n.needsKey() && mayBegin:
		state = State{Node: n.Name, Stage: StageTold, Message: "its guard waits to be told of the operator's key"}
	case !n.isDone():
		state = n.standing(stopped)
		if state.Stage == StageWaiting && !n.isUnreadable() {
			state.Holding = []corev1.NodeConditionType{corev1.NodeMaintenancePlanned}
		}
	case mayBegin:
		return n.claim(), state
	}
	return Step{}, state
}

// claim is the step about a node that is as it is to be, and does not say whose plan it has; none for any other.
func (n *Node) claim() Step {
	if !n.isUnclaimed() {
		return Step{}
	}
	return Step{Node: n.Name, Verb: Claim}
}

func (d *Decision) add(step Step) {
	if step.Verb != "" {
		d.Steps = append(d.Steps, step)
	}
}

// standing says why a node that is not what it is to be has no turn; a state without a message is that of one that could have it. Somebody
// has asked by name for another attempt on a node, so that no failure elsewhere keeps it from that.
func (n *Node) standing(stopped string) State {
	state := func(stage Stage, format string, values ...any) State {
		return State{Node: n.Name, Stage: stage, Message: fmt.Sprintf(format, values...)}
	}
	switch {
	case n.Wanted.Refused != "":
		return state(StageRefused, "%s", n.Wanted.Refused)
	case n.hasFailed():
		return state(StageFailed, "%s", n.failure())
	case !n.IsReporting:
		return state(StageWaiting, "%s", n.silence())
	case n.isUnreadable():
		return state(StageWaiting, "%s", n.unread())
	case n.otherHands() != "":
		return state(StageWaiting, "%s", n.otherHands())
	case !n.IsReady:
		return state(StageWaiting, "its kubelet is not ready")
	case stopped != "" && n.Wanted.Action == Enact && !n.isRetry():
		return state(StageWaiting, "%s", stopped)
	default:
		return State{Node: n.Name, Stage: StageWaiting}
	}
}

// silence says what is awaited of the agent.
func (n *Node) silence() string {
	if n.Wanted.Action == Remove {
		return "no agent says what is on it; to leave the host as it is, take the label " + v1alpha1.LabelPool + " off the node"
	}
	return "its agent has not looked at it since its last boot"
}

// otherHands says who else works on the node; "" for nobody.
func (n *Node) otherHands() string {
	switch {
	case n.isByHand():
		return "somebody is changing it with lowlatency-guard"
	case n.Lock == "" && n.IsCordoned:
		return "somebody else has cordoned it"
	default:
		return n.Lock
	}
}

// failure says what has become of the instruction.
func (n *Node) failure() string {
	report := n.report()
	what := "was taken back"
	if report.Phase == v1alpha1.EnactmentRefused {
		what = "was refused"
	}
	return fmt.Sprintf("instruction %d %s (%s): %s", report.Number, what, report.Reason, strings.TrimSuffix(report.Message, "."))
}

// begin gives turns to nodes that wait, as many as may be unavailable: those that are given back first, then by name.
func (d *Decision) begin(nodes []Node, waiting []*Node, limits Limits) {
	slices.SortFunc(waiting, func(a, b *Node) int {
		return cmp.Or(-cmp.Compare(a.Wanted.Action, b.Wanted.Action), cmp.Compare(a.Name, b.Name))
	})
	busy, controlPlane := unavailable(nodes)
	for _, n := range waiting {
		why := ""
		switch {
		case !limits.MayBegin:
			why = "the rollout is paused"
		case len(busy) >= max(limits.MaximumUnavailable, 1):
			why = strings.Join(busy, ", ") + " must be available first (spec.pools.maximumUnavailableNodes)"
		case n.IsControlPlane && controlPlane != "":
			why = fmt.Sprintf("nodes of the control plane are changed one at a time, and %s is not available", controlPlane)
		default:
			d.add(Step{Node: n.Name, Verb: TakeTurn})
			busy = append(busy, n.Name)
			if n.IsControlPlane {
				controlPlane = n.Name
			}
			why = "its turn begins"
		}
		at := slices.IndexFunc(d.States, func(s State) bool { return s.Node == n.Name })
		d.States[at].Message = why
	}
}

// unavailable are the nodes of all profiles that are being changed, not ready, or not verified after their change; and one of the control
// plane that does not work.
func unavailable(nodes []Node) (busy []string, controlPlane string) {
	for i := range nodes {
		n := &nodes[i]
		if n.isUnavailable() || !n.IsReady && n.Profile != "" {
			busy = append(busy, n.Name)
		}
		if n.IsControlPlane && (n.isUnavailable() || n.IsCordoned || !n.IsReady) {
			controlPlane = n.Name
		}
	}
	slices.Sort(busy)
	return busy, controlPlane
}
