// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

import (
	"cmp"
	"slices"
)

// Comparison is two results of the same kind beside each other. Its JSON form is documented in docs/latency.md.
type Comparison struct {
	Version int  `json:"version"`
	Kind    Kind `json:"kind"`
	// Generator is the name and the version of another program whose runs both are of; "" for the project's own.
	Generator string `json:"generator,omitempty"`
	// RoundTrip says whether latencies of both are those of the whole round trip, as Setup has it.
	RoundTrip bool `json:"roundTrip,omitempty"`
	// BeforeOutcome and AfterOutcome are how the measurements ended.
	BeforeOutcome Outcome `json:"beforeOutcome"`
	AfterOutcome  Outcome `json:"afterOutcome"`
	// Rows are the sizes of ping-pongs, and the rates of sweeps, each once for either begin of its latencies.
	Rows []ComparedRow `json:"rows,omitempty"`
	// Searches is the answer of searches; nil for others.
	Searches *ComparedSearches `json:"searches,omitempty"`
}

// Begin is from when the latencies of messages on a schedule count.
type Begin string

const (
	// FromIntended counts from when a message was to leave.
	FromIntended Begin = "Intended"
	// FromSent counts from when it left.
	FromSent Begin = "Sent"
)

// ComparedRow is what two results have of a size, or of a rate of messages of one size. PerSecond is 0 and From "" for a size.
type ComparedRow struct {
	Bytes     int    `json:"bytes"`
	PerSecond uint64 `json:"perSecond,omitempty"`
	From      Begin  `json:"from,omitempty"`
	// Before and After are nil where a result does not have it.
	Before *ComparedSide `json:"before"`
	After  *ComparedSide `json:"after"`
	// Ratios are those of the percentiles that can be compared: that both carry, and that say something of all messages.
	Ratios []PercentileRatio `json:"ratios"`
}

// ComparedSide is what one result has of a row.
type ComparedSide struct {
	Samples uint64 `json:"samples"`
	// Lost messages; of a ping-pong, those without an answer.
	Lost uint64 `json:"lost"`
	// Schedule is nil for a ping-pong.
	Schedule *ComparedSchedule `json:"schedule,omitempty"`
	// MinimumNanoseconds and MaximumNanoseconds are nil without samples.
	MinimumNanoseconds *int64 `json:"minimumNanoseconds"`
	MaximumNanoseconds *int64 `json:"maximumNanoseconds"`
	// Percentiles that the samples carry, in ascending order.
	Percentiles []Percentile `json:"percentiles"`
	// unanswered is how many messages had no answer.
	unanswered uint64
}

// ComparedSchedule is what is known of messages on a schedule beside their latencies.
type ComparedSchedule struct {
	AchievedPerSecond float64 `json:"achievedPerSecond"`
	// Reached reports whether the sender reached the rate, which says nothing of what receives otherwise and is not compared.
	Reached     bool   `json:"reached"`
	Late        uint64 `json:"late"`
	AnswersLost uint64 `json:"answersLost"`
}

// Change is how a number differs: the ratio of after to before, and whether the difference is within what both results leave open.
type Change struct {
	Ratio        float64 `json:"ratio"`
	WithinSpread bool    `json:"withinSpread"`
}

// PercentileRatio is the change of a percentile. It is within the spread where the intervals of both overlap.
type PercentileRatio struct {
	Percent float64 `json:"percent"`
	Change
}

// ComparedSearches are the answers of two searches, and the changes of their ends: nil where a result has none. A change is within the spread where no rate that
// failed in one search held in the other.
type ComparedSearches struct {
	Before     ComparedSearch `json:"before"`
	After      ComparedSearch `json:"after"`
	BestPass   *Change        `json:"bestPass"`
	LowestFail *Change        `json:"lowestFail"`
}

// ComparedSearch is the answer of a search, as Load has it.
type ComparedSearch struct {
	BestPass        uint64  `json:"bestPass"`
	LowestFail      uint64  `json:"lowestFail"`
	Why             Outcome `json:"why"`
	Confirmed       bool    `json:"confirmed"`
	HeldNanoseconds int64   `json:"heldNanoseconds,omitempty"`
	// Rules are nil where the result does not tell them.
	Rules *SearchOptions `json:"rules"`
}

