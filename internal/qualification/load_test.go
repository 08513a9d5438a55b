// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package qualification

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// loadRecord is a record of a search that found the rates 40000 and 40300.
func loadRecord() Record {
	r := networkRecord()
	r.Kind, r.RepetitionMaximums, r.MaximumNanoseconds = v1alpha1.LatencyTestLoadSearch, []int64{50_000, 95_000}, 50_000
	r.Percentiles = []v1alpha1.LatencyPercentile{{Percentile: v1alpha1.P50, Nanoseconds: 6_500}}
	r.Network.Sizes, r.Network.SizeIntervals = r.Network.Sizes[:1], r.Network.SizeIntervals[:1]
	row := func(rate, lost, longest int64) []int64 {
		return []int64{rate, rate, 64, 60 * rate, lost, min(1, lost), 0, 0, 40, 60_000, 3, 300, 4_000, 6_000, 500, longest, 6_500, 300, 4_000, 5_500, 500, longest, 6_000}
	}
	r.Network.Rates = [][]int64{row(1000, 0, 30_000), row(40_000, 0, 50_000), row(40_300, 9, 900_000)}
	r.Network.Load = &LoadRecord{
		BestPass: 40_000, LowestFail: 40_300, State: v1alpha1.LoadConfirmed, Reason: v1alpha1.TestLoss, Message: "40300 messages a second: 9 were lost", Made: 21,
		Trials:     []v1alpha1.LoadTrial{v1alpha1.LoadTrialLow, v1alpha1.LoadTrialBestPass, v1alpha1.LoadTrialLowestFail},
		BestPasses: []int32{40_000, 41_000},
	}
	return r
}

func TestLoadRecordsAreReadAsTheyAreWritten(t *testing.T) {
	got, err := Parse(encoded(t, loadRecord()))
	if err != nil {
		t.Fatal(err)
	}
	m := got.Network.Measurement("node-2")
	want := &v1alpha1.LoadMeasurement{
		BestPassPerSecond: 40_000, LowestFailPerSecond: 40_300, Confirmation: v1alpha1.LoadConfirmed, FailReason: "Loss",
		FailMessage: "40300 messages a second: 9 were lost", Trials: 21, RepetitionBestPassesPerSecond: []int32{40_000, 41_000},
	}
	if diff := cmp.Diff(want, m.Load); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i, trial := range []v1alpha1.LoadTrial{v1alpha1.LoadTrialLow, v1alpha1.LoadTrialBestPass, v1alpha1.LoadTrialLowestFail} {
		if m.Rates[i].Trial != trial {
			t.Errorf("rate %d is of trial %q", i, m.Rates[i].Trial)
		}
	}
	if judged := Judged(m); len(judged) != 1 || judged[0].MaximumNanoseconds != 50_000 {
		t.Errorf("%d rates are judged", len(judged))
	}
}

