// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package openshift

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
)

// decision is everything that is to be written now, in this order, and how far the platform is.
type decision struct {
	steps   []step
	outcome fleet.Outcome
}

// decideRoll decides about all machine config pools of a profile from the world alone.
func decideRoll(w *world, intent *fleet.Intent, targets []*target, conflicts []fleet.Conflict) decision {
	d := decision{outcome: fleet.Outcome{GroupOf: map[string]string{}, Conflicts: conflicts}}
	r := roomOf(w, intent)
	who := sortNodes(intent, targets)
	var stages stages
	stages.nodes = who.releases(r)
	for _, t := range targets {
		v := w.decide(t, intent.Profile.Name, who.moving[t.name()], who.stuck[t.name()], r)
		stages.add(v.steps)
		d.outcome.GroupOf[t.shape.Hash] = t.name()
		d.outcome.Groups = append(d.outcome.Groups, v.state)
		if v.state.Phase == fleet.PhaseWriting || v.state.Phase == fleet.PhaseQueued ||
			v.state.Reason == v1alpha1.ReasonRenderingLate || t.isFought() {
			d.outcome.RetryAfter = renderTimeout
		}
	}
	d.steps = stages.all()
	d.leaveStalePools(w, intent, targets)
	d.outcome.Returning = w.returning(intent)
	if intent.ReadOnly {
		d.steps = who.strays()
	}
	return d
}

// releases takes our labels from strays, and from as many other nodes that leave as may be unavailable.
func (s *sorting) releases(r *room) []step {
	var steps []step
	for _, node := range s.released {
		if isStray(node) {
			steps = append(steps, step{label: node})
			continue
		}
		if r.left() > 0 {
			steps = append(steps, step{label: node})
			r.loads[node.Name] = load{changing: 1}
		}
	}
	return steps
}

// strays takes our labels from strays alone: a profile that is paused does not let other nodes change.
func (s *sorting) strays() []step {
	var steps []step
	for _, node := range s.released {
		if isStray(node) {
			steps = append(steps, step{label: node})
		}
	}
	return steps
}

// isStray reports whether a released node has nothing of the machine config pool yet: it was put there by hand or from a
// backup.
func isStray(node *corev1.Node) bool {
	pool := node.Labels[v1alpha1.LabelPool]
	return pool != "" && !hasConfigOf(node, pool)
}

// stages are the steps of all machine config pools in the order in which they are carried out: what moves the fleet comes
// first, as it is little, then the nodes, which may be thousands, and last what counts on the nodes. The steps of one machine
// config pool keep their order.
type stages struct{ objects, nodes, rest []step }

// add takes the steps of one machine config pool.
func (s *stages) add(steps []step) {
	first := slices.IndexFunc(steps, step.isLabel)
	if first < 0 {
		s.objects = append(s.objects, steps...)
		return
	}
	s.objects = append(s.objects, steps[:first]...)
	end := first + labelsFirst(steps[first:])
	s.nodes = append(s.nodes, steps[first:end]...)
	s.rest = append(s.rest, steps[end:]...)
}

func (s *stages) all() []step { return slices.Concat(s.objects, s.nodes, s.rest) }

// sorting is what is to become of nodes that are not where they belong.
type sorting struct {
	// released nodes lose our labels: the profile does not select them any more, and nobody else is about
	// to take them over.
	released []*corev1.Node
	// moving are the nodes of a machine config pool that are about to move to another, by the machine config pool's
	// name.
	moving map[string][]string
	// stuck are the nodes of a machine config pool that do not belong there and must not be changed, with the reason.
	stuck map[string]map[string]string
}

