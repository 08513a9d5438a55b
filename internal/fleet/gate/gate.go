// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package gate decides whether pods that need low latency may be sent to a node. The decision is a function of what
// is recorded in objects (conditions, transitions, what the kubelet advertises) and of the time. It is pure, so
// the decision is the same after a restart of the operator.
//
// The gate closes at once and opens slowly. A condition that becomes False closes it in the same moment. Facts that are
// missing for a moment, as after a restart of the agent, close it only when they stay missing. A change of the plan that
// takes effect without a reboot does not close it: what was proven in this boot counts until the agent has looked. After a failure it
// opens when the node has proven its plan for some time, which doubles with each failure within an hour: a node that
// fails every other minute stays closed, instead of having its taint put on and taken away as often.
package gate

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/latencytest"
)

const (
	// UnknownGrace is for how long a node that was verified is trusted while facts are missing. The agent needs two
	// readings, half a minute apart, for the checks that compare counters.
	UnknownGrace = 2 * time.Minute
	// SettleTime is for how long a node must prove its plan after the first failure; it doubles with each further one.
	SettleTime = time.Minute
	// MaximumSettleTime bounds the settle time.
	MaximumSettleTime = 16 * time.Minute
	// FailureMemory is for how long a failure counts.
	FailureMemory = time.Hour
)

// Input is what is recorded about a node.
type Input struct {
	// Conditions are Applied, DeJittered and NUMAAligned, in the order in which they are named, as far as they speak of
	// the current plan and boot; Unknown else.
	Conditions []metav1.Condition
	// Transitions are the latest of these conditions, the latest first.
	Transitions []v1alpha1.NodeTransition
	// PlanHash is the plan that the node is to prove.
	PlanHash string
	// Configured tells that the node takes the plan without a reboot: it has the configuration that the platform wants of it.
	Configured bool
	// Startup is how far the node is since its boot.
	Startup Startup
	// Standings are what the tests that the profile names say of the node, the worst first; nil when it names none.
	Standings []latencytest.Standing
	// WasOpen tells that the gate has been open in this boot, and that no test has closed it since.
	WasOpen bool
	// Now is the time of the decision.
	Now time.Time
}

// Decision says whether pods may be sent to the node.
type Decision struct {
	// Status is True when they may, False when the node is known not to be fit, Unknown when that is not known.
	Status metav1.ConditionStatus
	// Reason is one of the condition reasons of the API.
	Reason string
	// Message is one sentence.
	Message string
	// Waiting says what the node waits for since its boot, whatever the checks say; "" when its device plugins have
	// advertised.
	Waiting string
	// Disproven tells that a test says something against the node, whatever else is said of it.
	Disproven bool
	// RetryAfter is when the decision becomes another although nothing happens; zero means never.
	RetryAfter time.Duration
}

// IsOpen reports whether pods may be sent to the node.
func (d Decision) IsOpen() bool { return d.Status == metav1.ConditionTrue }

// Decide decides.
func Decide(in Input) Decision {
	waiting, starting := in.Startup.waiting()
	decision := in.decide(waiting, starting)
	decision.Waiting = waiting.Message
	decision.Disproven = len(in.Standings) > 0 && in.Standings[0].State < latencytest.StateMissing
	return decision
}

// IsStarting reports whether the device plugins of the node have not all advertised since its boot.
func (d Decision) IsStarting() bool { return d.Waiting != "" }

func (in *Input) decide(waiting Decision, starting bool) Decision {
	if starting && waiting.Reason == v1alpha1.ReasonNodeNotReady {
		return waiting
	}
	verified := in.verified()
	switch {
	case !verified.IsOpen():
		return verified
	case starting:
		return waiting
	}
	if settling, unsettled := in.settling(); unsettled {
		return settling
	}
	return in.qualified(verified)
}

// qualified looks at the tests. One that is missing, new or changed says nothing about the node: it closes no gate that was open in
// this boot.
func (in *Input) qualified(verified Decision) Decision {
	unmet, found := latencytest.Unmet(in.Standings)
	again := latencytest.Changes(in.Standings, in.Now)
	if again > 0 && (verified.RetryAfter == 0 || again < verified.RetryAfter) {
		verified.RetryAfter = again
	}
	switch {
	case !found && len(in.Standings) > 0:
		verified.Message += "; " + in.Standings[0].Message
	case !found:
	case in.WasOpen && in.Standings[0].State >= latencytest.StateMissing:
		verified.Message += "; it stays open in this boot, although " + unmet.Message
	default:
		verified.Status, verified.Reason, verified.Message = unmet.Status, unmet.Reason, unmet.Message
	}
	return verified
}

// verified looks at the conditions alone. The first that is not True speaks.
func (in *Input) verified() Decision {
	trusted := Decision{
		Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonVerified, Message: "the node is verified for plan " + in.PlanHash,
	}
	for i := range in.Conditions {
		condition := &in.Conditions[i]
		if condition.Status == metav1.ConditionTrue {
			continue
		}
		text := fmt.Sprintf("%s is %s: %s", condition.Type, condition.Status, condition.Message)
		if in.isBetweenPlans(condition) {
			trusted.Message = "the node was verified for its former plan since its boot, and is trusted until its agent has looked: " + text
			continue
		}
		until, inGrace := in.grace(condition)
		if !inGrace {
			return Decision{Status: condition.Status, Reason: condition.Reason, Message: text}
		}
		if left := until.Sub(in.Now); trusted.RetryAfter == 0 || left < trusted.RetryAfter {
			trusted.RetryAfter = left
			trusted.Message = fmt.Sprintf("the node was verified for plan %s and is trusted until %s: %s", in.PlanHash, clock(until), text)
		}
	}
	return trusted
}

