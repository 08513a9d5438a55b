// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// recordedRun is a run of ten seconds that sent its rate, with 99 % between two ends.
func recordedRun(rate, lost uint64, low, high int64) Recorded {
	distribution := func(value int64) Distribution {
		return Distribution{Samples: 10_000, MaximumNanoseconds: value, Percentiles: []Percentile{{Percent: 50, Nanoseconds: value / 2}, {Percent: 90, Nanoseconds: value}, {Percent: 99, Nanoseconds: value}}}
	}
	return Recorded{
		Rate:     Rate{PerSecond: rate, AchievedPerSecond: float64(rate), Load: Stream{Sent: 10 * rate, Lost: lost}, FromIntended: distribution(low)},
		Highest:  distribution(high),
		Duration: 10 * time.Second,
	}
}

func TestJudgeRecorded(t *testing.T) {
	limit := func(nanoseconds int64) SearchOptions {
		return SearchOptions{Confirm: time.Minute, Budget: Budget{LossPartsPerMillion: new(float64), Limits: []Limit{{99, nanoseconds}}}}
	}
	long := func(r Recorded) Recorded { r.Duration = time.Minute; return r }
	blind := func(r Recorded) Recorded { r.Rate.FromIntended, r.Highest = Distribution{}, Distribution{}; return r }
	slow := func(r Recorded) Recorded { r.Rate.AchievedPerSecond *= 0.97; return r }
	growing := SearchOptions{Confirm: time.Minute, Growth: 2, GrowthPercent: 99, Budget: Budget{LossPartsPerMillion: new(float64)}}
	all := 1e6
	growingOfSome := growing
	growingOfSome.Budget.LossPartsPerMillion = &all
	unanswered := func(r Recorded) Recorded { r.Rate.AnswersWanted, r.Rate.AnswersLost = 10_200, 200; return r }
	lossOnly := SearchOptions{Confirm: time.Minute, Budget: Budget{LossPartsPerMillion: new(float64)}}
	for name, tc := range map[string]struct {
		runs    []Recorded
		options SearchOptions
		// want is the interval, the reason of its upper end, and whether the lower one is confirmed.
		want string
	}{
		"an interval":          {[]Recorded{recordedRun(100, 0, 10, 20), long(recordedRun(200, 0, 10, 20)), recordedRun(400, 1, 10, 20)}, limit(20), "200..400 Loss true"},
		"in another order":     {[]Recorded{recordedRun(400, 1, 10, 20), recordedRun(200, 0, 10, 20), recordedRun(100, 0, 10, 20)}, limit(20), "200..400 Loss false"},
		"over a limit":         {[]Recorded{recordedRun(100, 0, 10, 20), recordedRun(200, 0, 30, 40)}, limit(29), "100..200 OverBudget false"},
		"a limit within steps": {[]Recorded{recordedRun(100, 0, 10, 20), recordedRun(200, 0, 30, 40)}, limit(30), "100..200 Coarse false"},
		"at the upper end":     {[]Recorded{recordedRun(100, 0, 10, 20), recordedRun(200, 0, 30, 40)}, limit(40), "200..0  false"},
		"a percentile that is not carried": {
			[]Recorded{recordedRun(100, 0, 10, 20)}, SearchOptions{Confirm: time.Minute, Budget: Budget{Limits: []Limit{{99.9, 40}}}}, "0..100 TooFewSamples false",
		},
		"a pass above a fail":   {[]Recorded{recordedRun(100, 0, 10, 20), recordedRun(200, 5, 10, 20), long(recordedRun(400, 0, 10, 20))}, limit(20), "100..200 Loss false"},
		"one of two runs fails": {[]Recorded{long(recordedRun(100, 0, 10, 20)), long(recordedRun(200, 0, 10, 20)), recordedRun(200, 1, 10, 20)}, limit(20), "100..200 Loss true"},
		"no pass":               {[]Recorded{recordedRun(100, 1, 10, 20)}, limit(20), "0..100 Loss false"},
		"grown":                 {[]Recorded{recordedRun(100, 0, 10, 11), recordedRun(200, 0, 24, 25)}, growing, "100..200 Growth false"},
		"perhaps grown":         {[]Recorded{recordedRun(100, 0, 10, 11), recordedRun(200, 0, 20, 21)}, growing, "100..200 Coarse false"},
		"not grown":             {[]Recorded{recordedRun(100, 0, 10, 11), recordedRun(200, 0, 18, 19)}, growing, "200..0  false"},
		"grown, or unanswered":  {[]Recorded{recordedRun(100, 0, 10, 11), unanswered(recordedRun(200, 0, 18, 19))}, growingOfSome, "100..200 Loss false"},
		"an unanswered lowest":  {[]Recorded{unanswered(recordedRun(100, 0, 10, 11)), recordedRun(200, 0, 18, 19)}, growingOfSome, "0..100 Loss false"},
		"the generator's limit": {[]Recorded{recordedRun(100, 0, 10, 20), slow(recordedRun(200, 0, 10, 20))}, limit(20), "100..200 GeneratorLimit false"},
		"no latencies":          {[]Recorded{blind(recordedRun(100, 0, 0, 0)), blind(recordedRun(200, 3, 0, 0))}, lossOnly, "100..200 Loss false"},
		"no latencies to judge": {[]Recorded{blind(recordedRun(100, 0, 0, 0))}, limit(20), "0..100 TooFewSamples false"},
	} {
		t.Run(name, func(t *testing.T) {
			load, err := JudgeRecorded(tc.runs, tc.options)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%d..%d %s %t", load.BestPass, load.LowestFail, load.Why.Reason, load.Confirmed); got != tc.want || len(load.Trials) != len(tc.runs) {
				t.Errorf("%s, want %s: %+v", got, tc.want, load.Trials)
			}
		})
	}
	if _, err := JudgeRecorded(nil, lossOnly); err == nil {
		t.Error("nothing is judged")
	}
	// The lowest rate is that of the runs, and no rule.
	if one, err := JudgeRecorded([]Recorded{recordedRun(100, 0, 10, 11)}, growing); err != nil || one.Rules == nil || !cmp.Equal(*one.Rules, growing) {
		t.Errorf("%v: the rules are %+v, want %+v", err, one.Rules, growing)
	}
	coarse, _ := JudgeRecorded([]Recorded{recordedRun(100, 0, 30, 40)}, limit(30))
	if !strings.Contains(coarse.Why.Message, "steps that are too wide") || coarse.Outcome(0).Verdict != Inconclusive {
		t.Errorf("%+v", coarse.Why)
	}
}
