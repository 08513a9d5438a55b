// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
)

// ProfileWorld is what a profile is decided from. Everything in it but the profile may be shared: it is not changed.
type ProfileWorld struct {
	Profile *v1alpha1.LowLatencyNodeProfile
	// Others are the other profiles that are not being deleted.
	Others []*v1alpha1.LowLatencyNodeProfile
	// Pools are the BypassNICPools that are not being deleted, in ascending order of their names.
	Pools []*v1alpha1.BypassNICPool
	// Incumbents are those of Pools that have NICs of any node; nil where no two have the same resource name.
	Incumbents bypass.Incumbents
	// Nodes are all nodes of the cluster by name.
	Nodes map[string]*corev1.Node
	// Reports are the LowLatencyNodes by name: those of the profile, and those of the nodes that it selects, as far as
	// what they say counts.
	Reports map[string]*v1alpha1.LowLatencyNode
}

// ProfileDecision is what a profile makes of the world.
type ProfileDecision struct {
	// Members in ascending order of their names.
	Members []Member
	// Release is what becomes of the nodes that the profile no longer selects, and Kept are those of them that stay.
	Release Release
	Kept    []Member
	Intent  *Intent
	// Unqualified are members whose plan is in force and that have not passed the tests that the profile names, with why.
	Unqualified map[string]metav1.Condition
	// IdleTests are the LatencyTests that the profile names and that select none of its members, as NAMESPACE/NAME.
	IdleTests []string
}

// DecideProfile sorts the nodes, plans for them and groups them by plan.
func DecideProfile(w *ProfileWorld, plans *Planner) *ProfileDecision {
	d := &ProfileDecision{Intent: &Intent{
		Profile:  w.Profile,
		Nodes:    w.Nodes,
		Held:     map[string]string{},
		Pending:  map[string]bool{},
		ReadOnly: w.Profile.Spec.Rollout.State == v1alpha1.RolloutPaused,

		RuntimeClassClaims: RuntimeClassClaims(w.Profile, w.Others),
	}}
	pools := NewPoolIndex(w.Pools, w.Incumbents)
	for _, node := range w.Nodes {
		others := SelectingProfiles(w.Others, node)
		switch {
		case Selects(w.Profile.Spec.NodeSelector, node):
			d.Members = append(d.Members, Member{
				Node: node, Report: w.Reports[node.Name], OtherProfiles: others, Pools: pools.Of(node),
			})
		case len(others) > 0 && node.Labels[v1alpha1.LabelProfile] == w.Profile.Name:
			d.Intent.Held[node.Name] = takenOver(others)
		}
	}
	slices.SortFunc(d.Members, func(a, b Member) int { return cmp.Compare(a.Name(), b.Name()) })
	d.planMembers(w.Profile, plans)
	d.Intent.Shapes = ShapesOf(d.Members)
	d.release(w)
	return d
}

// release decides which nodes may leave. The others must not be changed.
func (d *ProfileDecision) release(w *ProfileWorld) {
	d.Release = releaseOf(w)
	d.Intent.Leaving = d.Release.losing()
	if !d.Release.IsHeld() {
		return
	}
	for _, name := range d.Release.Nodes {
		d.Kept = append(d.Kept, Member{Node: w.Nodes[name], Report: w.Reports[name]})
		d.Intent.Held[name] = "more nodes leave the profile at once than spec.rollout.maximumReleasedNodes permits"
	}
}

// DecideReturn sorts the nodes of a profile that is being deleted. Nothing is planned; a node that another
// profile selects is left to that profile.
func DecideReturn(w *ProfileWorld) *ProfileDecision {
	d := &ProfileDecision{Intent: &Intent{Profile: w.Profile, Nodes: w.Nodes, Held: map[string]string{}}}
	for _, node := range w.Nodes {
		ours := node.Labels[v1alpha1.LabelProfile] == w.Profile.Name
		if others := SelectingProfiles(w.Others, node); ours && len(others) > 0 {
			d.Intent.Held[node.Name] = takenOver(others)
		}
	}
	return d
}

func takenOver(others []string) string {
	return fmt.Sprintf("profile %s is about to take it over", others[0])
}

func (d *ProfileDecision) planMembers(profile *v1alpha1.LowLatencyNodeProfile, plans *Planner) {
	d.Intent.Selected = make([]string, 0, len(d.Members))
	for i := range d.Members {
		m := &d.Members[i]
		d.Intent.Selected = append(d.Intent.Selected, m.Name())
		switch {
		case len(m.OtherProfiles) > 0:
			d.Intent.Held[m.Name()] = fmt.Sprintf("profile %s selects it, too", strings.Join(m.OtherProfiles, ", "))
		case !HasInventory(m.Report):
			d.Intent.Held[m.Name()] = "its agent has not reported an inventory yet"
		default:
			m.Planned = plans.Plan(profile, m.Pools.On(m.Report), m.Name(), m.Report.Status.Inventory)
			if m.Plan() == nil {
				d.Intent.Held[m.Name()] = "the profile cannot be met on it"
			}
			if m.IsPending() {
				d.Intent.Pending[m.Name()] = true
			}
		}
	}
	plans.Retain(profile.Name, d.Intent.Selected...)
}
