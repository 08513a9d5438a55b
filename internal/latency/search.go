// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Phase is what a trial of a search is for.
type Phase string

const (
	// PhaseLow measures at the least rate, with which others are compared.
	PhaseLow Phase = "Low"
	// PhaseSniff is a short trial, so that a rate that is far too high costs little time.
	PhaseSniff Phase = "Sniff"
	// PhaseSearch is a trial of full length.
	PhaseSearch Phase = "Search"
	// PhaseConfirm is a long trial of the best rate.
	PhaseConfirm Phase = "Confirm"
)

// SearchOptions are how a search goes. A search brackets the highest rate that passes by doubling or halving, then halves the ratio of
// the bracket until it is within Granularity, then confirms. Its JSON form is documented in docs/latency.md.
type SearchOptions struct {
	// Minimum and Maximum bound the rates in messages a second, and Start is tried first. Recorded runs have none of them.
	Minimum uint64 `json:"minimumPerSecond,omitempty"`
	Start   uint64 `json:"startPerSecond,omitempty"`
	Maximum uint64 `json:"maximumPerSecond,omitempty"`
	// Granularity is how far apart, as a share, the best pass and the lowest fail may be.
	Granularity float64 `json:"granularity,omitempty"`
	// Sniff, Search and Confirm are how long the trials are.
	Sniff   time.Duration `json:"sniffNanoseconds,omitempty"`
	Search  time.Duration `json:"searchNanoseconds,omitempty"`
	Confirm time.Duration `json:"confirmNanoseconds,omitempty"`
	// Longest is how long all trials together take at most; 0 for no limit. A search that has no time for its next trial is at its end.
	Longest time.Duration `json:"longestNanoseconds,omitempty"`
	// Retries is how often a failed trial is made again before its rate counts as failed.
	Retries int `json:"retries,omitempty"`
	// Growth is how many times as large the percentile GrowthPercent, which is one of Ladder, may be as that of the low rate; 0 for no limit.
	Growth        float64 `json:"growth,omitempty"`
	GrowthPercent float64 `json:"growthPercent,omitempty"`
	// Probes a second are measured beside the load.
	Probes uint64 `json:"probesPerSecond,omitempty"`
	// Budget of each trial, and of the answer.
	Budget Budget `json:"budget"`
}

// Load is what a search found.
type Load struct {
	// BestPass is the highest rate that passed, and LowestFail the lowest above it that did not; 0 where there is none. The highest
	// rate that passes is between them.
	BestPass   uint64 `json:"bestPass"`
	LowestFail uint64 `json:"lowestFail"`
	// Why the lowest fail failed.
	Why Outcome `json:"why"`
	// Confirmed reports whether the best pass held over the long trial, to its end.
	Confirmed bool `json:"confirmed"`
	// HeldNanoseconds is for how long messages were sent in the longest trial that the best pass has passed; 0 where that is not known, or none passed.
	HeldNanoseconds int64   `json:"heldNanoseconds,omitempty"`
	Trials          []Trial `json:"trials"`
	// Rules are those by which the search was made, and its rates were judged; nil in results of earlier versions, which did not tell.
	Rules *SearchOptions `json:"rules,omitempty"`
}

// Trial is one trial of a search.
type Trial struct {
	Phase   Phase   `json:"phase"`
	Outcome Outcome `json:"outcome"`
	Rate    Rate    `json:"rate"`
}

// Step is the next trial of a search.
type Step struct {
	Phase    Phase
	Rate     uint64
	Duration time.Duration
}

// Search is a search under way. Its zero value is none; NewSearch begins one.
type Search struct {
	options SearchOptions
	load    Load
	passed  []uint64
	low     *Distribution
	lowRun  *Recorded
	step    Step
	spent   time.Duration
	failed  int
	done    bool
}

// NewSearch begins a search.
func NewSearch(options SearchOptions) (*Search, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	if percent := options.highestPercent(); percent > 0 && !carries(options.Probes, options.Search, percent) {
		return nil, fmt.Errorf("%d probes a second for %s do not carry %g %%, which takes %d samples: send more, or search longer", options.Probes, options.Search, percent, Samples(percent))
	}
	return NewSearchOfRuns(options)
}

// NewSearchOfRuns begins a search whose trials another generator makes, of which nobody knows before how many latencies it takes.
func NewSearchOfRuns(options SearchOptions) (*Search, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	// A search may lengthen its trials, so that the rules are a copy.
	rules := options
	return &Search{options: options, load: Load{Rules: &rules}, step: Step{PhaseLow, options.Minimum, options.Search}}, nil
}

