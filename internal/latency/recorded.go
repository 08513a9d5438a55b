// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Recorded is a run of another generator at one rate, as that recorded it.
type Recorded struct {
	// Rate has what was sent and lost, and in FromIntended the lower ends of latencies, with 0 samples where the generator takes none.
	Rate Rate
	// Highest are the upper ends of the same latencies: a generator that counts in wide steps knows no more.
	Highest Distribution
	// Duration of the run.
	Duration time.Duration
}

// JudgeRecorded holds runs against the rule by which a search passes rates, the lowest rate as the one with which others are compared. The best pass is the
// highest rate below the first that did not pass, and it is confirmed by a run of it that took as long as a confirmation. Runs of one rate all have to pass.
func JudgeRecorded(runs []Recorded, options SearchOptions) (Load, error) {
	if len(runs) == 0 {
		return Load{}, errors.New("there is no run")
	}
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, func(a, b Recorded) int { return cmp.Compare(a.Rate.PerSecond, b.Rate.PerSecond) })
	rules := options
	options.Minimum = runs[0].Rate.PerSecond
	load := Load{Rules: &rules}
	for i := range runs {
		trial := Trial{Phase: runs[i].phase(i == 0, options.Confirm), Rate: runs[i].Rate}
		trial.Outcome = runs[i].judge(&runs[0], trial.Phase, &options)
		load.Trials = append(load.Trials, trial)
		if trial.Outcome.Verdict != Passed && load.LowestFail == 0 {
			load.LowestFail, load.Why = trial.Rate.PerSecond, trial.Outcome
		}
	}
	for i := range runs {
		rate := runs[i].Rate.PerSecond
		if load.LowestFail > 0 && rate >= load.LowestFail {
			break
		}
		isLong := runs[i].Duration >= options.Confirm
		load.Confirmed = isLong || (load.Confirmed && load.BestPass == rate)
		load.BestPass = rate
	}
	return load, nil
}

// phase is what a run stands for in a search.
func (r *Recorded) phase(isLowest bool, confirm time.Duration) Phase {
	switch {
	case isLowest:
		return PhaseLow
	case r.Duration >= confirm:
		return PhaseConfirm
	default:
		return PhaseSearch
	}
}

// judge is what a run shows whatever the latencies were within their ends; Inconclusive where it depends on that.
func (r *Recorded) judge(low *Recorded, phase Phase, options *SearchOptions) Outcome {
	if r.Rate.FromIntended.Samples == 0 {
		return r.judgeLoss(options)
	}
	at := func(d, compared *Distribution) Outcome {
		rate := r.Rate
		rate.FromIntended = *d
		s := Search{options: *options, step: Step{Phase: phase}, low: compared}
		return s.judge(&rate)
	}
	lenient := at(&r.Rate.FromIntended, &low.Highest)
	if lenient.Verdict != Passed {
		return lenient
	}
	if strict := at(&r.Highest, &low.Rate.FromIntended); strict.Verdict != Passed {
		return Outcome{Inconclusive, ReasonCoarse, "the generator counts latencies in steps that are too wide to tell: at the upper end of its steps, " + strict.Message}
	}
	return lenient
}

// judgeLoss judges a run without latencies by what was lost alone.
func (r *Recorded) judgeLoss(options *SearchOptions) Outcome {
	if options.highestPercent() > 0 || options.Budget.MaximumNanoseconds > 0 {
		return Outcome{Inconclusive, ReasonTooFewSamples, fmt.Sprintf("%d messages a second: the generator took no latencies, and they are to be judged", r.Rate.PerSecond)}
	}
	rate := r.Rate
	rate.FromIntended.Samples = 1
	return judgeRate(&rate, options.Budget)
}
