// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package status sums up what was decided about many nodes and what their agents say: it computes the status of a
// LowLatencyNodeProfile and of a BypassNICPool, whose truth tables are in docs/conditions.md, and says which changes of
// conditions are worth an event. It is pure.
package status

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// summary is everything that the status of a profile is computed from.
type summary struct {
	generation int64
	// paused reports whether spec.rollout.state is Paused.
	paused  bool
	members []fleet.Member
	// kept are the nodes that the profile no longer selects and does not release.
	kept    []fleet.Member
	release fleet.Release
	shapes  []fleet.Shape
	outcome fleet.Outcome
	// phases of the groups by name.
	phases    map[string]fleet.Phase
	effective []v1alpha1.EffectiveSetting
	// unqualified are members that have not passed the tests which the profile names, with why.
	unqualified map[string]metav1.Condition
	// idleTests are the LatencyTests that the profile names and that select none of its members.
	idleTests []string
	// problems are what will not solve itself, the most severe first.
	problems []problem
	// returning is set while the profile is being deleted.
	returning *fleet.Remainder
	// overdue says that the deletion takes longer than it should.
	overdue bool
}

// OfProfile is the status of a profile that is in force. Of the previous one it takes only when conditions changed last.
func OfProfile(d *fleet.ProfileDecision, outcome fleet.Outcome, now time.Time) v1alpha1.LowLatencyNodeProfileStatus {
	return newSummary(d, outcome).status(&d.Intent.Profile.Status, metav1.NewTime(now))
}

// OfReturn is the status of a profile that is being deleted.
func OfReturn(profile *v1alpha1.LowLatencyNodeProfile, rest fleet.Remainder, now time.Time) v1alpha1.LowLatencyNodeProfileStatus {
	return newReturnSummary(profile, rest, now).status(&profile.Status, metav1.NewTime(now))
}

const (
	// returnTime and returnTimePerNode are how long giving nodes back may take before the profile reports
	// that somebody has to look after it. A node that drains and reboots needs minutes.
	returnTime        = time.Hour
	returnTimePerNode = 15 * time.Minute
)

// newSummary sums up a profile that is in force.
func newSummary(d *fleet.ProfileDecision, outcome fleet.Outcome) *summary {
	s := &summary{
		generation: d.Intent.Profile.Generation,
		paused:     d.Intent.ReadOnly,
		members:    d.Members,
		kept:       d.Kept,
		release:    d.Release,

		unqualified: d.Unqualified,
		idleTests:   d.IdleTests,
		shapes:      d.Intent.Shapes,
		outcome:     outcome,
		phases:      make(map[string]fleet.Phase, len(outcome.Groups)),
		effective:   plan.Effective(d.Intent.Profile, architecture(d.Intent.Shapes)).Settings(),
	}
	for _, group := range outcome.Groups {
		s.phases[group.Name] = group.Phase
	}
	s.problems = findProblems(s)
	return s
}

// newReturnSummary sums up a profile that is being deleted.
func newReturnSummary(profile *v1alpha1.LowLatencyNodeProfile, rest fleet.Remainder, now time.Time) *summary {
	s := &summary{generation: profile.Generation, returning: &rest}
	timeout := returnTime + time.Duration(len(rest.Nodes))*returnTimePerNode
	s.overdue = profile.DeletionTimestamp != nil && now.Sub(profile.DeletionTimestamp.Time) > timeout
	s.problems = findProblems(s)
	return s
}

// architecture is that of all shapes; "" when they differ.
func architecture(shapes []fleet.Shape) string {
	common := ""
	for i := range shapes {
		switch shapes[i].Plan.Architecture {
		case common:
		default:
			if common != "" {
				return ""
			}
			common = shapes[i].Plan.Architecture
		}
	}
	return common
}

// status computes the status. Of the previous one it takes only when conditions changed last.
func (s *summary) status(previous *v1alpha1.LowLatencyNodeProfileStatus, now metav1.Time) v1alpha1.LowLatencyNodeProfileStatus {
	next := v1alpha1.LowLatencyNodeProfileStatus{
		Conditions:         slices.Clone(previous.Conditions),
		ObservedGeneration: s.generation,
		Nodes:              s.counts(),
		Effective:          shorten.List(s.effective, v1alpha1.MaxEffectiveSettings),
		Shapes:             s.shapeStatuses(),
		Findings:           s.findings(),
	}
	if s.returning != nil {
		next.Nodes, next.Effective, next.Shapes, next.Findings = previous.Nodes, previous.Effective, previous.Shapes, previous.Findings
	}
	for _, condition := range s.conditions() {
		condition.ObservedGeneration = s.generation
		condition.LastTransitionTime = now
		condition.Message = shorten.Sentence(condition.Message, v1alpha1.MaxConditionMessageLength)
		meta.SetStatusCondition(&next.Conditions, condition)
	}
	if !s.isStalled() {
		meta.RemoveStatusCondition(&next.Conditions, v1alpha1.ConditionStalled)
	}
	slices.SortFunc(next.Conditions, func(a, b metav1.Condition) int { return cmp.Compare(a.Type, b.Type) })
	return next
}

// counts says how many members are how far.
func (s *summary) counts() *v1alpha1.NodeCounts {
	counts := &v1alpha1.NodeCounts{Matched: int32(min(len(s.members), 1<<30))}
	for i := range s.members {
		m := &s.members[i]
		counts.Planned += one(m.Plan() != nil)
		counts.Applied += one(m.Plan() != nil && !m.IsPending() && m.Is(v1alpha1.ConditionApplied))
		counts.Pending += one(m.IsPending())
		counts.DeJittered += one(m.Is(v1alpha1.ConditionDeJittered))
		counts.NUMAAligned += one(m.Is(v1alpha1.ConditionNUMAAligned))
	}
	return counts
}