// check says what is wrong with options.
func (o *SearchOptions) check() error {
	if o.Minimum < 1 || o.Start < o.Minimum || o.Maximum < o.Start {
		return fmt.Errorf("the rates %d, %d and %d: the least, the first and the most ascend from 1", o.Minimum, o.Start, o.Maximum)
	}
	if o.Sniff <= 0 || o.Search < o.Sniff || o.Confirm < o.Search {
		return fmt.Errorf("trials of %s, %s and %s: they get longer", o.Sniff, o.Search, o.Confirm)
	}
	if least := o.Search + o.Confirm; o.Longest > 0 && o.Longest < least {
		return fmt.Errorf("a search of %s: a trial at the least rate and a confirmation alone take %s", o.Longest, least)
	}
	return o.checkRules()
}

func (o *SearchOptions) checkRules() error {
	if o.Granularity < 0.001 || o.Granularity > 1 || o.Retries < 0 || o.Growth < 0 || o.Growth > 0 && o.Growth < 1 {
		return fmt.Errorf("granularity %g is from 0.001 to 1, and growth %g at least 1", o.Granularity, o.Growth)
	}
	// No distribution has another one, so that no trial could pass.
	if o.Growth > 0 && !slices.Contains(Ladder(), o.GrowthPercent) {
		return fmt.Errorf("the growth of %g %%: it is of one of the percentiles %v", o.GrowthPercent, Ladder())
	}
	return nil
}

// ProbesBack is the share of probes that must come back from a trial whose percentiles are judged.
const ProbesBack = 0.9

// DefaultGrowthPercent is the percentile whose growth is bounded where nobody says otherwise: a queue that builds up shows in the middle of all latencies, which
// takes the fewest samples.
const DefaultGrowthPercent = 50

// DefaultGrowth is how many times as large that may be as at the low rate; 0, which is no bound, where the probes of a trial do not carry it.
func DefaultGrowth(probesPerSecond uint64, trial time.Duration) float64 {
	const queued = 10
	if !carries(probesPerSecond, trial, DefaultGrowthPercent) {
		return 0
	}
	return queued
}

// carries reports whether the probes of a trial carry a percentile, less those that need not come back.
func carries(perSecond uint64, trial time.Duration, percent float64) bool {
	return float64(perSecond)*trial.Seconds()*ProbesBack >= float64(Samples(percent))
}

// highestPercent is the highest percentile that trials are judged by; 0 for none.
func (o *SearchOptions) highestPercent() float64 {
	highest := 0.0
	if o.Growth > 0 {
		highest = o.GrowthPercent
	}
	for _, limit := range o.Budget.Limits {
		highest = max(highest, limit.Percent)
	}
	return highest
}

// Next is the next trial; false when the search is at its end.
func (s *Search) Next() (Step, bool) {
	hasTime := s.options.Longest == 0 || s.spent+s.step.Duration <= s.options.Longest
	return s.step, !s.done && hasTime
}

// Found is what was found so far.
func (s *Search) Found() Load {
	found := s.load
	if best := found.Best(); best != nil {
		found.HeldNanoseconds = int64(float64(best.Rate.Load.Sent) / float64(best.Rate.PerSecond) * float64(time.Second))
	}
	return found
}

// Record takes the result of the trial that Next gave.
func (s *Search) Record(rate Rate) { s.record(rate, s.judge(&rate)) }

// RecordRun takes the run that another generator has made for the trial that Next gave. A run that passes as a confirmation was as long as it had to be.
func (s *Search) RecordRun(run Recorded) {
	if s.step.Phase == PhaseLow {
		s.lowRun = &run
	}
	isConfirmation := s.step.Phase == PhaseConfirm
	outcome := run.judge(s.lowRun, s.step.Phase, &s.options)
	s.record(run.Rate, outcome)
	if isConfirmation && outcome.Verdict == Passed {
		s.load.Confirmed = true
	}
}

// record takes the result of a trial, and what it is worth.
func (s *Search) record(rate Rate, outcome Outcome) {
	s.load.Trials = append(s.load.Trials, Trial{s.step.Phase, outcome, rate})
	s.spent += s.took(&rate)
	if outcome.Verdict != Passed {
		if s.failed++; s.failed <= s.options.Retries {
			return
		}
	}
	s.failed = 0
	if outcome.Verdict == Passed {
		s.pass(rate)
	} else {
		s.fail(outcome)
	}
}

// took is how long a trial sent messages: as long as its step asks, and longer where the sender did not reach the rate, since it sends them all.
func (s *Search) took(rate *Rate) time.Duration {
	if rate.IsOnSchedule() || rate.AchievedPerSecond <= 0 {
		return s.step.Duration
	}
	return max(s.step.Duration, time.Duration(float64(rate.Load.Sent)/rate.AchievedPerSecond*float64(time.Second)))
}

