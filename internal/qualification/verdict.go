// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package qualification

import (
	"fmt"
	"strings"
	"time"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// Verdict is what a measurement is worth.
type Verdict struct {
	Outcome v1alpha1.LatencyOutcome
	// Reason is one of the reasons of results of the API.
	Reason string
	// Message is one sentence.
	Message string
}

// BudgetOf is the budget by which a node is judged: that of the test, else for kind Jitter that of the profile which governs the node,
// else nil. The profile is nil when none does.
func BudgetOf(spec *v1alpha1.LatencyTestSpec, profile *v1alpha1.LowLatencyNodeProfile) *v1alpha1.LatencyBudget {
	if spec.Budget != nil {
		return spec.Budget
	}
	if spec.Traffic != nil || profile == nil || profile.Spec.Verification.Budget == nil {
		return nil
	}
	budget := profile.Spec.Verification.Budget
	return &v1alpha1.LatencyBudget{
		MaximumNanoseconds:    time.Duration(int64(budget.MaximumInterruptionMicroseconds) * int64(time.Microsecond)).Nanoseconds(),
		StolenPartsPerMillion: budget.StolenPartsPerMillion,
	}
}

// VerdictOf judges what a test has measured on a node by the budget of now; the profile is the one that governs the node, nil when none does. Nothing passes by what
// was not looked for: interruptions that are shorter than the threshold of the test.
func VerdictOf(spec *v1alpha1.LatencyTestSpec, profile *v1alpha1.LowLatencyNodeProfile, measured *v1alpha1.LatencyMeasurement) Verdict {
	budget := BudgetOf(spec, profile)
	verdict := Judge(measured, budget)
	if verdict.Outcome != v1alpha1.LatencyPassed || measured.Network != nil {
		return verdict
	}
	threshold := ParametersOf(spec).Threshold.Nanoseconds()
	if unseen := unseenBounds(budget, threshold); len(unseen) > 0 {
		return Verdict{v1alpha1.LatencyInconclusive, v1alpha1.TestThresholdTooHigh, fmt.Sprintf(
			"interruptions shorter than %s were not counted, and the budget bounds %s: lower spec.jitter.thresholdNanoseconds; counted were: %s",
			latency.Length(threshold), strings.Join(unseen, ", "), figures(measured))}
	}
	return verdict
}

// unseenBounds are the bounds of a budget that interruptions shorter than a threshold may exceed. What is shorter than the default threshold is no interruption where
// shares of the time are judged: on some CPUs the loop that measures takes as long itself.
func unseenBounds(budget *v1alpha1.LatencyBudget, threshold int64) []string {
	var unseen []string
	if bound := budget.MaximumNanoseconds; bound > 0 && bound < threshold {
		unseen = append(unseen, "the longest one by "+latency.Length(bound))
	}
	if threshold <= defaultThresholdNanoseconds {
		return unseen
	}
	for _, bound := range budget.Percentiles {
		if bound.Nanoseconds < threshold {
			unseen = append(unseen, "percentile "+Words(bound.Percentile)+" by "+latency.Length(bound.Nanoseconds))
		}
	}
	if budget.StolenPartsPerMillion > 0 {
		unseen = append(unseen, fmt.Sprintf("the time that they take by %d parts per million", budget.StolenPartsPerMillion))
	}
	return unseen
}

// Judge compares a measurement with a budget; nil is no budget. Every bound that is exceeded is named, the longest interruption
// first, which gives the reason.
func Judge(measured *v1alpha1.LatencyMeasurement, budget *v1alpha1.LatencyBudget) Verdict {
	if measured.Network != nil {
		return judgeNetwork(measured, budget)
	}
	return judgeJitter(measured, budget)
}

func judgeJitter(measured *v1alpha1.LatencyMeasurement, budget *v1alpha1.LatencyBudget) Verdict {
	if budget == nil {
		return Verdict{
			v1alpha1.LatencyInconclusive, v1alpha1.TestNoBudget,
			"measured, but neither spec.budget nor spec.verification.budget of the profile of the node says what is good enough: " + figures(measured),
		}
	}
	var exceeded []Verdict
	exceeds := func(reason, format string, values ...any) {
		exceeded = append(exceeded, Verdict{v1alpha1.LatencyFailed, reason, fmt.Sprintf(format, values...)})
	}
	if bound := budget.MaximumNanoseconds; bound > 0 && measured.MaximumNanoseconds > bound {
		exceeds(v1alpha1.TestMaximumExceeded, "the longest interruption%s was %s, more than %s", onWorst(measured), latency.Length(measured.MaximumNanoseconds), latency.Length(bound))
	}
	if bound := budget.StolenPartsPerMillion; bound > 0 && measured.StolenPartsPerMillion > bound {
		exceeds(v1alpha1.TestStolenTimeExceeded, "%d parts per million of the time were taken from a CPU, more than %d", measured.StolenPartsPerMillion, bound)
	}
	var unknown []string
	for _, bound := range budget.Percentiles {
		switch value, found := PercentileOf(measured.Percentiles, bound.Percentile); {
		case !found:
			unknown = append(unknown, Words(bound.Percentile))
		case value > bound.Nanoseconds:
			exceeds(v1alpha1.TestPercentileExceeded, "percentile %s was %s, more than %s", Words(bound.Percentile), latency.Length(value), latency.Length(bound.Nanoseconds))
		}
	}
	if len(exceeded) == 0 {
		return withinJitter(measured, unknown)
	}
	return blamed(measured, exceeded)
}

// withinJitter is the verdict where nothing is exceeded that is known.
func withinJitter(measured *v1alpha1.LatencyMeasurement, unknown []string) Verdict {
	if len(unknown) > 0 {
		return Verdict{v1alpha1.LatencyInconclusive, v1alpha1.TestTooFewSamples, fmt.Sprintf("the measurement has no percentile %s: %s", strings.Join(unknown, ", "), figures(measured))}
	}
	return Verdict{v1alpha1.LatencyPassed, v1alpha1.TestWithinBudget, "within the budget: " + figures(measured)}
}

// blamed is the first of what is exceeded, with all of it in its message, and what it came from.
func blamed(measured *v1alpha1.LatencyMeasurement, exceeded []Verdict) Verdict {
	sentences := make([]string, 0, len(exceeded))
	for _, one := range exceeded {
		sentences = append(sentences, one.Message)
	}
	exceeded[0].Message = strings.Join(sentences, "; ") + blame(measured) + managementBlame(measured.ManagementInterrupts) + isolationBlame(measured.Isolation, "")
	return exceeded[0]
}

// PercentileOf is one of some percentiles.
func PercentileOf(percentiles []v1alpha1.LatencyPercentile, name v1alpha1.PercentileName) (int64, bool) {
	for _, p := range percentiles {
		if p.Percentile == name {
			return p.Nanoseconds, true
		}
	}
	return 0, false
}

func onWorst(measured *v1alpha1.LatencyMeasurement) string {
	if measured.WorstCPU == nil {
		return ""
	}
	return fmt.Sprintf(" (CPU %d)", *measured.WorstCPU)
}

// NothingAboutLongest is the first cause of jitter where the kernel counted nothing about the longest interruption, and something about others of the longest.
const NothingAboutLongest = "Nothing about the longest one"

// blame says what the kernel counted when the longest interruptions came. What it counted about others is no cause of the longest one.
func blame(measured *v1alpha1.LatencyMeasurement) string {
	unseen := ": firmware, hypervisor or hardware"
	if measured.CountedInterrupts == v1alpha1.CountedInterruptsDevices || measured.CountedInterrupts == v1alpha1.CountedInterruptsNone {
		unseen = " that a pod may see: its own interrupts, firmware, hypervisor or hardware"
	}
	switch {
	case len(measured.Causes) == 0:
		return "; the kernel counted nothing about that time" + unseen
	case measured.Causes[0] != NothingAboutLongest:
		return "; the kernel counted " + strings.Join(measured.Causes, ", ")
	case len(measured.Causes) == 1:
		return "; the kernel counted nothing about the longest one" + unseen
	}
	return "; the kernel counted nothing about the longest one" + unseen + "; about others of the longest it counted " + strings.Join(measured.Causes[1:], ", ")
}

// figures is a measurement in few words.
func figures(measured *v1alpha1.LatencyMeasurement) string {
	return fmt.Sprintf("longest interruption%s %s, %d parts per million of the time taken, CPUs %s",
		onWorst(measured), latency.Length(measured.MaximumNanoseconds), measured.StolenPartsPerMillion, measured.CPUs)
}

// clockTolerance is how far the clocks of two replicas of the manager may be apart.
const clockTolerance = 5 * time.Minute

// Freshness says whether a measurement still counts, and why not.
func Freshness(spec *v1alpha1.LatencyTestSpec, measured *v1alpha1.LatencyMeasurement, now v1alpha1.LatencyFingerprint, at time.Time) (v1alpha1.LatencyFreshness, string) {
	if changed := Differences(measured.Fingerprint, now); len(changed) > 0 {
		return v1alpha1.LatencyStale, "stale, since this changed after the measurement: " + strings.Join(changed, ", ")
	}
	if measured.ParametersHash != ParametersOf(spec).Hash() {
		return v1alpha1.LatencyStale, "stale, since the test measures something else now"
	}
	if ahead := measured.CompletedTime.Sub(at); ahead > clockTolerance {
		return v1alpha1.LatencyExpired, "expired, since it was completed at " + measured.CompletedTime.UTC().Format(time.RFC3339) + ", which is still to come: a clock was wrong"
	}
	if expires := Expires(spec, measured); !expires.IsZero() && !at.Before(expires) {
		return v1alpha1.LatencyExpired, fmt.Sprintf("expired, since more than %d hours have passed after the measurement", spec.ExpireAfterHours)
	}
	return v1alpha1.LatencyFresh, ""
}

// Expires is when a measurement expires; zero is never.
func Expires(spec *v1alpha1.LatencyTestSpec, measured *v1alpha1.LatencyMeasurement) time.Time {
	if spec.ExpireAfterHours == 0 {
		return time.Time{}
	}
	return measured.CompletedTime.Add(time.Duration(spec.ExpireAfterHours) * time.Hour)
}