// sortNodes looks at every node once.
func sortNodes(intent *fleet.Intent, targets []*target) sorting {
	s := sorting{moving: map[string][]string{}, stuck: map[string]map[string]string{}}
	s.withoutPlan(intent, targets)
	belongs, managed := make(map[string]*target, len(intent.Nodes)), map[string]bool{}
	for _, t := range targets {
		managed[t.name()] = t.managed()
		for _, node := range t.nodes {
			belongs[node.Name] = t
		}
	}
	for name, node := range intent.Nodes {
		pool, home := node.Labels[v1alpha1.LabelPool], belongs[name]
		switch {
		case isReleased(intent, node):
			s.released = append(s.released, node)
			s.moving[pool] = append(s.moving[pool], name)
		case !managed[pool] || home != nil && home.name() == pool:
		default:
			s.misplaced(intent, name, pool, home)
		}
	}
	slices.SortFunc(s.released, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	for _, names := range s.moving {
		slices.Sort(names)
	}
	return s
}

// withoutPlan notes the nodes of an existing machine config pool for which there is no plan: they are in the machine
// config pool, and would get the plan of the others.
func (s *sorting) withoutPlan(intent *fleet.Intent, targets []*target) {
	for _, t := range targets {
		if t.managed() {
			continue
		}
		for _, name := range intent.Selected {
			if why := intent.Held[name]; why != "" {
				s.stick(t.name(), name, why)
			}
		}
	}
}

// misplaced notes a node that is in a machine config pool where it does not belong.
func (s *sorting) misplaced(intent *fleet.Intent, node, pool string, home *target) {
	why := intent.Held[node]
	switch {
	case why != "":
	case home == nil:
		why = "there is no machine config pool that it may be in"
	case home.conflict != nil:
		why = fmt.Sprintf("it belongs to MachineConfigPool %s, to which nothing can be applied", home.name())
	default:
		s.moving[pool] = append(s.moving[pool], node)
		return
	}
	s.stick(pool, node, why)
}

func (s *sorting) stick(pool, node, why string) {
	if s.stuck[pool] == nil {
		s.stuck[pool] = map[string]string{}
	}
	s.stuck[pool][node] = why
}

// isReleased reports whether a node leaves the profile and has something of ours on it.
func isReleased(intent *fleet.Intent, node *corev1.Node) bool {
	_, leaves := slices.BinarySearch(intent.Leaving, node.Name)
	return leaves && !fleet.IsUntouched(node)
}

// returning are the nodes that the profile has released and that still have a configuration of its machine config pools.
func (w *world) returning(intent *fleet.Intent) []string {
	var names []string
	for name, node := range intent.Nodes {
		if node.Labels[v1alpha1.LabelPool] != "" || node.Labels[v1alpha1.LabelProfile] != "" {
			continue
		}
		if pool := w.formerPool(node); pool != "" && owner(w.pools[pool]) == intent.Profile.Name {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// leaveStalePools removes what belongs to no shape any more.
func (d *decision) leaveStalePools(w *world, intent *fleet.Intent, targets []*target) {
	wanted := map[string]bool{}
	for _, t := range targets {
		wanted[t.name()] = true
	}
	if len(targets) == 0 && len(intent.Selected) > 0 {
		// Nothing could be planned. That is no reason to undo what the nodes have.
		return
	}
	for _, name := range w.ownPools(intent.Profile.Name) {
		if wanted[name] || keepsNodes(intent, name) {
			continue
		}
		steps, rest := w.leave(name, intent)
		d.steps = append(d.steps, steps...)
		if !rest.Done() {
			d.outcome.Groups = append(d.outcome.Groups, fleet.Group{Name: name, Phase: fleet.PhaseRolling, Message: rest.Waiting})
		}
	}
	slices.SortFunc(d.outcome.Groups, func(a, b fleet.Group) int { return strings.Compare(a.Name, b.Name) })
}

// keepsNodes reports whether a machine config pool has nodes that must not be changed: what they have stays in force.
func keepsNodes(intent *fleet.Intent, pool string) bool {
	for name := range intent.Held {
		if node := intent.Nodes[name]; node != nil && node.Labels[v1alpha1.LabelPool] == pool {
			return true
		}
	}
	return false
}
