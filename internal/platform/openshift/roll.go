// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package openshift

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
)

// decision is everything that is to be written now, in this order, and how far the platform is.
type decision struct {
	steps   []step
	outcome platform.Outcome
}

// decideRoll decides about all pools of a profile from the world alone.
func decideRoll(w *world, intent *platform.Intent, targets []*target, conflicts []platform.Conflict) decision {
	d := decision{outcome: platform.Outcome{PoolOf: map[string]string{}, Conflicts: conflicts}}
	d.steps = releaseSteps(intent)
	for _, t := range targets {
		moving, stuck := members(intent, targets, t)
		v := w.decide(t, intent.Profile.Name, moving, stuck)
		d.steps = append(d.steps, v.steps...)
		d.outcome.PoolOf[t.shape.Hash] = t.name()
		d.outcome.Pools = append(d.outcome.Pools, v.state)
		if v.state.Phase == platform.PhaseWriting {
			d.outcome.RetryAfter = renderPatience
		}
	}
	d.leaveStalePools(w, intent, targets)
	if intent.ReadOnly {
		d.steps = nil
	}
	return d
}

// releaseSteps takes our labels from nodes that the profile does not select any more and that nobody else
// is about to take over.
func releaseSteps(intent *platform.Intent) []step {
	var steps []step
	for _, name := range sortedKeys(intent.Nodes) {
		node := intent.Nodes[name]
		if isReleased(intent, node) {
			steps = append(steps, step{label: node})
		}
	}
	return steps
}

func isReleased(intent *platform.Intent, node *corev1.Node) bool {
	_, held := intent.Held[node.Name]
	return node.Labels[v1alpha1.LabelProfile] == intent.Profile.Name && !intent.Governs(node.Name) && !held
}

// members sorts the nodes that are in the target's pool and do not belong there: those that are about to
// move to another pool, and those that must not be changed, with the reason.
func members(intent *platform.Intent, targets []*target, t *target) (moving []string, stuck map[string]string) {
	stuck = map[string]string{}
	for _, name := range sortedKeys(intent.Nodes) {
		node := intent.Nodes[name]
		switch {
		case !isMember(t, node) || slices.Contains(t.shape.Nodes, name) || isReleased(intent, node):
		case intent.Held[name] != "":
			stuck[name] = intent.Held[name]
		default:
			if why := blocked(targets, name); why != "" {
				stuck[name] = why
				continue
			}
			moving = append(moving, name)
		}
	}
	return moving, stuck
}

// isMember tells whether a node is in the target's pool now. The members of a pool that somebody else
// owns have been compared with the profile's selector already; see existingPoolConflict.
func isMember(t *target, node *corev1.Node) bool {
	return t.managed() && node.Labels[v1alpha1.LabelPool] == t.name()
}

// blocked says why a node cannot move to its own pool; "" when it can.
func blocked(targets []*target, node string) string {
	for _, t := range targets {
		if slices.Contains(t.shape.Nodes, node) && slices.ContainsFunc(t.nodes, func(n *corev1.Node) bool { return n.Name == node }) {
			if t.conflict == nil {
				return ""
			}
			return fmt.Sprintf("it belongs to MachineConfigPool %s, to which nothing can be applied", t.name())
		}
	}
	return "there is no pool that it may be in"
}

// leaveStalePools removes what belongs to no shape any more.
func (d *decision) leaveStalePools(w *world, intent *platform.Intent, targets []*target) {
	wanted := map[string]bool{}
	for _, t := range targets {
		wanted[t.name()] = true
	}
	if len(targets) == 0 && len(intent.Selected) > 0 {
		// Nothing could be planned. That is no reason to undo what the nodes have.
		return
	}
	for _, name := range w.ownPools(intent.Profile.Name) {
		if wanted[name] {
			continue
		}
		steps, rest := w.leave(name, intent)
		d.steps = append(d.steps, steps...)
		if !rest.Done() {
			d.outcome.Pools = append(d.outcome.Pools, platform.Pool{Name: name, Phase: platform.PhaseRolling, Message: rest.Waiting})
		}
	}
	slices.SortFunc(d.outcome.Pools, func(a, b platform.Pool) int { return compareStrings(a.Name, b.Name) })
}
