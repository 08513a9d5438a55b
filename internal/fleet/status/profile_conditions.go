// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package status

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// The truth table of these conditions is in docs/conditions.md.

// conditions computes all conditions that a profile has now.
func (s *summary) conditions() []metav1.Condition {
	progressing := s.progressing()
	conditions := []metav1.Condition{
		progressing,
		s.degraded(),
		s.overNodes(v1alpha1.ConditionDeJittered, "every node proves that its isolated CPUs are left alone"),
		s.overNodes(v1alpha1.ConditionNUMAAligned, "every node proves that CPUs, hugepages, NICs and kubelet are aligned by NUMA node"),
	}
	conditions = append(conditions, s.ready(conditions))
	if s.isStalled() {
		conditions = append(conditions, s.condition(v1alpha1.ConditionStalled, metav1.ConditionTrue,
			s.problems[0].reason, s.problems[0].message()))
	}
	return conditions
}

func (s *summary) condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// degraded is True when something will not solve itself.
func (s *summary) degraded() metav1.Condition {
	if len(s.problems) == 0 {
		return s.undegraded()
	}
	return s.condition(v1alpha1.ConditionDegraded, metav1.ConditionTrue, s.problems[0].reason,
		s.problems[0].message()+andMore(len(s.problems)-1))
}

// undegraded tells of pools that claim what others have: no node suffers from it, but somebody has to know.
func (s *summary) undegraded() metav1.Condition {
	text, nodes := "", 0
	for i := range s.members {
		if about := poolConflict(&s.members[i]); about != nil {
			if nodes++; text == "" {
				text = about(s.members[i].Name())
			}
		}
	}
	if nodes == 0 {
		return s.condition(v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected, "nothing is wrong")
	}
	return s.condition(v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonNICClaimConflict, text+andMore(nodes-1))
}

// poolConflict says what a pool claims in vain on a node; nil when none does.
func poolConflict(m *fleet.Member) sentence {
	if m.Planned == nil {
		return nil
	}
	for _, finding := range m.Planned.Findings {
		if finding.Rule == plan.RulePoolConflict {
			return finding.Sentence
		}
	}
	return nil
}

// isStalled reports whether nothing will change without a new spec: no node is on its way, and what is wrong
// is with the profile itself.
func (s *summary) isStalled() bool {
	if len(s.problems) == 0 || s.returning != nil || s.progressing().Status == metav1.ConditionTrue {
		return false
	}
	return slices.Contains([]string{
		v1alpha1.ReasonProfilesOverlap, v1alpha1.ReasonPerformanceProfileConflict, v1alpha1.ReasonRuntimeClassConflict,
		v1alpha1.ReasonMachineConfigPoolConflict, v1alpha1.ReasonPlanImpossible, v1alpha1.ReasonReleaseHeld,
	}, s.problems[0].reason)
}

// progressing is True while something is under way that ends by itself. The first rule that applies decides.
func (s *summary) progressing() metav1.Condition {
	for _, rule := range []func() (metav1.Condition, bool){
		s.isReturning, s.releases, s.hasNoNodes, s.isPaused, s.awaitsInventory, s.rolls, s.awaitsVerification, s.isBlocked,
	} {
		if condition, applies := rule(); applies {
			condition.Type = v1alpha1.ConditionProgressing
			return condition
		}
	}
	return s.condition(v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonRolloutComplete,
		fmt.Sprintf("all %d nodes have their plan", len(s.members)))
}

func (s *summary) isReturning() (metav1.Condition, bool) {
	if s.returning == nil {
		return metav1.Condition{}, false
	}
	return s.condition("", metav1.ConditionTrue, v1alpha1.ReasonDeleting, returnMessage(s.returning)), true
}

// returnMessage says how much is left to give back.
func returnMessage(rest *fleet.Remainder) string {
	message := fmt.Sprintf("%d nodes and %d objects are left to give back", len(rest.Nodes), len(rest.Objects))
	if rest.Waiting != "" {
		message += ": " + rest.Waiting
	}
	return message
}

// releases applies while nodes that the profile no longer selects are being given back.
func (s *summary) releases() (metav1.Condition, bool) {
	leaving := s.release.Leaving()
	if s.paused || len(leaving)+len(s.outcome.Returning) == 0 {
		return metav1.Condition{}, false
	}
	return s.condition("", metav1.ConditionTrue, v1alpha1.ReasonReleasing,
		fmt.Sprintf("%d nodes that spec.nodeSelector no longer selects are being released: %s", len(leaving)+len(s.outcome.Returning),
			fleet.Names(slices.Concat(s.outcome.Returning, leaving)))), true
}

