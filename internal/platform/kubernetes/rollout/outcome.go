// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/enactment"
)

// remainder is what is left to give back.
func (w *world) remainder(d *enactment.Decision) fleet.Remainder {
	rest := fleet.Remainder{}
	for _, state := range d.States {
		if state.Stage == enactment.StageDone || w.wanted[state.Node] == nil && w.turns[state.Node] == nil {
			continue
		}
		rest.RetryAfter = turnPause
		rest.Nodes = append(rest.Nodes, state.Node)
		if rest.Waiting == "" {
			rest.Waiting = sentence(state)
		}
	}
	return rest
}

func sentence(state enactment.State) string {
	return fmt.Sprintf("node %s: %s", state.Node, cmp.Or(state.Message, "it is being changed"))
}

// outcome says how far the shapes of the profile are.
func (w *world) outcome(d *enactment.Decision) fleet.Outcome {
	states := make(map[string]enactment.State, len(d.States))
	o := fleet.Outcome{GroupOf: map[string]string{}, Turned: map[string]bool{}}
	for _, state := range d.States {
		states[state.Node] = state
		o.RetryAfter = sooner(o.RetryAfter, pauseOf(state.Stage))
		if state.Stage == enactment.StageRefused {
			o.Conflicts = append(o.Conflicts, fleet.Conflict{Reason: v1alpha1.ReasonHostRefused, Node: state.Node, Message: sentence(state)})
		}
	}
	for i := range w.intent.Shapes {
		shape := &w.intent.Shapes[i]
		group := groupOf(w.limits.Profile, shape, states)
		o.GroupOf[shape.Hash] = group.Name
		o.Groups = append(o.Groups, group)
		for _, name := range shape.Nodes {
			o.Turned[name] = w.inForce(name) == shape.Hash
		}
	}
	slices.SortFunc(o.Groups, func(a, b fleet.Group) int { return cmp.Compare(a.Name, b.Name) })
	return o
}

// pauseOf is when to look again at a node at a stage; 0 for when something happens.
func pauseOf(stage enactment.Stage) time.Duration {
	switch stage {
	case enactment.StageChanging, enactment.StageBlocked, enactment.StageLate, enactment.StageTold:
		return turnPause
	case enactment.StageWaiting, enactment.StageFailed:
		return waitPause
	default:
		return 0
	}
}

// sooner is the shorter of two times, of which 0 is never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// inForce is the hash of the plan that the guard of a node has in force.
func (w *world) inForce(name string) string {
	report := w.reports[name]
	if report == nil || report.Status.Enactment == nil {
		return ""
	}
	return report.Status.Enactment.InForcePlanHash
}

// groupOf sums up the nodes of a plan: what has failed first, then what is under way, then what waits.
func groupOf(profile string, shape *fleet.Shape, states map[string]enactment.State) fleet.Group {
	const shortHash = 8
	group := fleet.Group{Name: profile + "-" + shape.Hash[:min(len(shape.Hash), shortHash)], Phase: fleet.PhaseInForce}
	for _, rule := range []struct {
		stage  enactment.Stage
		phase  fleet.Phase
		reason string
	}{
		{enactment.StageFailed, fleet.PhaseFailed, v1alpha1.ReasonEnactmentFailed},
		{enactment.StageBlocked, fleet.PhaseFailed, v1alpha1.ReasonDrainBlocked},
		{enactment.StageLate, fleet.PhaseFailed, v1alpha1.ReasonEnactmentLate},
		{enactment.StageChanging, fleet.PhaseRolling, ""},
		{enactment.StageWaiting, fleet.PhaseQueued, ""},
	} {
		for _, name := range slices.Sorted(slices.Values(shape.Nodes)) {
			if state := states[name]; state.Stage == rule.stage {
				group.Phase, group.Reason, group.Message = rule.phase, rule.reason, sentence(state)
				return group
			}
		}
	}
	return group
}