// judge holds a trial against the budget and the low rate.
func (s *Search) judge(rate *Rate) Outcome {
	outcome := judgeRate(rate, s.options.Budget)
	if s.step.Phase == PhaseSniff && outcome.Reason == ReasonTooFewSamples {
		// A short trial shows what is far too much.
		return Outcome{Passed, ReasonTooFewSamples, outcome.Message}
	}
	if outcome.Verdict == Passed && s.options.Growth > 0 && s.step.Phase != PhaseSniff {
		outcome = s.judgeGrowth(rate)
	}
	if outcome.Verdict != Passed {
		return outcome
	}
	return Outcome{Passed, ReasonWithinBudget, "within the budget"}
}

// judgeGrowth holds the percentile whose growth is bounded against that of the low rate; of the low rate itself it only has to be known. A message without an
// answer is later than any other: where more than its rest had none, the percentile of those that had says nothing.
func (s *Search) judgeGrowth(rate *Rate) Outcome {
	percent, d := s.options.GrowthPercent, &rate.FromIntended
	if !IsAnswered(percent, d.Samples, rate.AnswersLost) {
		return Outcome{Failed, ReasonLoss, fmt.Sprintf("%d messages a second: %d of %d messages had no answer, so that no %g %% of them had one, however late",
			rate.PerSecond, rate.AnswersLost, rate.AnswersLost+d.Samples, percent)}
	}
	if s.step.Phase == PhaseLow {
		return Outcome{Verdict: Passed}
	}
	now, carried := d.At(percent)
	low, lowCarried := s.low.At(percent)
	if !carried || !lowCarried {
		return Outcome{Inconclusive, ReasonTooFewSamples, fmt.Sprintf("the samples do not carry %g %%, which takes %d", percent, Samples(percent))}
	}
	// One way is estimated. Where the estimate at the low rate comes out near nothing, or at nothing, every other would be many times as long,
	// so that it counts as at least the way back that was taken off, which is as long.
	least := max(low.Nanoseconds, rate.WayBackNanoseconds)
	if float64(now.Nanoseconds) > s.options.Growth*float64(least) {
		return Outcome{Failed, ReasonGrowth, fmt.Sprintf("%d messages a second: %g %% is %s, more than %g times the %s at %d", rate.PerSecond,
			percent, time.Duration(now.Nanoseconds), s.options.Growth, time.Duration(least), s.options.Minimum)}
	}
	return Outcome{Verdict: Passed}
}

func (s *Search) pass(rate Rate) {
	switch s.step.Phase {
	case PhaseLow:
		s.low = &rate.FromIntended
		s.passed = append(s.passed, s.options.Minimum)
		s.load.BestPass = s.options.Minimum
		s.try(s.options.Start)
	case PhaseSniff:
		s.step.Phase, s.step.Duration = PhaseSearch, s.options.Search
	case PhaseSearch:
		s.passed = append(s.passed, s.step.Rate)
		s.load.BestPass = s.step.Rate
		s.advance()
	case PhaseConfirm:
		// A rate that was sent for less time is not confirmed, whatever the reason.
		wanted := rate.PerSecond * uint64(s.step.Duration/time.Millisecond) / millisecondsPerSecond
		s.load.Confirmed, s.done = rate.Load.Sent >= wanted, true
	}
}

const millisecondsPerSecond = 1000

// fail lowers the bracket. A rate that passed a search and fails its confirmation had passed by chance; trials are as long as the
// confirmation from then on, so that chance plays no second time.
func (s *Search) fail(why Outcome) {
	s.load.LowestFail, s.load.Why = s.step.Rate, why
	if s.step.Phase == PhaseLow {
		s.done = true
		return
	}
	if s.step.Phase == PhaseConfirm {
		s.options.Search = s.options.Confirm
		s.passed = s.passed[:len(s.passed)-1]
		s.load.BestPass = 0
		if len(s.passed) == 0 {
			s.done = true
			return
		}
		s.load.BestPass = s.passed[len(s.passed)-1]
	}
	s.advance()
}

// advance chooses the next rate between, or above, what is known.
func (s *Search) advance() {
	low, high := float64(s.load.BestPass), float64(s.load.LowestFail)
	next := uint64(math.Sqrt(low * high))
	switch {
	case s.load.LowestFail == 0 && s.load.BestPass == s.options.Maximum:
		next = s.load.BestPass
	case s.load.LowestFail == 0:
		next = min(2*s.load.BestPass, s.options.Maximum)
	case high/low-1 <= s.options.Granularity:
		next = s.load.BestPass
	}
	if next <= s.load.BestPass {
		s.step = Step{PhaseConfirm, s.load.BestPass, s.options.Confirm}
		return
	}
	s.try(next)
}