func TestHostileLoadRecordsAreRefused(t *testing.T) {
	const bounds, trials = "a number of the search of the record is out of its bounds", "the search of the record tells "
	for name, tc := range map[string]struct {
		change func(*Record)
		want   string
	}{
		"no search":                       {func(r *Record) { r.Network.Load = nil }, "the record of kind LoadSearch has a search, or none"},
		"a search of a sweep":             {func(r *Record) { r.Kind = v1alpha1.LatencyTestRateSweep }, "the record of kind RateSweep has a search, or none"},
		"a negative rate":                 {func(r *Record) { r.Network.Load.BestPass = -1 }, bounds},
		"a rate beyond all":               {func(r *Record) { r.Network.Load.LowestFail = 5_000_001 }, bounds},
		"a fail below the pass":           {func(r *Record) { r.Network.Load.LowestFail = 40_000 }, bounds},
		"no trial":                        {func(r *Record) { r.Network.Load.Made = 0 }, bounds},
		"a confirmation of nothing":       {func(r *Record) { r.Network.Load.BestPass = 0 }, "the search of the record contradicts itself"},
		"an unknown confirmation":         {func(r *Record) { r.Network.Load.State = "Sure" }, "the search of the record contradicts itself"},
		"no repetition":                   {func(r *Record) { r.Network.Load.BestPasses = nil }, "the search of the record is not that of the repetition with the lowest rate"},
		"a lower repetition":              {func(r *Record) { r.Network.Load.BestPasses[1] = 39_999 }, "the search of the record is not that of the repetition with the lowest rate"},
		"a repetition beyond all":         {func(r *Record) { r.Network.Load.BestPasses[1] = 5_000_001 }, "the search of the record is not that of the repetition with the lowest rate"},
		"a reason that is not known":      {func(r *Record) { r.Network.Load.Reason = "Luck" }, "the search of the record has a reason that is not known, or for nothing"},
		"no reason":                       {func(r *Record) { r.Network.Load.Reason = "" }, "the search of the record has a reason that is not known, or for nothing"},
		"a reason for nothing":            {func(r *Record) { r.Network.Load.LowestFail = 0 }, "the search of the record has a reason that is not known, or for nothing"},
		"a sentence for terminals":        {func(r *Record) { r.Network.Load.Message = "\x1b[2J" }, "why a rate did not pass has characters in the record that cannot be printed"},
		"a trial too few":                 {func(r *Record) { r.Network.Load.Trials = r.Network.Load.Trials[:2] }, trials},
		"held for more than a day":        {func(r *Record) { r.Network.Load.HeldSeconds = 86_401 }, "a number of the search of the record is out of its bounds"},
		"held for less than nothing":      {func(r *Record) { r.Network.Load.HeldSeconds = -1 }, "a number of the search of the record is out of its bounds"},
		"a rate too few":                  {func(r *Record) { r.Network.Rates = r.Network.Rates[:2] }, trials},
		"trials in another order":         {func(r *Record) { r.Network.Load.Trials[0], r.Network.Load.Trials[1] = "BestPass", "Low" }, trials},
		"another rate than it found":      {func(r *Record) { r.Network.Rates[1][0] = 40_001 }, "the rates of the record are not those of its search"},
		"a longest of a rate that failed": {func(r *Record) { r.MaximumNanoseconds = 900_000 }, "the longest latency and the percentiles of the record are not the worst of its sizes or rates"},
	} {
		t.Run(name, func(t *testing.T) {
			r := loadRecord()
			tc.change(&r)
			if _, err := Parse(encoded(t, r)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("refused with %v, want %s", err, tc.want)
			}
		})
	}
}

