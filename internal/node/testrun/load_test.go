// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package testrun

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// loadOf is a repetition that tried the rates 1000, 2000 and so on, and for which the last of them failed; passed says how many passed.
func loadOf(t *testing.T, least int64, passed, tried int) *latency.Result {
	t.Helper()
	counts := make([]int, 0, tried)
	for range tried {
		counts = append(counts, 300)
	}
	result := sweep(t, least, counts...)
	result.Kind, result.Load = latency.KindLoadSearch, &latency.Load{BestPass: uint64(1000 * passed), Confirmed: passed > 0, HeldNanoseconds: int64(passed) * 2_900_000_000}
	for i, rate := range result.Rates {
		trial := latency.Trial{Phase: latency.PhaseSearch, Outcome: latency.Outcome{Verdict: latency.Passed}, Rate: rate}
		if i == 0 {
			trial.Phase = latency.PhaseLow
		}
		if i >= passed {
			trial.Outcome = latency.Outcome{Verdict: latency.Failed, Reason: latency.ReasonGrowth, Message: "grew\nmuch"}
			result.Load.LowestFail, result.Load.Why = rate.PerSecond, trial.Outcome
		}
		result.Load.Trials = append(result.Load.Trials, trial)
	}
	result.Rates = nil
	return result
}

func TestRecordOfASearch(t *testing.T) {
	// The second repetition found the lower rate, and is told.
	results := []*latency.Result{loadOf(t, 5000, 3, 3), loadOf(t, 6000, 2, 3)}
	r, err := LoadRecord(3, results, "6.12", "b1")
	if err != nil {
		t.Fatal(err)
	}
	accepted(t, r)
	want := &qualification.LoadRecord{
		BestPass: 2000, LowestFail: 3000, State: v1alpha1.LoadConfirmed, HeldSeconds: 5, Reason: "Growth", Message: "grew much", Made: 3,
		Trials:     []v1alpha1.LoadTrial{v1alpha1.LoadTrialLow, v1alpha1.LoadTrialBestPass, v1alpha1.LoadTrialLowestFail},
		BestPasses: []int32{3000, 2000},
	}
	if diff := cmp.Diff(want, r.Network.Load); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int64{6500, 7500}, r.Network.Medians); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(r.Network.Rates) != 3 || r.Network.Rates[1][0] != 2000 || r.MaximumNanoseconds != 8990 || r.Histogram == "" {
		t.Errorf("%+v", r)
	}
}

func TestRecordsOfSearchesThatFoundLittle(t *testing.T) {
	for name, results := range map[string][]*latency.Result{
		"no rate passed":        {loadOf(t, 5000, 0, 1)},
		"every rate passed":     {loadOf(t, 5000, 2, 2)},
		"one of two found none": {loadOf(t, 5000, 2, 2), loadOf(t, 5000, 0, 1)},
		"the lowest alone":      {loadOf(t, 5000, 1, 2)},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := LoadRecord(3, results, "6.12", "b1")
			if err != nil {
				t.Fatal(err)
			}
			accepted(t, r)
		})
	}
	without := loadOf(t, 5000, 1, 1)
	without.Load.Trials = nil
	for name, results := range map[string][]*latency.Result{"no repetition": nil, "no search": {sweep(t, 5000, 300)}, "no trial": {without}} {
		if _, err := LoadRecord(3, results, "6.12", "b1"); err == nil {
			t.Errorf("%s is a record", name)
		}
	}
}

// TestWorstRepetition: of equal rates, the one that was not confirmed is told.
func TestWorstRepetition(t *testing.T) {
	confirmed, not := loadOf(t, 5000, 2, 3), loadOf(t, 5000, 2, 3)
	not.Load.Confirmed = false
	r, err := LoadRecord(3, []*latency.Result{confirmed, not}, "6.12", "b1")
	if err != nil || r.Network.Load.State != v1alpha1.LoadUnconfirmed {
		t.Errorf("%+v, %v", r.Network, err)
	}
}
