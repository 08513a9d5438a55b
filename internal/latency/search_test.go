// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// world answers trials as a path of a capacity would.
type world struct {
	capacity, generator uint64
	// grows is from which rate latency is ten times that of a low rate.
	grows uint64
	// lucky rates pass trials that take less than a minute.
	lucky uint64
	// flaky fails the first trial of each rate.
	flaky bool
	// cut is the share of a confirmation that is sent; 0 for all.
	cut float64
	// mute is the rate from which probes do not come back; 0 for none.
	mute uint64
	// deaf is the rate from which two probes in three have no answer, which is told; 0 for none.
	deaf uint64
	// back is what was taken off as the way back, which leaves nothing of any latency below grows; 0 for latencies that are told whole.
	back int64
	seen map[uint64]bool
}

// loses reports whether a trial loses messages.
func (w *world) loses(step Step) bool {
	unlucky := w.lucky > 0 && step.Rate >= w.lucky && step.Duration >= time.Minute
	return step.Rate > w.capacity || unlucky || w.flaky && !w.seen[step.Rate]
}

// samples are the latencies of the probes at a rate.
func (w *world) samples(rate uint64) []int64 {
	samples := ramp(10_000)
	if w.mute > 0 && rate >= w.mute {
		samples = samples[:10]
	}
	for i := range samples {
		switch {
		case w.back > 0 && rate < w.grows:
			samples[i] = 0
		case w.back > 0:
			samples[i] = 50
		case w.grows > 0 && rate >= w.grows:
			samples[i] *= 10
		}
	}
	return samples
}

func (w *world) trial(t *testing.T, step Step) Rate {
	t.Helper()
	sent := uint64(float64(step.Rate) * step.Duration.Seconds())
	rate := Rate{WayBackNanoseconds: w.back, PerSecond: step.Rate, AchievedPerSecond: float64(min(step.Rate, w.generator)), Load: Stream{Sent: sent}}
	if w.cut > 0 && step.Phase == PhaseConfirm {
		rate.Load.Sent = uint64(w.cut * float64(sent))
	}
	if w.loses(step) {
		rate.Load.Lost = 1 + sent/100
	}
	if w.seen == nil {
		w.seen = map[uint64]bool{}
	}
	w.seen[step.Rate] = true
	samples := w.samples(step.Rate)
	var err error
	if rate.FromIntended, err = Distribute(samples); err != nil {
		t.Fatal(err)
	}
	if w.deaf > 0 && step.Rate >= w.deaf {
		rate.AnswersWanted, rate.AnswersLost = uint64(3*len(samples)), uint64(2*len(samples))
	}
	return rate
}

func search(t *testing.T, w *world, change func(*SearchOptions)) *Search {
	t.Helper()
	options := SearchOptions{
		Minimum: 1000, Start: 10_000, Maximum: 10_000_000, Granularity: 0.01, Sniff: time.Second, Search: 10 * time.Second, Confirm: time.Minute, GrowthPercent: 99, Probes: 2000,
		Budget: Budget{LossPartsPerMillion: new(float64)},
	}
	if change != nil {
		change(&options)
	}
	s, err := NewSearch(options)
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		step, more := s.Next()
		if !more {
			return s
		}
		s.Record(w.trial(t, step))
	}
	t.Fatal("the search does not end")
	return nil
}

func TestSearchFindsTheCapacity(t *testing.T) {
	for _, capacity := range []uint64{1000, 1001, 9_999, 10_000, 123_456, 5_000_000, 9_999_999} {
		s := search(t, &world{capacity: capacity, generator: 1e9}, nil)
		found := s.Found()
		if found.BestPass > capacity || found.LowestFail <= capacity || float64(found.LowestFail) > 1.0101*float64(found.BestPass) || !found.Confirmed {
			t.Errorf("capacity %d: from %d to %d", capacity, found.BestPass, found.LowestFail)
		}
		if o := found.Outcome(0); o.Verdict != Passed || o.Reason != ReasonMeasured {
			t.Errorf("capacity %d: %+v", capacity, o)
		}
		last := found.Trials[len(found.Trials)-1]
		if last.Phase != PhaseConfirm || last.Rate.PerSecond != found.BestPass || last.Rate.Load.Sent != 60*found.BestPass {
			t.Errorf("capacity %d: the last trial is %+v", capacity, last.Phase)
		}
	}
}

