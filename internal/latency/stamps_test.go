// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// stamped are the stamps of 1000 messages, of which so many have two.
func stamped(t *testing.T, complete int) *Stamps {
	t.Helper()
	samples := make([]int64, complete)
	for i := range samples {
		samples[i] = int64(i + 1)
	}
	d, err := Distribute(samples)
	if err != nil {
		t.Fatal(err)
	}
	return &Stamps{Messages: 1000, WithoutSent: uint64(1000 - complete), Wire: d, Host: d}
}

// TestJudgeStamps: where stamps were asked for and there is none, the measurement is no answer, whatever the program's own times are.
func TestJudgeStamps(t *testing.T) {
	passed := Outcome{Passed, ReasonMeasured, "measured, without a budget"}
	unstamped := Outcome{Inconclusive, ReasonUnstamped, "64 bytes: 1000 of 1000 messages (100 %) have no two stamps that can be used: 1000 lack that of sending, " +
		"0 that of the answer, and 0 have two that cannot be true"}
	cases := map[string]struct {
		stamps *Stamps
		budget Budget
		want   Outcome
	}{
		"not asked for":       {nil, Budget{}, passed},
		"all":                 {stamped(t, 1000), Budget{}, passed},
		"one":                 {stamped(t, 1), Budget{}, passed},
		"none":                {stamped(t, 0), Budget{}, unstamped},
		"none of no messages": {&Stamps{}, Budget{}, passed},
		"none, in the budget": {stamped(t, 0), Budget{MaximumNanoseconds: 1000}, unstamped},
		"none, over the budget": {stamped(t, 0), Budget{MaximumNanoseconds: 999},
			Outcome{Failed, ReasonOverBudget, "1 bytes: the maximum is 1µs, and the budget has 999ns"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			result := measured(t, 1000, 0)
			result.Sizes[1].Stamps = tc.stamps
			if diff := cmp.Diff(tc.want, Judge(result, tc.budget)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLackOfStamps(t *testing.T) {
	some := &Stamps{Messages: 1000, WithoutSent: 20, WithoutReceived: 7, Impossible: 3, Wire: Distribution{Samples: 970}}
	for want, s := range map[string]*Stamps{
		"": nil,
		"30 of 1000 messages (3 %) have no two stamps that can be used: 20 lack that of sending, 7 that of the answer, and 3 have two that cannot be true": some,
	} {
		if got := s.Lack(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := stamped(t, 1000).Lack(); got != "" {
		t.Errorf("of all: %q", got)
	}
}