// CompareResults puts two results of one kind beside each other.
func CompareResults(before, after *Result) Comparison {
	c := Comparison{Version: Version, Kind: before.Kind, Generator: before.Generator, RoundTrip: before.Setup.RoundTrip, BeforeOutcome: before.Outcome, AfterOutcome: after.Outcome}
	switch before.Kind {
	case KindPingPong:
		for _, pair := range SizePairs(before, after) {
			c.Rows = append(c.Rows, rowOfSizes(pair))
		}
	case KindRateSweep:
		pairs := RatePairs(before, after)
		for _, from := range []Begin{FromIntended, FromSent} {
			for _, pair := range pairs {
				c.Rows = append(c.Rows, rowOfRates(pair, from))
			}
		}
	case KindLoadSearch:
		c.Searches = compareSearches(before.Load, after.Load)
	}
	return c
}

func rowOfSizes(pair Pair[Size]) ComparedRow {
	side := func(s *Size) *ComparedSide {
		if s == nil {
			return nil
		}
		return sideOf(&s.Distribution, s.Lost, s.Lost)
	}
	row := ComparedRow{Bytes: cmp.Or(pair.Before, pair.After).Bytes, Before: side(pair.Before), After: side(pair.After)}
	row.compare()
	return row
}

func rowOfRates(pair Pair[Rate], from Begin) ComparedRow {
	side := func(r *Rate) *ComparedSide {
		if r == nil {
			return nil
		}
		d := &r.FromIntended
		if from == FromSent {
			d = &r.FromActual
		}
		s := sideOf(d, r.Load.Lost, r.AnswersLost)
		s.Schedule = &ComparedSchedule{AchievedPerSecond: r.AchievedPerSecond, Reached: r.IsOnSchedule(), Late: r.Late, AnswersLost: r.AnswersLost}
		return s
	}
	one := cmp.Or(pair.Before, pair.After)
	row := ComparedRow{Bytes: one.Bytes, PerSecond: one.PerSecond, From: from, Before: side(pair.Before), After: side(pair.After)}
	row.compare()
	return row
}

func sideOf(d *Distribution, lost, unanswered uint64) *ComparedSide {
	s := &ComparedSide{Samples: d.Samples, Lost: lost, Percentiles: []Percentile{}, unanswered: unanswered}
	if d.Samples == 0 {
		return s
	}
	s.MinimumNanoseconds, s.MaximumNanoseconds = new(d.MinimumNanoseconds), new(d.MaximumNanoseconds)
	for _, percent := range Ladder() {
		if p, found := d.At(percent); found && d.Samples >= Samples(percent) {
			s.Percentiles = append(s.Percentiles, p)
		}
	}
	return s
}

// At is a percentile of a side, and whether it is carried; none of a side that was not measured.
func (s *ComparedSide) At(percent float64) (Percentile, bool) {
	if s == nil {
		return Percentile{}, false
	}
	at := slices.IndexFunc(s.Percentiles, func(p Percentile) bool { return p.Percent == percent })
	if at < 0 {
		return Percentile{}, false
	}
	return s.Percentiles[at], true
}

// Comparable reports whether both results have a row, with messages that left at its rate.
func (r *ComparedRow) Comparable() bool {
	isReached := func(s *ComparedSide) bool { return s != nil && (s.Schedule == nil || s.Schedule.Reached) }
	return isReached(r.Before) && isReached(r.After)
}

// compare finds the ratios.
func (r *ComparedRow) compare() {
	r.Ratios = []PercentileRatio{}
	if !r.Comparable() {
		return
	}
	for _, was := range r.Before.Percentiles {
		is, found := r.After.At(was.Percent)
		if !found || !r.Before.isAnswered(was.Percent) || !r.After.isAnswered(was.Percent) || min(was.Nanoseconds, is.Nanoseconds) <= 0 {
			continue
		}
		r.Ratios = append(r.Ratios, PercentileRatio{was.Percent, Change{float64(is.Nanoseconds) / float64(was.Nanoseconds), was.Overlaps(&is)}})
	}
}

// isAnswered reports whether a percentile says something of all messages.
func (s *ComparedSide) isAnswered(percent float64) bool {
	return IsAnswered(percent, s.Samples, s.unanswered)
}

func compareSearches(was, is *Load) *ComparedSearches {
	answer := func(l *Load) ComparedSearch {
		return ComparedSearch{BestPass: l.BestPass, LowestFail: l.LowestFail, Why: l.Why, Confirmed: l.Confirmed, HeldNanoseconds: l.HeldNanoseconds, Rules: l.Rules}
	}
	isSame := was.Overlaps(is)
	change := func(was, is uint64) *Change {
		if was == 0 || is == 0 {
			return nil
		}
		return &Change{float64(is) / float64(was), isSame}
	}
	return &ComparedSearches{Before: answer(was), After: answer(is), BestPass: change(was.BestPass, is.BestPass), LowestFail: change(was.LowestFail, is.LowestFail)}
}