func one(yes bool) int32 {
	if yes {
		return 1
	}
	return 0
}

// shapeStatuses describes the shapes, the most frequent first.
func (s *summary) shapeStatuses() []v1alpha1.ShapeStatus {
	statuses := make([]v1alpha1.ShapeStatus, 0, len(s.shapes))
	reboots, pending := s.reboots(), s.pendingByPlan()
	for i := range s.shapes {
		shape := &s.shapes[i]
		statuses = append(statuses, v1alpha1.ShapeStatus{
			Hash:            shape.Hash,
			Pool:            s.outcome.GroupOf[shape.Hash],
			Nodes:           int32(min(len(shape.Nodes), 1<<30)),
			Pending:         pending[shape.Hash],
			KernelArguments: shorten.Sentence(shape.Plan.ArgumentText(), v1alpha1.MaxCommandLineLength),
			Housekeeping:    shorten.Sentence(shape.Plan.CPUs.Housekeeping.String(), v1alpha1.MaxCPUListLength),
			Isolated:        shorten.Sentence(shape.Plan.CPUs.Isolated.String(), v1alpha1.MaxCPUListLength),
			Partition:       partitionOf(shape.Plan.CPUs.Derivation),
			Reboot:          reboots[shape.Hash],
		})
	}
	slices.SortFunc(statuses, func(a, b v1alpha1.ShapeStatus) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Hash, b.Hash))
	})
	return shorten.List(statuses, v1alpha1.MaxShapes)
}

// pendingByPlan counts the nodes that wait for their turn, by the hash of the plan that they wait for.
func (s *summary) pendingByPlan() map[string]int32 {
	pending := map[string]int32{}
	for i := range s.members {
		if m := &s.members[i]; m.IsPending() {
			pending[m.PlanHash()]++
		}
	}
	return pending
}

// partitionOf counts the cores of a derived partition; nil for an explicit one.
func partitionOf(d *plan.Derivation) *v1alpha1.ShapePartition {
	if d == nil {
		return nil
	}
	return &v1alpha1.ShapePartition{
		AskedCores: bounded(d.Asked), HousekeepingCores: bounded(d.Housekeeping), IsolatedCores: bounded(d.Isolated), Reason: d.Reason,
	}
}

// bounded keeps a count of cores within the API.
func bounded(count int) int32 { return int32(min(count, v1alpha1.MaxReportedCores)) }

// reboots says for each shape whether some node has to reboot before the plan is in force.
func (s *summary) reboots() map[string]v1alpha1.RebootRequirement {
	reboots := make(map[string]v1alpha1.RebootRequirement, len(s.shapes))
	for i := range s.members {
		m := &s.members[i]
		hash := m.PlanHash()
		if hash == "" || reboots[hash] == v1alpha1.RebootRequired {
			continue
		}
		if reboot := Reboot(m); reboots[hash] == "" || reboot != v1alpha1.RebootNotRequired {
			reboots[hash] = reboot
		}
	}
	return reboots
}

// awaitsReboot reports whether a plan that the guard has handed back would need a reboot: the reason of the condition says the other thing then.
func awaitsReboot(m *fleet.Member, reason string) bool {
	return (reason == v1alpha1.ReasonTakenBack || reason == v1alpha1.ReasonRefused) && slices.ContainsFunc(m.Report.Status.Findings, func(f v1alpha1.Finding) bool {
		return f.Outcome == v1alpha1.OutcomeFailed && f.Reboot == v1alpha1.RebootRequired
	})
}

// Reboot says whether a node has to reboot before its plan is in force: by the verdict of its agent about that plan, and
// where that leaves it open by the kernel and the command line that the node has reported.
func Reboot(m *fleet.Member) v1alpha1.RebootRequirement {
	applied := fleet.CurrentCondition(m.Node, m.Report, m.PlanHash(), v1alpha1.ConditionApplied)
	switch {
	case applied.Status == metav1.ConditionTrue:
		return v1alpha1.RebootNotRequired
	case applied.Status == metav1.ConditionFalse && (applied.Reason == v1alpha1.ReasonRebootPending || awaitsReboot(m, applied.Reason)):
		return v1alpha1.RebootRequired
	}
	reported := plan.RebootOf(m.Report.Status.Inventory, m.Plan())
	switch {
	// The agent has read everything, and found the kernel and its arguments as planned.
	case applied.Status == metav1.ConditionFalse && reported == v1alpha1.RebootNotRequired:
		return v1alpha1.RebootNotRequired
	case applied.Status == metav1.ConditionFalse:
		return v1alpha1.RebootRequired
	// What is not reported may need one.
	case reported == v1alpha1.RebootNotRequired:
		return v1alpha1.RebootUnknown
	default:
		return reported
	}
}

// SameProfile reports whether writing the next status would change nothing. What pointers point to counts: a partition, and
// the objects of a finding.
func SameProfile(a, b *v1alpha1.LowLatencyNodeProfileStatus) bool {
	return a.ObservedGeneration == b.ObservedGeneration && ptr.Equal(a.Nodes, b.Nodes) &&
		slices.Equal(a.Conditions, b.Conditions) && slices.Equal(a.Effective, b.Effective) &&
		equality.Semantic.DeepEqual(a.Shapes, b.Shapes) && equality.Semantic.DeepEqual(a.Findings, b.Findings)
}
