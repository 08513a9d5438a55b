// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// Verdict is what a measurement says about a node.
type Verdict string

const (
	// Passed measurements kept the budget, or had none.
	Passed Verdict = "Passed"
	// Failed measurements broke the budget.
	Failed Verdict = "Failed"
	// Inconclusive measurements say nothing about the node; the reason says why.
	Inconclusive Verdict = "Inconclusive"
)

// Reason says in one word why a verdict is what it is.
type Reason string

const (
	// ReasonMeasured is a measurement without a budget.
	ReasonMeasured Reason = "Measured"
	// ReasonWithinBudget is a measurement that kept its budget.
	ReasonWithinBudget Reason = "WithinBudget"
	// ReasonOverBudget is a latency above its limit.
	ReasonOverBudget Reason = "OverBudget"
	// ReasonLoss is more loss than the budget has.
	ReasonLoss Reason = "Loss"
	// ReasonLateSends is more messages that left late than the budget has.
	ReasonLateSends Reason = "LateSends"
	// ReasonTooFewSamples is a percentile of the budget that the samples do not carry, or no sample at all.
	ReasonTooFewSamples Reason = "TooFewSamples"
	// ReasonNotAccelerated is a path through the kernel where another was asked for, or one that is not known.
	ReasonNotAccelerated Reason = "NotAccelerated"
	// ReasonGeneratorLimit is a rate that the sender did not reach.
	ReasonGeneratorLimit Reason = "GeneratorLimit"
	// ReasonGrowth is a latency that grew too much over that of a low rate.
	ReasonGrowth Reason = "Growth"
	// ReasonRate is a highest rate below the one that the budget asks for, or not told apart from it.
	ReasonRate Reason = "Rate"
	// ReasonCoarse is a latency that another generator counted in steps too wide for a limit.
	ReasonCoarse Reason = "Coarse"
	// ReasonUnfinished is a search that had no time to come to its end.
	ReasonUnfinished Reason = "Unfinished"
	// ReasonUnreachable is a server that no connection reaches.
	ReasonUnreachable Reason = "Unreachable"
	// ReasonStranger is something else that listens on the server's port, or another version of it.
	ReasonStranger Reason = "Stranger"
	// ReasonRefused is a server that will not measure so; the message is its own.
	ReasonRefused Reason = "Refused"
	// ReasonPeerVanished is a server that ended, or whose host did, while it was measured.
	ReasonPeerVanished Reason = "PeerVanished"
	// ReasonNoAnswer is a server that is there while no message comes back, as with a packet filter between.
	ReasonNoAnswer Reason = "NoAnswer"
	// ReasonWrongAnswer is an answer that is not the message that was sent.
	ReasonWrongAnswer Reason = "WrongAnswer"
	// ReasonUnstamped is a measurement that was to have stamps of the kernel or of the NIC, and has none.
	ReasonUnstamped Reason = "Unstamped"
	// ReasonClockUnsteady is a clock that went back, or whose rate changed.
	ReasonClockUnsteady Reason = "ClockUnsteady"
)

// Outcome is the verdict with its reason.
type Outcome struct {
	Verdict Verdict `json:"verdict"`
	Reason  Reason  `json:"reason"`
	// Message is a sentence for people.
	Message string `json:"message"`
}

// Budget is what a measurement must keep. Its zero value asks for nothing.
type Budget struct {
	// Limits of percentiles.
	Limits []Limit `json:"limits,omitempty"`
	// MaximumNanoseconds is the limit of each single sample; 0 is none.
	MaximumNanoseconds int64 `json:"maximumNanoseconds,omitempty"`
	// LossPartsPerMillion is the limit of lost messages; nil is none.
	LossPartsPerMillion *float64 `json:"lossPartsPerMillion,omitempty"`
	// LatePartsPerMillion is the limit of messages on a schedule that left late; nil is none.
	LatePartsPerMillion *float64 `json:"latePartsPerMillion,omitempty"`
	// LeastPerSecond is the least that the highest rate of a search must be; 0 is none.
	LeastPerSecond uint64 `json:"leastPerSecond,omitempty"`
	// Accelerated asks for a path past the kernel's network stack.
	Accelerated bool `json:"accelerated,omitempty"`
}

// Limit is the limit of a percentile, which is one of Ladder.
type Limit struct {
	Percent     float64 `json:"percent"`
	Nanoseconds int64   `json:"nanoseconds"`
}

// asks reports whether the budget asks for anything.
func (b *Budget) asks() bool {
	return len(b.Limits) > 0 || b.MaximumNanoseconds > 0 || b.LossPartsPerMillion != nil || b.LatePartsPerMillion != nil || b.Accelerated
}

// Judge holds a result against a budget. What is certain comes first: a latency above its limit fails whatever else is not known. The
// path comes before all: a number of another path says nothing about the one that was asked for. What a search found is held against the
// least rate alone: its trials were held against limits before. Stamps that were asked for and are not there come last: limits are of other times.
func Judge(result *Result, budget Budget) Outcome {
	outcome := judgeTimes(result, budget)
	if unstamped, lacks := judgeStamps(result); lacks && outcome.Verdict == Passed {
		return unstamped
	}
	return outcome
}