func TestSearchOutcomes(t *testing.T) {
	grownMedian := func(o *SearchOptions) {
		all := 1e6
		o.Growth, o.GrowthPercent, o.Budget.LossPartsPerMillion = 5, 50, &all
	}
	cases := map[string]struct {
		world  world
		change func(*SearchOptions)
		least  uint64
		want   Outcome
	}{
		"below the least":         {world{capacity: 500, generator: 1e9}, nil, 0, Outcome{Inconclusive, ReasonLoss, "no rate passed: 1000 messages a second: 101 of 10000"}},
		"everything passes":       {world{capacity: 1e9, generator: 1e9}, nil, 0, Outcome{Inconclusive, ReasonGeneratorLimit, "every rate up to 10000000 messages a second passed"}},
		"the generator":           {world{capacity: 1e9, generator: 50_000}, nil, 0, Outcome{Inconclusive, ReasonGeneratorLimit, "the next rate was not reached: "}},
		"less than the least":     {world{capacity: 500, generator: 1e9}, nil, 2000, Outcome{Failed, ReasonRate, "no rate passed, and the budget asks for 2000: 1000 messages a second: 101 of 10000"}},
		"not told apart":          {world{capacity: 50_000, generator: 1e9}, func(o *SearchOptions) { o.Granularity = 0.5 }, 50_000, Outcome{Inconclusive, ReasonRate, "the budget asks for 50000 messages a second, and the highest rate that passes is from 4"}},
		"too few samples":         {world{capacity: 1e9, generator: 1e9, mute: 50_000}, func(o *SearchOptions) { o.Budget.Limits = []Limit{{99, 100_000}} }, 0, Outcome{Inconclusive, ReasonTooFewSamples, "the next rate could not be judged: "}},
		"no time":                 {world{capacity: 50_000, generator: 1e9}, func(o *SearchOptions) { o.Longest = 100 * time.Second }, 0, Outcome{Inconclusive, ReasonUnfinished, "the search did not come to its end in its time: 4"}},
		"no time, and too little": {world{capacity: 50_000, generator: 1e9}, func(o *SearchOptions) { o.Longest = 100 * time.Second }, 90_000, Outcome{Failed, ReasonRate, "4"}},
		"enough":                  {world{capacity: 1e9, generator: 50_000}, nil, 40_000, Outcome{Passed, ReasonWithinBudget, "5"}},
		"too little":              {world{capacity: 50_000, generator: 1e9}, nil, 60_000, Outcome{Failed, ReasonRate, "49"}},
		"growth": {world{capacity: 1e9, generator: 1e9, grows: 70_000}, func(o *SearchOptions) { o.Growth = 5 }, 0,
			Outcome{Passed, ReasonMeasured, "the highest rate that passes is from 69"}},
		"growth from nothing, to less than the way back": {world{capacity: 1e9, generator: 1e9, grows: 70_000, back: 100}, func(o *SearchOptions) { o.Growth = 5 }, 0,
			Outcome{Inconclusive, ReasonGeneratorLimit, "every rate up to 10000000 messages a second passed"}},
		"growth from nothing, to ten times the way back": {world{capacity: 1e9, generator: 1e9, grows: 70_000, back: 5}, func(o *SearchOptions) { o.Growth = 5 }, 0,
			Outcome{Passed, ReasonMeasured, "the highest rate that passes is from 69"}},
		"growth where most have no answer": {world{capacity: 1e9, generator: 1e9, deaf: 70_000}, grownMedian, 100_000, Outcome{Failed, ReasonRate, "69"}},
		"growth from where most have no answer": {world{capacity: 1e9, generator: 1e9, deaf: 1}, grownMedian, 0,
			Outcome{Inconclusive, ReasonLoss, "no rate passed: 1000 messages a second: 20000 of 30000 messages had no answer, so that no 50 % of them had one"}},
		"latency": {world{capacity: 1e9, generator: 1e9, grows: 30_000}, func(o *SearchOptions) { o.Budget.Limits = []Limit{{99, 10_000}} }, 0,
			Outcome{Passed, ReasonMeasured, "the highest rate that passes is from 29"}},
		"luck":  {world{capacity: 1e9, generator: 1e9, lucky: 20_000}, func(o *SearchOptions) { o.Maximum = 50_000 }, 0, Outcome{Passed, ReasonMeasured, "the highest rate that passes is from 19"}},
		"flaky": {world{capacity: 50_000, generator: 1e9, flaky: true}, func(o *SearchOptions) { o.Retries = 1 }, 0, Outcome{Passed, ReasonMeasured, "the highest rate that passes is from 49"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			found := search(t, &tc.world, tc.change).Found()
			got := Judge(&Result{Load: &found}, Budget{LeastPerSecond: tc.least})
			if got.Verdict != tc.want.Verdict || got.Reason != tc.want.Reason || !strings.HasPrefix(got.Message, tc.want.Message) {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
		})
	}
}

// TestShortConfirmation: a rate that was sent for a part of the confirmation is not confirmed, and the search says for how long it was sent.
func TestShortConfirmation(t *testing.T) {
	for name, tc := range map[string]struct {
		cut       float64
		confirmed bool
		held      time.Duration
	}{"whole": {0, true, time.Minute}, "a tenth": {0.1, false, 6 * time.Second}} {
		found := search(t, &world{capacity: 50_000, generator: 1e9, cut: tc.cut}, nil).Found()
		if off := found.HeldNanoseconds - tc.held.Nanoseconds(); found.Confirmed != tc.confirmed || off < -1e6 || off > 1e6 {
			t.Errorf("%s: %t, held for %d", name, found.Confirmed, found.HeldNanoseconds)
		}
		o := found.Outcome(1000)
		if tc.confirmed != (o.Verdict == Passed) || !strings.Contains(o.Message, "messages a second passed for "+tc.held.String()) {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// TestSlowTrialsTakeTime: a sender that does not reach a rate sends for longer than it was asked to, which counts.
func TestSlowTrialsTakeTime(t *testing.T) {
	s := search(t, &world{capacity: 1e9, generator: 50_000}, func(o *SearchOptions) { o.Longest, o.Start = time.Hour, 5_000_000 })
	sent := 0.0
	for _, trial := range s.load.Trials {
		sent += float64(trial.Rate.Load.Sent) / trial.Rate.AchievedPerSecond
	}
	if off := s.spent.Seconds() - sent; off < -0.02*sent || off > 0.02*sent {
		t.Errorf("spent %s, sent for %.1f s", s.spent, sent)
	}
}

// TestTrialsOfALoad: the trials that are told are those by which the interval was found.
func TestTrialsOfALoad(t *testing.T) {
	found := search(t, &world{capacity: 50_000, generator: 1e9}, nil).Found()
	low, best, lowest := found.Low(), found.Best(), found.Lowest()
	if low == nil || best == nil || lowest == nil {
		t.Fatalf("%+v", found)
	}
	if low.Rate.PerSecond != 1000 || best.Phase != PhaseConfirm || best.Rate.PerSecond != found.BestPass || lowest.Rate.PerSecond != found.LowestFail || lowest.Outcome != found.Why {
		t.Errorf("%+v, %+v, %+v", low.Outcome, best.Outcome, lowest.Outcome)
	}
}

// TestTrialsOfNothing: where no rate passed, the lowest is the one that failed.
func TestTrialsOfNothing(t *testing.T) {
	found := search(t, &world{capacity: 500, generator: 1e9}, nil).Found()
	if found.Best() != nil || found.Lowest() != found.Low() {
		t.Errorf("%+v", found)
	}
	if none := (&Load{}).Outcome(0); none.Reason != ReasonUnfinished {
		t.Errorf("%+v", none)
	}
}

func TestSearchRefuses(t *testing.T) {
	good := SearchOptions{Minimum: 1, Start: 2, Maximum: 3, Granularity: 0.1, Sniff: 1, Search: 1, Confirm: 1}
	if _, err := NewSearch(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*SearchOptions){
		"rates":       func(o *SearchOptions) { o.Start = 4 },
		"granularity": func(o *SearchOptions) { o.Granularity = 0 },
		"growth":      func(o *SearchOptions) { o.Growth = 0.5 },
		"durations":   func(o *SearchOptions) { o.Confirm = 0 },
		"no time":     func(o *SearchOptions) { o.Longest = 1 },
		"few probes": func(o *SearchOptions) {
			o.Probes, o.Search, o.Confirm, o.Budget.Limits = 1000, 10*time.Second, time.Minute, []Limit{{99, 1}}
		},
	} {
		bad := good
		change(&bad)
		if _, err := NewSearch(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestGrowthOfNoPercentile: no distribution has another percentile than those of the ladder, so that nobody searches for one.
func TestGrowthOfNoPercentile(t *testing.T) {
	for _, tc := range []struct {
		growth, percent float64
		want            string
	}{
		{2, 50, ""}, {2, 90, ""}, {0, 0, ""}, {0, 95, ""},
		{2, 95, "the growth of 95 %: it is of one of the percentiles [50 90 99"}, {2, 0, "the growth of 0 %"}, {2, 100, "the growth of 100 %"}, {2, 101, "the growth of 101 %"},
	} {
		options := SearchOptions{
			Minimum: 1, Start: 2, Maximum: 3, Granularity: 0.1, Sniff: time.Second, Search: 10 * time.Second, Confirm: time.Minute, Probes: 2000, Growth: tc.growth, GrowthPercent: tc.percent,
		}
		for name, begin := range map[string]func(SearchOptions) (*Search, error){"probes": NewSearch, "runs": NewSearchOfRuns} {
			if _, err := begin(options); (err != nil) != (tc.want != "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("%s, growth %g of %g %%: %v, want %q", name, tc.growth, tc.percent, err, tc.want)
			}
		}
	}
}

func TestJudgeRates(t *testing.T) {
	r := measured(t, 1000, 0)
	r.Kind = KindRateSweep
	r.Rates = []Rate{{PerSecond: 100, AchievedPerSecond: 99, Load: Stream{Sent: 1000, Lost: 2}, FromIntended: r.Sizes[0].Distribution}}
	most := 1000.0
	if got := Judge(r, Budget{LossPartsPerMillion: &most}); got.Reason != ReasonLoss {
		t.Errorf("%+v", got)
	}
	if got := Judge(r, Budget{Limits: []Limit{{90, 901}}}); got.Reason != ReasonWithinBudget {
		t.Errorf("%+v", got)
	}
	if got := Judge(r, Budget{MaximumNanoseconds: 1_000_000}); got.Reason != ReasonLoss || !strings.Contains(got.Message, "2 of 1000 messages were lost, so that not all") {
		t.Errorf("%+v", got)
	}
	allowed := 5000.0
	if got := Judge(r, Budget{MaximumNanoseconds: 1_000_000, LossPartsPerMillion: &allowed}); got.Reason != ReasonWithinBudget {
		t.Errorf("%+v", got)
	}
	r.Rates[0].Load.Lost, r.Rates[0].Probes = 0, &Stream{Sent: 100, Lost: 2}
	if got := Judge(r, Budget{LossPartsPerMillion: &most}); got.Reason != ReasonLoss || !strings.Contains(got.Message, "2 of 1100 messages") {
		t.Errorf("%+v", got)
	}
	r.Rates[0].AchievedPerSecond = 90
	for _, budget := range []Budget{{}, {MaximumNanoseconds: 1}} {
		if got := Judge(r, budget); got.Reason != ReasonGeneratorLimit {
			t.Errorf("%+v", got)
		}
	}
}

// TestJudgeAnswers: what did not come back is lost, too, and later than any limit.
func TestJudgeAnswers(t *testing.T) {
	r := measured(t, 1000, 0)
	r.Kind = KindRateSweep
	r.Rates = []Rate{{PerSecond: 100, AchievedPerSecond: 99, Load: Stream{Sent: 1000}, FromIntended: r.Sizes[0].Distribution}}
	for answers, want := range map[uint64]struct {
		limit  float64
		reason Reason
	}{
		1: {0, ReasonLoss}, 2: {1000, ReasonWithinBudget}, 3: {1000, ReasonLoss},
	} {
		r.Rates[0].AnswersWanted, r.Rates[0].AnswersLost = 1000, answers
		if got := Judge(r, Budget{LossPartsPerMillion: &want.limit}); got.Reason != want.reason {
			t.Errorf("with %d answers lost: %+v", answers, got)
		}
	}
	if got := Judge(r, Budget{MaximumNanoseconds: 1_000_000}); got.Reason != ReasonLoss {
		t.Errorf("%+v", got)
	}
	// Of 1000 messages that were answered and 120 that were not, 90 % have no latency.
	r.Rates[0].AnswersLost = 120
	if got := Judge(r, Budget{Limits: []Limit{{90, 1_000_000}}}); got.Reason != ReasonLoss || !strings.Contains(got.Message, "no 90 % of them had one within 1ms") {
		t.Errorf("%+v", got)
	}
	if got := Judge(r, Budget{Limits: []Limit{{50, 1_000_000}}}); got.Reason != ReasonWithinBudget {
		t.Errorf("%+v", got)
	}
}

// TestRulesOfASearch: a result tells the rules that were asked for, also of a search that has lengthened its trials since a confirmation failed.
func TestRulesOfASearch(t *testing.T) {
	var asked SearchOptions
	s := search(t, &world{capacity: 1 << 40, generator: 1 << 40, lucky: 20_000}, func(o *SearchOptions) {
		o.Budget.Limits, o.Maximum = []Limit{{99, 1e6}}, 100_000
		asked = *o
	})
	found := s.Found()
	if s.options.Search != asked.Confirm {
		t.Fatalf("trials are %s long, and were to be lengthened", s.options.Search)
	}
	if diff := cmp.Diff(&asked, found.Rules); diff != "" {
		t.Errorf("(-asked +told):\n%s", diff)
	}
	const want = `{"minimumPerSecond":1000,"startPerSecond":10000,"maximumPerSecond":100000,"granularity":0.01,"sniffNanoseconds":1000000000,"searchNanoseconds":10000000000,` +
		`"confirmNanoseconds":60000000000,"growthPercent":99,"probesPerSecond":2000,"budget":{"limits":[{"percent":99,"nanoseconds":1000000}],"lossPartsPerMillion":0}}`
	if text, err := json.Marshal(found.Rules); err != nil || string(text) != want {
		t.Errorf("%v: %s", err, text)
	}
}