// hasNoNodes applies where there is nothing to do: it may be that the nodes are yet to come.
func (s *summary) hasNoNodes() (metav1.Condition, bool) {
	return s.condition("", metav1.ConditionFalse, v1alpha1.ReasonNoNodes,
		"spec.nodeSelector selects no node, so there is nothing to do until one has its labels"), len(s.members)+len(s.kept) == 0
}

func (s *summary) isPaused() (metav1.Condition, bool) {
	waiting := 0
	for i := range s.members {
		if m := &s.members[i]; m.Plan() != nil && !m.IsInForce() {
			waiting++
		}
	}
	return s.condition("", metav1.ConditionFalse, v1alpha1.ReasonPaused,
		fmt.Sprintf("spec.rollout.state is Paused: nothing is written to the platform, %d nodes wait for their plan", waiting)), s.paused
}

func (s *summary) awaitsInventory() (metav1.Condition, bool) {
	names := s.names(func(m *fleet.Member) bool { return len(m.OtherProfiles) == 0 && !fleet.HasInventory(m.Report) })
	if len(names) == 0 {
		return metav1.Condition{}, false
	}
	return s.condition("", metav1.ConditionTrue, v1alpha1.ReasonAwaitingInventory,
		fmt.Sprintf("the agents of nodes %s have not reported an inventory yet", fleet.Names(names))), true
}

// rolls applies while the platform is bringing something to the nodes.
func (s *summary) rolls() (metav1.Condition, bool) {
	for _, phase := range []fleet.Phase{fleet.PhaseRolling, fleet.PhaseWriting, fleet.PhaseQueued} {
		for _, group := range s.outcome.Groups {
			if group.Phase == phase {
				return s.condition("", metav1.ConditionTrue, v1alpha1.ReasonRollingOut, group.Message), true
			}
		}
	}
	return metav1.Condition{}, false
}

// awaitsVerification applies while a node that nothing blocks has not reported the plan to be in force.
func (s *summary) awaitsVerification() (metav1.Condition, bool) {
	for i := range s.members {
		m := &s.members[i]
		if m.Plan() == nil || m.IsInForce() || s.isHindered(m) {
			continue
		}
		if m.IsPending() {
			return s.condition("", metav1.ConditionTrue, v1alpha1.ReasonRollingOut,
				fmt.Sprintf("node %s keeps plan %s until its turn for plan %s comes", m.Name(), m.Judged().Hash, m.PlanHash())), true
		}
		applied := m.Current(v1alpha1.ConditionApplied)
		return s.condition("", metav1.ConditionTrue, applied.Reason, nodeMessage(m.Name(), applied)), true
	}
	return metav1.Condition{}, false
}

// isHindered reports whether the plan cannot come to the node at present.
func (s *summary) isHindered(m *fleet.Member) bool {
	name, assigned := s.outcome.GroupOf[m.PlanHash()]
	if !assigned && len(s.outcome.Conflicts) > 0 {
		return true
	}
	switch s.phases[name] {
	case fleet.PhaseConflict, fleet.PhaseHeld, fleet.PhaseStopped, fleet.PhaseFailed:
		return true
	default:
		return slices.ContainsFunc(s.outcome.Conflicts, func(c fleet.Conflict) bool { return c.Node == m.Name() })
	}
}

// isBlocked applies when something stands still that would otherwise be under way.
func (s *summary) isBlocked() (metav1.Condition, bool) {
	for _, group := range s.outcome.Groups {
		if group.Phase == fleet.PhaseStopped {
			return s.condition("", metav1.ConditionFalse, v1alpha1.ReasonPaused, group.Message), true
		}
	}
	if len(s.problems) > 0 && !isOfNode(s.problems[0].reason) {
		return s.condition("", metav1.ConditionFalse, s.problems[0].reason, s.problems[0].message()), true
	}
	for _, group := range s.outcome.Groups {
		if group.Phase == fleet.PhaseHeld {
			return s.condition("", metav1.ConditionTrue, v1alpha1.ReasonRollingOut, group.Message), true
		}
	}
	return metav1.Condition{}, false
}