// isBetweenPlans reports whether the agent has yet to look at the plan, and has found the condition True for the former one in
// this boot. The gate of a node that is to reboot closes before it does, and that of another stays open meanwhile. An agent that
// is alive looks within its interval, and the heartbeat of one that is not becomes stale; so this ends without a time of its own.
func (in *Input) isBetweenPlans(condition *metav1.Condition) bool {
	if condition.Status != metav1.ConditionUnknown || condition.Reason != v1alpha1.ReasonAwaitingVerification || in.Startup.Boot == "" || !in.Configured {
		return false
	}
	own := in.transitionsOf(condition.Type)
	return len(own) > 0 && own[0].To == metav1.ConditionTrue && own[0].BootID == in.Startup.Boot
}

// grace tells until when a condition that is Unknown counts as True: only if it was True in this boot.
func (in *Input) grace(condition *metav1.Condition) (time.Time, bool) {
	if condition.Status != metav1.ConditionUnknown {
		return time.Time{}, false
	}
	own := in.transitionsOf(condition.Type)
	const lostAndProven = 2
	if len(own) < lostAndProven || own[0].From != metav1.ConditionTrue || own[0].To != metav1.ConditionUnknown {
		return time.Time{}, false
	}
	until := own[0].Time.Add(UnknownGrace)
	return until, in.isOfThisBoot(&own[1], &own[0]) && in.Now.Before(until)
}

// isOfThisBoot reports whether a condition was proven, and then lost, since the last boot: for this plan, or for one from which no
// reboot leads to this one. Where no kubelet says which boot it is, a plan that was proven is the only sign of it.
func (in *Input) isOfThisBoot(proven, lost *v1alpha1.NodeTransition) bool {
	switch {
	case proven.To != metav1.ConditionTrue || proven.BootID != lost.BootID:
		return false
	case in.Startup.Boot == "":
		return proven.PlanHash == in.PlanHash
	default:
		return proven.BootID == in.Startup.Boot && (in.Configured || proven.PlanHash == in.PlanHash)
	}
}

// transitionsOf are the transitions of one condition, the latest first.
func (in *Input) transitionsOf(condition string) []v1alpha1.NodeTransition {
	var own []v1alpha1.NodeTransition
	for _, t := range in.Transitions {
		if t.Condition == condition {
			own = append(own, t)
		}
	}
	return own
}

// settling reports whether the node proves its plan again, but not for long enough.
func (in *Input) settling() (Decision, bool) {
	failures := in.failures()
	if failures == 0 {
		return Decision{}, false
	}
	until := in.lastProven().Add(settleTime(failures))
	if !in.Now.Before(until) {
		return Decision{}, false
	}
	return Decision{
		Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonSettling, RetryAfter: until.Sub(in.Now),
		Message: fmt.Sprintf("the node failed %s within an hour, and has to prove its plan until %s without another failure", times(failures), clock(until)),
	}, true
}

// failures counts how often a condition became False lately while the plan was in force. What a node fails on the way
// to a plan, before the reboot that brings it, does not count.
func (in *Input) failures() int {
	applied := in.applied()
	count, last := 0, time.Time{}
	// From the latest to the oldest: applied is what the condition was before the transitions that were looked at.
	for _, t := range in.Transitions {
		inForce := applied
		if t.Condition == v1alpha1.ConditionApplied {
			applied = t.From
			inForce = t.From
		}
		failed := t.To == metav1.ConditionFalse && t.Reason == v1alpha1.ReasonChecksFailed
		if !failed || inForce != metav1.ConditionTrue || in.Now.Sub(t.Time.Time) > FailureMemory {
			continue
		}
		// Conditions that became False in one pass over the host are one failure.
		if !t.Time.Time.Equal(last) {
			count++
		}
		last = t.Time.Time
	}
	return count
}

// applied is the status of the condition Applied, between two plans that for the former one.
func (in *Input) applied() metav1.ConditionStatus {
	for i := range in.Conditions {
		if condition := &in.Conditions[i]; condition.Type == v1alpha1.ConditionApplied {
			if in.isBetweenPlans(condition) {
				return metav1.ConditionTrue
			}
			return condition.Status
		}
	}
	return metav1.ConditionUnknown
}

// lastProven is when a condition became True last.
func (in *Input) lastProven() time.Time {
	for _, t := range in.Transitions {
		if t.To == metav1.ConditionTrue {
			return t.Time.Time
		}
	}
	return time.Time{}
}

// settleTime is how long a node must prove its plan after so many failures.
func settleTime(failures int) time.Duration {
	needed := SettleTime
	for range failures - 1 {
		needed = min(2*needed, MaximumSettleTime)
	}
	return needed
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05Z") }

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
