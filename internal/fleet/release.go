// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// releasedShare is the part of the governed nodes that may leave a profile at once when its spec does not say how many: one
// in so many, rounded up.
const releasedShare = 10

// Release is what becomes of the nodes that a profile governs and no longer selects. A selector with a slip of the pen, or
// labels that were taken off many nodes, would otherwise move all of them at once.
type Release struct {
	// Nodes that are to leave, ascending.
	Nodes []string
	// Governed is how many nodes the profile governs, those that are to leave included.
	Governed int
	// Limit is how many may leave at once.
	Limit int
	// strays have our label and were never governed.
	strays []string
}

// IsHeld reports whether more nodes are to leave than may without consent: then none leaves.
func (r *Release) IsHeld() bool { return len(r.Nodes) > r.Limit }

// Leaving are the governed nodes that may be given back, ascending.
func (r *Release) Leaving() []string {
	if r.IsHeld() {
		return nil
	}
	return r.Nodes
}

// losing are all nodes that lose our labels, ascending.
func (r *Release) losing() []string {
	return slices.Sorted(slices.Values(slices.Concat(r.Leaving(), r.strays)))
}

// releaseOf finds the nodes that are to leave. Those that another profile selects are handed over to it.
func releaseOf(w *ProfileWorld) Release {
	var r Release
	for name, node := range w.Nodes {
		if node.Labels[v1alpha1.LabelProfile] != w.Profile.Name {
			continue
		}
		selected := Selects(w.Profile.Spec.NodeSelector, node)
		if !selected && len(SelectingProfiles(w.Others, node)) > 0 {
			continue
		}
		// Whoever labels a node by hand, or from a backup, does not make the profile govern it.
		if report := w.Reports[name]; !selected && (report == nil || report.Spec.Profile != w.Profile.Name) {
			r.strays = append(r.strays, name)
			continue
		}
		r.Governed++
		if !selected {
			r.Nodes = append(r.Nodes, name)
		}
	}
	slices.Sort(r.Nodes)
	r.Limit = (r.Governed + releasedShare - 1) / releasedShare
	if limit := w.Profile.Spec.Rollout.MaximumReleasedNodes; limit != nil {
		r.Limit = int(*limit)
	}
	return r
}

// IsUntouched reports whether the platform has nothing on a node, so that taking our labels away gives it back.
func IsUntouched(node *corev1.Node) bool { return node.Labels[v1alpha1.LabelPool] == "" }