func TestJudgeLoads(t *testing.T) {
	record := loadRecord()
	measured := &v1alpha1.LatencyMeasurement{MaximumNanoseconds: record.MaximumNanoseconds, Network: record.Network.Measurement("node-2")}
	const found = "40000 messages a second passed, 40300 did not (Loss); best pass: median 6.5 µs, longest 50 µs; to a server on node node-2, path Kernel"
	least := func(rate int32) *v1alpha1.LatencyBudget {
		return &v1alpha1.LatencyBudget{MinimumMessagesPerSecond: rate}
	}
	limited := func(l *v1alpha1.LoadMeasurement) {
		l.FailReason, l.FailMessage = v1alpha1.TestGeneratorLimit, "it sent 39000"
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.LoadMeasurement)
		budget *v1alpha1.LatencyBudget
		want   Verdict
	}{
		"no budget": {nil, nil, Verdict{v1alpha1.LatencyInconclusive, v1alpha1.TestNoBudget, "measured, but spec.budget does not say what is good enough: " + found}},
		"any rate": {nil, &v1alpha1.LatencyBudget{Path: v1alpha1.LatencyPathKernel},
			Verdict{v1alpha1.LatencyPassed, v1alpha1.TestWithinBudget, "within the budget: " + found}},
		"another path": {nil, &v1alpha1.LatencyBudget{Path: v1alpha1.LatencyPathAccelerated},
			Verdict{v1alpha1.LatencyInconclusive, v1alpha1.TestNotAccelerated, "the path was not accelerated: the kernel counted 2 for 2 messages"}},
		"at the bound": {nil, least(40_000), Verdict{v1alpha1.LatencyPassed, v1alpha1.TestWithinBudget, "within the budget: " + found}},
		"within the interval": {nil, least(40_100), Verdict{v1alpha1.LatencyInconclusive, v1alpha1.TestRate,
			"the budget asks for 40100 messages a second, and the highest rate that passes is from 40000 to 40300: look with a finer granularity"}},
		"too little": {nil, least(40_300), Verdict{v1alpha1.LatencyFailed, v1alpha1.TestRate,
			"40000 messages a second passed, and the budget asks for 40300: 40300 messages a second: 9 were lost"}},
		"the generator was the limit": {limited, least(50_000), Verdict{v1alpha1.LatencyInconclusive, v1alpha1.TestGeneratorLimit, "the next rate was not reached: it sent 39000"}},
		"the limit does not matter":   {limited, least(40_000), Verdict{v1alpha1.LatencyPassed, v1alpha1.TestWithinBudget, "within the budget: " + strings.Replace(found, "Loss", "GeneratorLimit", 1)}},
		"no time": {func(l *v1alpha1.LoadMeasurement) { l.Confirmation = v1alpha1.LoadUnconfirmed }, least(1), Verdict{v1alpha1.LatencyInconclusive, v1alpha1.TestUnfinished,
			"the search did not come to its end in its time: 40000 messages a second passed, and it was not confirmed"}},
		"no time, and for how long": {func(l *v1alpha1.LoadMeasurement) { l.Confirmation, l.HeldSeconds = v1alpha1.LoadUnconfirmed, 400 }, least(1), Verdict{v1alpha1.LatencyInconclusive, v1alpha1.TestUnfinished,
			"the search did not come to its end in its time: 40000 messages a second passed for 6m40s, and it was not confirmed"}},
		"not confirmed, without a budget": {func(l *v1alpha1.LoadMeasurement) { l.Confirmation, l.HeldSeconds = v1alpha1.LoadUnconfirmed, 400 }, nil, Verdict{v1alpha1.LatencyInconclusive, v1alpha1.TestNoBudget,
			"measured, but spec.budget does not say what is good enough: " + strings.Replace(found, "passed", "passed for 6m40s and were not confirmed", 1)}},
		"held for half a day": {func(l *v1alpha1.LoadMeasurement) { l.HeldSeconds = 43_200 }, least(1), Verdict{v1alpha1.LatencyPassed, v1alpha1.TestWithinBudget,
			"within the budget: " + strings.Replace(found, "passed", "passed for 12h0m0s", 1)}},
		"every rate passed": {func(l *v1alpha1.LoadMeasurement) { l.LowestFailPerSecond, l.FailReason, l.FailMessage = 0, "", "" }, &v1alpha1.LatencyBudget{Path: v1alpha1.LatencyPathKernel},
			Verdict{v1alpha1.LatencyInconclusive, v1alpha1.TestGeneratorLimit, "every rate up to 40000 messages a second passed: look higher"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := measured.DeepCopy()
			if tc.change != nil {
				tc.change(m.Network.Load)
			}
			if diff := cmp.Diff(tc.want, Judge(m, tc.budget)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLoadsAreComparedByTheirRates: a lower rate is worse.
func TestLoadsAreComparedByTheirRates(t *testing.T) {
	of := func(rates ...int32) *v1alpha1.LatencyMeasurement {
		return &v1alpha1.LatencyMeasurement{Network: &v1alpha1.NetworkMeasurement{Load: &v1alpha1.LoadMeasurement{RepetitionBestPassesPerSecond: rates}}}
	}
	for name, tc := range map[string]struct {
		after   *v1alpha1.LatencyMeasurement
		trend   Trend
		message string
	}{
		"lower":   {of(900, 950, 990), TrendWorse, "the highest rates that passed are lower than before in every repetition (900 to 990 a second, were 1000 to 1100 a second)"},
		"higher":  {of(1200, 1300, 1250), TrendBetter, "the highest rates that passed are higher than before in every repetition"},
		"overlap": {of(1200, 1000, 1250), TrendSame, "the highest rates that passed are within the spread between repetitions"},
		"none":    {of(0, 0, 0), TrendWorse, "the highest rates that passed are lower than before"},
	} {
		got := CompareMeasurements(of(1000, 1100, 1050), tc.after)
		if got.Trend != tc.trend || !strings.HasPrefix(got.Message, tc.message) {
			t.Errorf("%s: %s: %s", name, got.Trend, got.Message)
		}
	}
}

// TestParametersOfSearches: every search that the API takes is one that a program makes.
func TestParametersOfSearches(t *testing.T) {
	at := func(name v1alpha1.PercentileName) []v1alpha1.LatencyPercentile {
		return []v1alpha1.LatencyPercentile{{Percentile: name, Nanoseconds: 1000}}
	}
	for name, tc := range map[string]struct {
		given                 v1alpha1.LoadSearchTest
		lowest, first         int32
		sniff, trial, confirm time.Duration
	}{
		"nothing":            {v1alpha1.LoadSearchTest{}, 1000, 10_000, 2 * time.Second, 15 * time.Second, time.Minute},
		"low rates":          {v1alpha1.LoadSearchTest{HighestMessagesPerSecond: 500}, 500, 500, 2 * time.Second, 15 * time.Second, time.Minute},
		"a low first rate":   {v1alpha1.LoadSearchTest{FirstMessagesPerSecond: 10}, 10, 10, 2 * time.Second, 15 * time.Second, time.Minute},
		"a high lowest rate": {v1alpha1.LoadSearchTest{LowestMessagesPerSecond: 50_000}, 50_000, 50_000, 2 * time.Second, 15 * time.Second, time.Minute},
		"a high percentile":  {v1alpha1.LoadSearchTest{Percentiles: at(v1alpha1.P999)}, 1000, 10_000, 2 * time.Second, 112 * time.Second, 112 * time.Second},
		"the highest percentile": {v1alpha1.LoadSearchTest{Growth: &v1alpha1.LatencyGrowth{Percentile: v1alpha1.P9999, MaximumPercent: 300}}, 1000, 10_000,
			2 * time.Second, 1112 * time.Second, 1112 * time.Second},
		"a long sniff":  {v1alpha1.LoadSearchTest{SniffSeconds: 90}, 1000, 10_000, 90 * time.Second, 90 * time.Second, 90 * time.Second},
		"short":         {v1alpha1.LoadSearchTest{ConfirmSeconds: 1}, 1000, 10_000, time.Second, time.Second, time.Second},
		"a short trial": {v1alpha1.LoadSearchTest{TrialSeconds: 1}, 1000, 10_000, time.Second, time.Second, time.Minute},
		"long":          {v1alpha1.LoadSearchTest{TrialSeconds: 3600, ProbesPerSecond: 1}, 1000, 10_000, 2 * time.Second, time.Hour, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			p := ParametersOf(&v1alpha1.LatencyTestSpec{Kind: v1alpha1.LatencyTestLoadSearch, LoadSearch: &tc.given, Traffic: &v1alpha1.TestTraffic{}})
			l := p.Load
			if l.Lowest != tc.lowest || l.First != tc.first || l.Sniff != tc.sniff || l.Trial != tc.trial || l.Confirm != tc.confirm {
				t.Errorf("%+v", l)
			}
			options := latency.SearchOptions{
				Minimum: uint64(l.Lowest), Start: uint64(l.First), Maximum: uint64(l.Highest), Granularity: l.Granularity(), Sniff: l.Sniff, Search: l.Trial, Confirm: l.Confirm,
				Longest: p.Duration, Probes: uint64(l.ProbesPerSecond), Growth: l.Growth(),
			}
			if l.GrowthPercentile != "" {
				options.GrowthPercent = PercentOf(l.GrowthPercentile)
			}
			for _, bound := range l.Percentiles {
				options.Budget.Limits = append(options.Budget.Limits, latency.Limit{Percent: PercentOf(bound.Percentile), Nanoseconds: bound.Nanoseconds})
			}
			if _, err := latency.NewSearch(options); err != nil {
				t.Error(err)
			}
		})
	}
}
