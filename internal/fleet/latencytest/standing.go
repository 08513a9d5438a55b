// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencytest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// State is what a test that a profile names says of a node now, the worst first.
type State int

const (
	// StateFailed means that the node shows more than the budget allows.
	StateFailed State = iota
	// StateStale means that the node has changed since it was measured, or the result has expired.
	StateStale
	// StateMissing means that the test does not exist, or none of the tests selects the node.
	StateMissing
	// StateAwaited means that there is no result that can be judged yet, or the test or the plan is another than when it was measured.
	StateAwaited
	// StatePassed means that the node is within the budget, and the result is fresh.
	StatePassed
)

// Standing is what a test that a profile names says of a node.
type Standing struct {
	// Test is the namespace and the name of the test; "" when the sentence is about several.
	Test  string
	State State
	// Message is one sentence.
	Message string
	// Until is when it becomes another although nothing happens; zero is never.
	Until time.Time
}

// Subject is a node that is asked to be qualified.
type Subject struct {
	Node *corev1.Node
	// Report is nil when there is none of this machine.
	Report *v1alpha1.LowLatencyNode
	// Profile governs the node.
	Profile *v1alpha1.LowLatencyNodeProfile
	// Pools are the pools that are not being deleted.
	Pools []*v1alpha1.BypassNICPool
}

// Standings are what the tests that the profile of a node names say of it, the worst first; nil when the profile names none. It
// goes by what was measured and by what the node is now, and not by what the status of a test says about freshness, which may be
// late. Tests that do not select the node say nothing, as long as one does.
func Standings(s *Subject, tests []v1alpha1.LatencyTest, now time.Time) []Standing {
	wanted := s.Profile.Spec.Verification.Qualification
	if wanted == nil {
		return nil
	}
	var found []Standing
	var others []string
	c := &candidate{node: s.Node, report: s.Report, profile: s.Profile}
	for _, reference := range wanted.Tests {
		name := reference.Namespace + "/" + reference.Name
		test := named(tests, reference)
		switch {
		case test == nil:
			found = append(found, Standing{Test: name, State: StateMissing, Message: fmt.Sprintf(
				"LatencyTest %s, which spec.verification.qualification of LowLatencyNodeProfile %s names, does not exist: create it or correct the name", name, s.Profile.Name)})
		case selects(test, s.Pools, c):
			found = append(found, standing(test, name, c, now))
		default:
			others = append(others, name)
		}
	}
	if len(found) == 0 {
		found = []Standing{{State: StateMissing, Message: fmt.Sprintf("spec.nodes of LatencyTest %s, which spec.verification.qualification of "+
			"LowLatencyNodeProfile %s names, does not select the node", strings.Join(others, ", "), s.Profile.Name)}}
	}
	slices.SortStableFunc(found, func(a, b Standing) int { return cmp.Compare(a.State, b.State) })
	return found
}

func named(tests []v1alpha1.LatencyTest, reference v1alpha1.LatencyTestReference) *v1alpha1.LatencyTest {
	at := slices.IndexFunc(tests, func(t v1alpha1.LatencyTest) bool {
		return t.Namespace == reference.Namespace && t.Name == reference.Name
	})
	if at < 0 {
		return nil
	}
	return &tests[at]
}

// standing is what one test says of a node that it selects.
func standing(test *v1alpha1.LatencyTest, name string, c *candidate, now time.Time) Standing {
	s := Standing{Test: name, State: StateAwaited}
	result := ResultOf(test, c.node.Name)
	if result == nil || result.Measured == nil {
		s.Message = fmt.Sprintf("LatencyTest %s has not measured the node yet%s", name, meanwhile(test, result))
		return s
	}
	expires := qualification.Expires(&test.Spec, result.Measured)
	isExpired := !expires.IsZero() && !now.Before(expires)
	s.Until = expires
	freshness, why := qualification.Freshness(&test.Spec, result.Measured, c.fingerprint(), now)
	verdict := qualification.VerdictOf(&test.Spec, c.profile, result.Measured)
	switch {
	case freshness != v1alpha1.LatencyFresh:
		if isExpired || c.hasChanged(result.Measured) {
			s.State = StateStale
		}
		s.Message = fmt.Sprintf("the result of LatencyTest %s is %s%s", name, why, meanwhile(test, result))
		return s
	case verdict.Outcome == v1alpha1.LatencyPassed:
		s.State = StatePassed
	case verdict.Outcome == v1alpha1.LatencyFailed:
		s.State = StateFailed
	}
	s.Message = fmt.Sprintf("LatencyTest %s: %s", name, verdict.Message)
	return s
}

// hasChanged reports whether a node is another than when it was measured, but for its plan. What a plan changes without a reboot
// closes no gate; what needs one comes with another boot.
func (c *candidate) hasChanged(measured *v1alpha1.LatencyMeasurement) bool {
	return len(qualification.HostChanges(measured.Fingerprint, c.fingerprint())) > 0
}