func (s *Search) try(rate uint64) {
	if rate == s.load.BestPass {
		s.advance()
		return
	}
	s.step = Step{PhaseSniff, rate, s.options.Sniff}
}

// Low is the trial at the least rate; nil when none was made.
func (l *Load) Low() *Trial {
	return l.last(func(t *Trial) bool { return t.Phase == PhaseLow })
}

// Best is the longest trial of the best pass: its confirmation, where it was confirmed; nil when no rate passed.
func (l *Load) Best() *Trial {
	return l.last(func(t *Trial) bool {
		return t.Rate.PerSecond == l.BestPass && t.Outcome.Verdict == Passed && t.Phase != PhaseSniff
	})
}

// Shown is the trial by which a search is told in one distribution: the best pass, or where no rate passed that at the least rate; nil when none was made.
func (l *Load) Shown() *Trial { return cmp.Or(l.Best(), l.Low()) }

// Lowest is the trial for which the lowest fail failed; nil when none did.
func (l *Load) Lowest() *Trial {
	return l.last(func(t *Trial) bool { return t.Rate.PerSecond == l.LowestFail && t.Outcome.Verdict != Passed })
}

func (l *Load) last(is func(*Trial) bool) *Trial {
	for i := len(l.Trials) - 1; i >= 0; i-- {
		if is(&l.Trials[i]) {
			return &l.Trials[i]
		}
	}
	return nil
}

// Outcome is the verdict of a search. least is the rate that the budget asks for; 0 for none. A rate that could not be judged, as when the
// generator did not reach it, says nothing about what receives.
func (l *Load) Outcome(least uint64) Outcome {
	if least > 0 {
		if o, decided := l.against(least); decided {
			return o
		}
	}
	if o, found := l.withoutInterval(); !found {
		return o
	}
	if least > 0 {
		return Outcome{Inconclusive, ReasonRate, fmt.Sprintf("the budget asks for %d messages a second, and the highest rate that passes is from %d to %d: look with a finer granularity",
			least, l.BestPass, l.LowestFail)}
	}
	return Outcome{Passed, ReasonMeasured, fmt.Sprintf("the highest rate that passes is from %d to %d messages a second", l.BestPass, l.LowestFail)}
}

// against holds the interval against the rate that the budget asks for; false where it says neither that this passes nor that it does not.
func (l *Load) against(least uint64) (o Outcome, decided bool) {
	switch {
	case l.Confirmed && l.BestPass >= least:
		return Outcome{Passed, ReasonWithinBudget, fmt.Sprintf("%s, and the budget asks for %d", l.passed(), least)}, true
	case l.isBroken() && l.LowestFail <= least:
		return Outcome{Failed, ReasonRate, fmt.Sprintf("%s, and the budget asks for %d: %s", l.passed(), least, l.Why.Message)}, true
	}
	return Outcome{}, false
}

// isBroken reports whether the lowest fail is one of what receives.
func (l *Load) isBroken() bool { return l.LowestFail > 0 && l.Why.Verdict == Failed }

// withoutInterval says why the highest rate is not known; found says that it is.
func (l *Load) withoutInterval() (o Outcome, found bool) {
	switch {
	case l.LowestFail > 0 && l.BestPass == 0:
		return Outcome{Inconclusive, l.Why.Reason, "no rate passed: " + l.Why.Message}, false
	case !l.Confirmed:
		return Outcome{Inconclusive, ReasonUnfinished, "the search did not come to its end in its time: " + l.passed() + ", and it was not confirmed"}, false
	case l.LowestFail == 0:
		return Outcome{Inconclusive, ReasonGeneratorLimit, fmt.Sprintf("every rate up to %d messages a second passed: look higher", l.BestPass)}, false
	case l.isBroken():
		return Outcome{}, true
	case l.Why.Reason == ReasonGeneratorLimit:
		return Outcome{Inconclusive, ReasonGeneratorLimit, "the next rate was not reached: " + l.Why.Message}, false
	}
	return Outcome{Inconclusive, l.Why.Reason, "the next rate could not be judged: " + l.Why.Message}, false
}

func (l *Load) passed() string {
	if l.BestPass == 0 {
		return "no rate passed"
	}
	if l.HeldNanoseconds > 0 {
		return fmt.Sprintf("%d messages a second passed for %s", l.BestPass, time.Duration(l.HeldNanoseconds).Round(time.Millisecond))
	}
	return fmt.Sprintf("%d messages a second passed", l.BestPass)
}
