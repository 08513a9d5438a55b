// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

import (
	"fmt"
	"strconv"
	"time"
)

// Rate is what was found with messages on a schedule.
type Rate struct {
	// PerSecond is the rate that was asked for, and AchievedPerSecond the one at which messages left.
	PerSecond         uint64  `json:"perSecond"`
	AchievedPerSecond float64 `json:"achievedPerSecond"`
	Bytes             int     `json:"bytes"`
	// Load are the messages of the stream, and Probes those of a second stream that is measured instead of it, where there is one.
	Load   Stream  `json:"load"`
	Probes *Stream `json:"probes,omitempty"`
	// Late messages left more than an interval after their time, the latest by MaximumLatenessNanoseconds.
	Late                       uint64 `json:"late"`
	MaximumLatenessNanoseconds int64  `json:"maximumLatenessNanoseconds"`
	// AnswersWanted and AnswersLost are about the messages that were measured; an answer may be lost on its way, or its question.
	AnswersWanted uint64 `json:"answersWanted"`
	AnswersLost   uint64 `json:"answersLost"`
	// FromIntended counts from when a message was to leave, so that a sender that was held up hides nothing; FromActual from when it
	// left, as sfnt-stream does. Both are estimates of one way: the time until the answer, less the mean half round trip of Sizes.
	FromIntended Distribution `json:"fromIntended"`
	FromActual   Distribution `json:"fromActual"`
	// WayBackNanoseconds is that mean, and 0 where whole round trips are told. BelowWayBack of the answers took less than it in all, and count as
	// on their way for no time.
	WayBackNanoseconds int64  `json:"wayBackNanoseconds,omitempty"`
	BelowWayBack       uint64 `json:"belowWayBack,omitempty"`
	// TimeLine is of FromIntended; nil in results of earlier versions.
	TimeLine *TimeLine `json:"timeLine,omitempty"`
}

// Stream is what became of the messages of a stream, as the server saw it.
type Stream struct {
	Sent uint64 `json:"sent"`
	Lost uint64 `json:"lost"`
	// Duplicates came more than once, and are counted each time but the first. Reordered came after one that was sent later.
	Duplicates uint64 `json:"duplicates"`
	Reordered  uint64 `json:"reordered"`
	// Gaps are runs of lost messages.
	Gaps uint64 `json:"gaps"`
}

// lost are the messages that were lost and those that were sent, of the stream and of a second one where there is one: a way that is full may drop
// these alone.
func (r *Rate) lost() (lost, sent uint64) {
	lost, sent = r.Load.Lost, r.Load.Sent
	if r.Probes != nil {
		lost, sent = lost+r.Probes.Lost, sent+r.Probes.Sent
	}
	return lost, sent
}

// judgeLoss holds what was lost on both ways against a limit; nil where it is kept. An answer that did not come may be one to a question that was
// lost, which is counted already: only more of them than questions were lost for certain.
func (r *Rate) judgeLoss(what string, limit *float64) *Outcome {
	lost, sent := r.lost()
	of := "messages"
	if !exceeds(lost, sent, limit) {
		lost, sent, of = max(lost, r.AnswersLost), sent+r.AnswersWanted, "messages and answers"
	}
	if !exceeds(lost, sent, limit) {
		return nil
	}
	return &Outcome{Failed, ReasonLoss, fmt.Sprintf("%s: %d of %d %s were lost, and the budget has %g parts per million", what, lost, sent, of, *limit)}
}

// achievedShare is the share of a rate that the sender must have reached for the rate to be judged.
const achievedShare = 0.98

// IsOnSchedule reports whether the sender kept up: otherwise the rate says nothing about what receives.
func (r *Rate) IsOnSchedule() bool { return r.AchievedPerSecond >= achievedShare*float64(r.PerSecond) }

// exceeds reports whether a share is above its limit in parts per million; nil is none.
func exceeds(part, of uint64, limit *float64) bool {
	return limit != nil && float64(part)*1e6 > *limit*float64(of)
}

// judgeRate holds a rate against a budget.
func judgeRate(r *Rate, budget Budget) Outcome {
	what := strconv.FormatUint(r.PerSecond, 10) + " messages a second"
	if !r.IsOnSchedule() {
		return Outcome{Inconclusive, ReasonGeneratorLimit, fmt.Sprintf("%s: the generator was the limit: it sent %.0f", what, r.AchievedPerSecond)}
	}
	if loss := r.judgeLoss(what, budget.LossPartsPerMillion); loss != nil {
		return *loss
	}
	if limit := budget.LatePartsPerMillion; exceeds(r.Late, r.Load.Sent, limit) {
		return Outcome{Failed, ReasonLateSends, fmt.Sprintf("%s: %d of %d messages left late, the latest by %s, and the budget has %g parts per million", what,
			r.Late, r.Load.Sent, time.Duration(r.MaximumLatenessNanoseconds), *limit)}
	}
	bounded := budget
	bounded.LossPartsPerMillion = nil
	outcome := judgeOne(what, &r.FromIntended, r.AnswersLost, bounded)
	lost, sent := r.lost()
	if lost = max(lost, r.AnswersLost); outcome.Verdict == Passed && budget.boundsAll(lost) {
		return unanswered(what, lost, sent, budget.MaximumNanoseconds)
	}
	return outcome
}