// meanwhile says what the test does about a node without a fresh result.
func meanwhile(test *v1alpha1.LatencyTest, result *v1alpha1.LatencyTestResult) string {
	if stalled := meta.FindStatusCondition(test.Status.Conditions, v1alpha1.ConditionStalled); stalled != nil {
		return "; the test stands still: " + stalled.Message
	}
	switch {
	case result == nil:
		return ""
	case result.Activity == v1alpha1.LatencyRunning:
		return "; the node is measured now"
	case result.Outcome == v1alpha1.LatencyInconclusive:
		return fmt.Sprintf("; the last run gave no result (%s: %s)", result.Reason, result.Message)
	case result.Measured == nil && result.Message != "":
		return ": " + result.Message
	default:
		return "; the node is to be measured"
	}
}

// ResultOf is what the status of a test says of a node; nil when it says nothing.
func ResultOf(test *v1alpha1.LatencyTest, node string) *v1alpha1.LatencyTestResult {
	for i := range test.Status.Results {
		if test.Status.Results[i].Node == node {
			return &test.Status.Results[i]
		}
	}
	return nil
}

// AsksFor reports whether a profile asks for a test.
func AsksFor(profile *v1alpha1.LowLatencyNodeProfile, test metav1.Object) bool {
	wanted := profile.Spec.Verification.Qualification
	return wanted != nil && slices.Contains(wanted.Tests, v1alpha1.LatencyTestReference{Namespace: test.GetNamespace(), Name: test.GetName()})
}

// SaysElse reports whether a test says something else of a node than before.
func SaysElse(before, after *v1alpha1.LatencyTest, node string) bool {
	return before.UID != after.UID || before.Generation != after.Generation || !equality.Semantic.DeepEqual(ResultOf(before, node), ResultOf(after, node))
}

// Unmet is the condition of a node that is not qualified, by the worst of its standings; false when it is.
func Unmet(standings []Standing) (metav1.Condition, bool) {
	if len(standings) == 0 || standings[0].State == StatePassed {
		return metav1.Condition{}, false
	}
	c := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionUnknown, Message: standings[0].Message}
	switch standings[0].State {
	case StateFailed:
		c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonQualificationFailed
	case StateStale:
		c.Reason = v1alpha1.ReasonQualificationStale
	case StateMissing:
		c.Reason = v1alpha1.ReasonQualificationMissing
	default:
		c.Reason = v1alpha1.ReasonAwaitingQualification
	}
	return c, true
}

// Changes is for how long the standings stay as they are although nothing happens; zero is forever.
func Changes(standings []Standing, now time.Time) time.Duration {
	var after time.Duration
	for _, s := range standings {
		if left := s.Until.Sub(now); !s.Until.IsZero() && left > 0 && (after == 0 || left < after) {
			after = left
		}
	}
	return after
}

// Idle are the tests that a profile names, as NAMESPACE/NAME, and that select none of its members, of which there are some: what selects no node closes no gate, and
// a selector that is mistyped would be noticed by nobody. One that does not exist is told of each node.
func Idle(w *fleet.ProfileWorld, members []fleet.Member, tests []v1alpha1.LatencyTest) []string {
	if w.Profile.Spec.Verification.Qualification == nil || len(members) == 0 {
		return nil
	}
	var idle []string
	for _, reference := range w.Profile.Spec.Verification.Qualification.Tests {
		test := named(tests, reference)
		isSelected := func(m fleet.Member) bool {
			return selects(test, w.Pools, &candidate{node: m.Node, report: m.Report, profile: w.Profile})
		}
		if test != nil && !slices.ContainsFunc(members, isSelected) {
			idle = append(idle, reference.Namespace+"/"+reference.Name)
		}
	}
	return idle
}

// Unqualified are the members of a profile that are not qualified, by name, with why; and for how long that stays so although
// nothing happens. Those whose plan is not in force are left out: they are measured when it is.
func Unqualified(w *fleet.ProfileWorld, members []fleet.Member, tests []v1alpha1.LatencyTest, now time.Time) (map[string]metav1.Condition, time.Duration) {
	if w.Profile.Spec.Verification.Qualification == nil {
		return nil, 0
	}
	unmet, all := map[string]metav1.Condition{}, []Standing(nil)
	for i := range members {
		m := &members[i]
		if !m.IsSettled() {
			continue
		}
		standings := Standings(&Subject{Node: m.Node, Report: m.Report, Profile: w.Profile, Pools: w.Pools}, tests, now)
		if condition, found := Unmet(standings); found {
			unmet[m.Name()] = condition
		}
		all = append(all, standings...)
	}
	return unmet, Changes(all, now)
}
