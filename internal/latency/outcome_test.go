// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func measured(t *testing.T, n int, lost uint64) *Result {
	t.Helper()
	d, err := Distribute(ramp(n))
	if err != nil {
		t.Fatal(err)
	}
	return &Result{
		Kind:  KindPingPong,
		Path:  PathOf(EndOf(2000, 2000, true), EndOf(2000, 2000, true)),
		Sizes: []Size{{Bytes: 1, Distribution: d}, {Bytes: 64, Lost: lost, Distribution: d}},
	}
}

func TestJudge(t *testing.T) {
	none, some := 0.0, 2000.0
	cases := map[string]struct {
		samples int
		lost    uint64
		budget  Budget
		want    Outcome
	}{
		"no budget":                {1000, 1, Budget{}, Outcome{Passed, ReasonMeasured, "measured, without a budget"}},
		"no budget, and no answer": {0, 7, Budget{}, Outcome{Inconclusive, ReasonTooFewSamples, "1 bytes: no message came back"}},
		"within": {1000, 0, Budget{Limits: []Limit{{50, 600}, {90, 901}}, MaximumNanoseconds: 1000, LossPartsPerMillion: &none},
			Outcome{Passed, ReasonWithinBudget, "within the budget"}},
		"over": {1000, 0, Budget{Limits: []Limit{{90, 900}}}, Outcome{Failed, ReasonOverBudget, "1 bytes: 90 % is 901ns, and the budget has 900ns"}},
		"over and unknown": {1000, 0, Budget{Limits: []Limit{{99.9, 900}, {90, 900}}},
			Outcome{Failed, ReasonOverBudget, "1 bytes: 90 % is 901ns, and the budget has 900ns"}},
		"maximum":   {1000, 0, Budget{MaximumNanoseconds: 999}, Outcome{Failed, ReasonOverBudget, "1 bytes: the maximum is 1µs, and the budget has 999ns"}},
		"too few":   {1000, 0, Budget{Limits: []Limit{{99, 9000}}}, Outcome{Inconclusive, ReasonTooFewSamples, "1 bytes: 1000 samples do not carry 99 %, which takes 10000"}},
		"loss":      {1000, 3, Budget{LossPartsPerMillion: &some}, Outcome{Failed, ReasonLoss, "64 bytes: 3 of 1003 messages were lost, and the budget has 2000 parts per million"}},
		"some loss": {1000, 2, Budget{LossPartsPerMillion: &some}, Outcome{Passed, ReasonWithinBudget, "within the budget"}},
		"loss beyond any maximum": {1000, 1, Budget{MaximumNanoseconds: 1000}, Outcome{Failed, ReasonLoss,
			"64 bytes: 1 of 1001 messages were lost, so that not all of them came within 1µs"}},
		"no loss, and a maximum":             {1000, 0, Budget{MaximumNanoseconds: 1000}, Outcome{Passed, ReasonWithinBudget, "within the budget"}},
		"loss that may be, beside a maximum": {1000, 2, Budget{MaximumNanoseconds: 1000, LossPartsPerMillion: &some}, Outcome{Passed, ReasonWithinBudget, "within the budget"}},
		"more lost than the percentile leaves": {1000, 112, Budget{Limits: []Limit{{90, 901}}}, Outcome{Failed, ReasonLoss,
			"64 bytes: 112 of 1112 messages had no answer, so that no 90 % of them had one within 901ns"}},
		"just as many": {9000, 1000, Budget{Limits: []Limit{{90, 9001}}}, Outcome{Passed, ReasonWithinBudget, "within the budget"}},
		"just as many of a thousand": {99_900, 100, Budget{Limits: []Limit{{99.9, 1}}}, Outcome{Inconclusive, ReasonTooFewSamples,
			"1 bytes: 99900 samples do not carry 99.9 %, which takes 100000"}},
		"as many lost": {1000, 111, Budget{Limits: []Limit{{90, 901}}}, Outcome{Passed, ReasonWithinBudget, "within the budget"}},
		"all lost":     {0, 0, Budget{MaximumNanoseconds: 1}, Outcome{Inconclusive, ReasonTooFewSamples, "1 bytes: no message came back"}},
		"the kernel": {1000, 0, Budget{Accelerated: true}, Outcome{Inconclusive, ReasonNotAccelerated,
			"the path was not accelerated: the kernel counted 2000 for 2000 messages at the client and 2000 for 2000 messages at the server"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Judge(measured(t, tc.samples, tc.lost), tc.budget)); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, budget := range []Budget{{}, {MaximumNanoseconds: 1}} {
		if got := Judge(&Result{}, budget); got.Verdict != Inconclusive {
			t.Errorf("a measurement of nothing is %+v", got)
		}
	}
}

// TestJudgeWithoutAnswers: what has no sample of one size, or of one rate, has measured nothing there, also where nothing is asked of it.
func TestJudgeWithoutAnswers(t *testing.T) {
	sizes := measured(t, 1000, 0)
	sizes.Sizes[1].Distribution, sizes.Sizes[1].Lost = Distribution{}, 9
	rate := Rate{PerSecond: 100, AchievedPerSecond: 100, Load: Stream{Sent: 1000}, FromIntended: sizes.Sizes[0].Distribution}
	silent := rate
	silent.FromIntended, silent.AnswersWanted, silent.AnswersLost = Distribution{}, 1000, 1000
	for want, result := range map[string]*Result{
		"64 bytes: no message came back":              sizes,
		"100 messages a second: no message came back": {Kind: KindRateSweep, Sizes: sizes.Sizes[:1], Rates: []Rate{rate, silent}},
	} {
		if diff := cmp.Diff(Outcome{Inconclusive, ReasonTooFewSamples, want}, Judge(result, Budget{})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestPath(t *testing.T) {
	ends := map[PathState]PathEnd{
		PathKernel: EndOf(1000, 1004, true), PathAccelerated: EndOf(1000, 30, true), PathMixed: EndOf(1000, 500, true), PathUnknown: EndOf(1000, 0, false),
	}
	for want, end := range ends {
		if end.State != want {
			t.Errorf("%+v is not %s", end, want)
		}
	}
	if nothing := EndOf(0, 0, true); nothing.State != PathUnknown {
		t.Errorf("without messages, the path is %+v", nothing)
	}
	cases := []struct{ client, server, want PathState }{
		{PathKernel, PathKernel, PathKernel},
		{PathAccelerated, PathAccelerated, PathAccelerated},
		{PathAccelerated, PathKernel, PathMixed},
		{PathMixed, PathMixed, PathMixed},
		{PathUnknown, PathKernel, PathUnknown},
	}
	for _, tc := range cases {
		if got := PathOf(ends[tc.client], ends[tc.server]); got.State != tc.want {
			t.Errorf("%s and %s are %s, want %s", tc.client, tc.server, got.State, tc.want)
		}
	}
	if got, want := PathOf(ends[PathAccelerated], ends[PathUnknown]).Message, "the kernel counted 30 for 1000 messages at the client and what could not be read at the server"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