// isOfNode reports whether a problem is one of a node that has its plan in force.
func isOfNode(reason string) bool {
	return reason == v1alpha1.ReasonChecksFailed || reason == v1alpha1.ReasonQualificationFailed
}

func (s *summary) names(applies func(*fleet.Member) bool) []string {
	var names []string
	for i := range s.members {
		if applies(&s.members[i]) {
			names = append(names, s.members[i].Name())
		}
	}
	return names
}

// overNodes sums up a condition of the nodes: False when it is False on any, else Unknown when it is not
// known of any, else True.
func (s *summary) overNodes(kind, proven string) metav1.Condition {
	switch {
	case s.returning != nil:
		return s.condition(kind, metav1.ConditionUnknown, v1alpha1.ReasonDeleting, "the nodes are being given back")
	case len(s.members)+len(s.kept) == 0:
		return s.condition(kind, metav1.ConditionUnknown, v1alpha1.ReasonNoNodes, "spec.nodeSelector selects no node")
	}
	for _, status := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown} {
		if condition, found := s.firstWith(kind, status); found {
			return condition
		}
	}
	return s.condition(kind, metav1.ConditionTrue, v1alpha1.ReasonVerified, proven)
}

// firstWith names the first node of which a condition has the status, and how many more there are.
func (s *summary) firstWith(kind string, status metav1.ConditionStatus) (metav1.Condition, bool) {
	var first *fleet.Member
	count := 0
	for _, members := range [][]fleet.Member{s.members, s.kept} {
		for i := range members {
			if members[i].Status(kind) != status {
				continue
			}
			if count++; first == nil {
				first = &members[i]
			}
		}
	}
	if first == nil {
		return metav1.Condition{}, false
	}
	condition := first.Current(kind)
	if len(first.OtherProfiles) > 0 {
		condition.Reason, condition.Message = v1alpha1.ReasonProfilesOverlap, "another profile selects the node, too"
	}
	return s.condition(kind, status, condition.Reason, nodeMessage(first.Name(), condition)+andMore(count-1)), true
}

// ready sums up the others: deletion, problems, progress, and what the nodes prove.
func (s *summary) ready(others []metav1.Condition) metav1.Condition {
	of := func(kind string) metav1.Condition {
		return others[slices.IndexFunc(others, func(c metav1.Condition) bool { return c.Type == kind })]
	}
	progressing, degraded := of(v1alpha1.ConditionProgressing), of(v1alpha1.ConditionDegraded)
	switch {
	case s.returning != nil:
		return s.condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonDeleting, progressing.Message)
	case degraded.Status == metav1.ConditionTrue:
		return s.condition(v1alpha1.ConditionReady, metav1.ConditionFalse, degraded.Reason, degraded.Message)
	case progressing.Status == metav1.ConditionTrue || progressing.Reason != v1alpha1.ReasonRolloutComplete && !s.allApplied():
		return s.condition(v1alpha1.ConditionReady, metav1.ConditionFalse, progressing.Reason, progressing.Message)
	case len(s.members) == 0:
		return s.condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonNoNodes, progressing.Message)
	}
	for _, kind := range []string{v1alpha1.ConditionDeJittered, v1alpha1.ConditionNUMAAligned} {
		if c := of(kind); c.Status != metav1.ConditionTrue {
			return s.condition(v1alpha1.ConditionReady, c.Status, c.Reason, c.Message)
		}
	}
	if unmet, found := s.unmet(); found {
		return unmet
	}
	return s.condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonVerified,
		fmt.Sprintf("all %d nodes are verified for the current plan", len(s.members)))
}

// unmet names the first node that has not passed the tests which the profile names, and how many more there are.
func (s *summary) unmet() (metav1.Condition, bool) {
	waiting := s.names(func(m *fleet.Member) bool { return s.unqualified[m.Name()].Reason != "" })
	if len(waiting) == 0 {
		return metav1.Condition{}, false
	}
	first := s.unqualified[waiting[0]]
	return s.condition(v1alpha1.ConditionReady, first.Status, first.Reason, nodeMessage(waiting[0], first)+andMore(len(waiting)-1)), true
}

// allApplied reports whether every node has its plan in force, although something stands still.
func (s *summary) allApplied() bool {
	return !slices.ContainsFunc(s.members, func(m fleet.Member) bool { return !m.IsInForce() })
}