func judgeTimes(result *Result, budget Budget) Outcome {
	if outcome, other := JudgePath(result.Path, budget); other {
		return outcome
	}
	if result.Load != nil {
		return result.Load.Outcome(budget.LeastPerSecond)
	}
	var found []Outcome
	if result.Kind == KindPingPong {
		for i := range result.Sizes {
			s := &result.Sizes[i]
			found = append(found, judgeSize(strconv.Itoa(s.Bytes)+" bytes", &s.Distribution, s.Lost, budget))
		}
	}
	for i := range result.Rates {
		found = append(found, judgeRate(&result.Rates[i], budget))
	}
	outcome := worst(found)
	if outcome.Verdict == Passed && !budget.asks() {
		return Outcome{Passed, ReasonMeasured, "measured, without a budget"}
	}
	return outcome
}

// JudgePath reports whether messages took another path than the budget asks for, and what that is worth.
func JudgePath(path Path, budget Budget) (outcome Outcome, other bool) {
	if !budget.Accelerated || path.State == PathAccelerated {
		return Outcome{}, false
	}
	return Outcome{Inconclusive, ReasonNotAccelerated, "the path was not accelerated: " + path.Message}, true
}

// worst is the first that failed, else the first that is inconclusive.
func worst(found []Outcome) Outcome {
	for _, verdict := range []Verdict{Failed, Inconclusive} {
		if at := slices.IndexFunc(found, func(o Outcome) bool { return o.Verdict == verdict }); at >= 0 {
			return found[at]
		}
	}
	if len(found) == 0 {
		return Outcome{Inconclusive, ReasonTooFewSamples, "nothing was measured"}
	}
	return Outcome{Passed, ReasonWithinBudget, "within the budget"}
}

// judgeSize holds the messages of one size, of which each is to have an answer, against a budget.
func judgeSize(what string, d *Distribution, lost uint64, budget Budget) Outcome {
	outcome := judgeOne(what, d, lost, budget)
	if outcome.Verdict == Passed && budget.boundsAll(lost) {
		return unanswered(what, lost, lost+d.Samples, budget.MaximumNanoseconds)
	}
	return outcome
}

// boundsAll reports whether a budget bounds the longest latency of all messages, of which these were lost: where it says how many may be, the bound is that
// of the others.
func (b Budget) boundsAll(lost uint64) bool {
	return b.MaximumNanoseconds > 0 && b.LossPartsPerMillion == nil && lost > 0
}

// unanswered is the outcome where a bound of the longest latency is that of messages that were lost, too.
func unanswered(what string, lost, sent uint64, limit int64) Outcome {
	return Outcome{Failed, ReasonLoss, fmt.Sprintf("%s: %d of %d messages were lost, so that not all of them came within %s", what, lost, sent, time.Duration(limit))}
}

// judgeOne holds one distribution and its loss against a budget. A message without an answer is later than any limit: percentiles of those that were
// answered say nothing where more than their rest was not.
func judgeOne(what string, d *Distribution, lost uint64, budget Budget) Outcome {
	if limit := budget.MaximumNanoseconds; limit > 0 && d.MaximumNanoseconds > limit {
		return over(what, "the maximum", d.MaximumNanoseconds, limit)
	}
	if limit, sent := budget.LossPartsPerMillion, lost+d.Samples; exceeds(lost, sent, limit) {
		return Outcome{Failed, ReasonLoss, fmt.Sprintf("%s: %d of %d messages were lost, and the budget has %g parts per million", what, lost, sent, *limit)}
	}
	if d.Samples == 0 {
		return Outcome{Inconclusive, ReasonTooFewSamples, what + ": no message came back"}
	}
	passed := Outcome{Verdict: Passed}
	for _, limit := range budget.Limits {
		if !IsAnswered(limit.Percent, d.Samples, lost) {
			return Outcome{Failed, ReasonLoss, fmt.Sprintf("%s: %d of %d messages had no answer, so that no %g %% of them had one within %s",
				what, lost, lost+d.Samples, limit.Percent, time.Duration(limit.Nanoseconds))}
		}
		p, carried := d.At(limit.Percent)
		if !carried {
			passed = Outcome{Inconclusive, ReasonTooFewSamples, fmt.Sprintf("%s: %d samples do not carry %g %%, which takes %d",
				what, d.Samples, limit.Percent, Samples(limit.Percent))}
			continue
		}
		if p.Nanoseconds > limit.Nanoseconds {
			return over(what, strconv.FormatFloat(limit.Percent, 'g', -1, 64)+" %", p.Nanoseconds, limit.Nanoseconds)
		}
	}
	return passed
}

// IsAnswered reports whether a percentile of the messages with an answer says something of all: a message without one is later than any of them, and may lie
// beyond the percentile and not below.
func IsAnswered(percent float64, answered, lost uint64) bool {
	rest := math.Round((100 - percent) * 1e4)
	return !exceeds(lost, lost+answered, &rest)
}

func over(what, of string, nanoseconds, limit int64) Outcome {
	return Outcome{Failed, ReasonOverBudget, fmt.Sprintf("%s: %s is %s, and the budget has %s", what, of, time.Duration(nanoseconds), time.Duration(limit))}
}
