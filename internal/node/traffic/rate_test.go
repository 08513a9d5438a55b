// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux

package traffic

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// slow is a sweep that a busy machine keeps up with, and that loses nothing there.
func slow(port int) RateRequest {
	r := DefaultRateRequest()
	r.Request = quick(port)
	r.Transport, r.Sizes, r.Rates, r.Duration, r.Timeout, r.Buffer = latency.UDP, []int{64}, []uint64{100, 200}, time.Second, 10*time.Second, 1<<20
	return r
}

func measureSlowly(t *testing.T, r RateRequest) *latency.Result {
	t.Helper()
	got, err := MeasureRates(t.Context(), os.Getenv(sanitizedVariable), r, latency.Budget{}, func(Progress) {})
	if err != nil {
		t.Fatal(err)
	}
	if got.Kind != latency.KindRateSweep || len(got.Sizes) != 1 || got.Path.State != latency.PathKernel {
		t.Fatalf("%+v", got)
	}
	return got
}

func TestRates(t *testing.T) {
	port, _, _ := serving(t)
	for _, transport := range []latency.Transport{latency.UDP, latency.Multicast} {
		r := slow(port)
		r.Transport = transport
		for _, want := range []uint64{100, 200} {
			r.Rates = []uint64{want}
			one := measureSlowly(t, r).Rates[0]
			if diff := cmp.Diff(latency.Stream{Sent: want}, one.Load); diff != "" || one.AnswersLost != 0 || one.FromIntended.Samples != want || one.FromActual.Samples != want {
				t.Errorf("%s: %s: %+v", transport, diff, one)
			}
			if one.FromActual.MaximumNanoseconds > one.FromIntended.MaximumNanoseconds {
				t.Errorf("messages were on their way before they were to leave: %+v", one)
			}
		}
	}
}

func TestFewAnswers(t *testing.T) {
	port, _, _ := serving(t)
	r := slow(port)
	r.Rates, r.Answers = []uint64{200}, 20
	if got := measureSlowly(t, r).Rates[0]; got.FromIntended.Samples != 20 || got.AnswersWanted != 20 || got.Load.Sent != 200 {
		t.Errorf("%+v", got)
	}
}

func TestProbes(t *testing.T) {
	port, _, _ := serving(t)
	r := slow(port)
	r.Rates, r.Probes = []uint64{200}, 50
	got := measureSlowly(t, r).Rates[0]
	if diff := cmp.Diff(&latency.Stream{Sent: 50}, got.Probes); diff != "" || got.FromIntended.Samples != 50 || got.Load != (latency.Stream{Sent: 200}) {
		t.Errorf("%s: %+v", diff, got)
	}
}

func TestRateOf(t *testing.T) {
	times := &StreamTimes{
		Rate: 1000, Bytes: 64, Count: 10, Elapsed: 9_000_000, Wanted: 3, Load: Tally{Received: 7, Duplicates: 1, Reordered: 2, Gaps: 3},
		Answers: []Answer{{0, 500, 2000}, {1000, 1000, 1100}},
	}
	quiet := &latency.Result{Sizes: []latency.Size{{Distribution: latency.Distribution{MeanNanoseconds: 400}}}}
	got, err := rateOf(times, quiet, false)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(got.AchievedPerSecond-1000) > 1e-9 || got.AnswersLost != 1 || got.Load != (latency.Stream{Sent: 10, Lost: 3, Duplicates: 1, Reordered: 2, Gaps: 3}) {
		t.Errorf("%+v", got)
	}
	if got.FromIntended.MaximumNanoseconds != 1600 || got.FromIntended.MinimumNanoseconds != 0 || got.FromActual.MaximumNanoseconds != 1100 {
		t.Errorf("%+v", got)
	}
	if whole, _ := rateOf(times, quiet, true); whole.FromIntended.MaximumNanoseconds != 2000 {
		t.Errorf("%+v", whole)
	}
}

func TestRateRequestRefuses(t *testing.T) {
	cases := map[string]struct {
		change func(*RateRequest)
		want   string
	}{
		"TCP":           {func(r *RateRequest) { r.Transport = latency.TCP }, "datagrams of one size"},
		"two sizes":     {func(r *RateRequest) { r.Sizes = []int{64, 65} }, "datagrams of one size"},
		"small":         {func(r *RateRequest) { r.Sizes = []int{23} }, "at least 24 bytes"},
		"no rate":       {func(r *RateRequest) { r.Rates = nil }, "0 rates"},
		"a rate of 0":   {func(r *RateRequest) { r.Rates = []uint64{0} }, "rate 0"},
		"many":          {func(r *RateRequest) { r.Rates, r.Duration = []uint64{10_000_000}, time.Minute }, "400000000 in all"},
		"no duration":   {func(r *RateRequest) { r.Duration = 0 }, "duration 0s"},
		"no answers":    {func(r *RateRequest) { r.Answers = 0 }, "0 answers"},
		"many probes":   {func(r *RateRequest) { r.Probes = 1_000_000 }, "1000000 probes"},
		"what is below": {func(r *RateRequest) { r.Host = "" }, "is missing"},
	}
	for name, tc := range cases {
		r := slow(1)
		if err := r.Check(); err != nil {
			t.Fatal(err)
		}
		tc.change(&r)
		if err := r.Check(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: the error is %v, want %q", name, err, tc.want)
		}
	}
}

func TestSearchLoad(t *testing.T) {
	port, _, _ := serving(t)
	options := latency.SearchOptions{
		Minimum: 50, Start: 100, Maximum: 200, Granularity: 0.5, Sniff: 200 * time.Millisecond, Search: 500 * time.Millisecond, Confirm: 500 * time.Millisecond, Probes: 50, Retries: 3,
		Budget: latency.Budget{LeastPerSecond: 200},
	}
	var steps []latency.Phase
	r := slow(port)
	r.Timeout = 10 * time.Second
	got, err := SearchLoad(t.Context(), os.Getenv(sanitizedVariable), r, options, func(s latency.Step) { steps = append(steps, s.Phase) }, func(Progress) {})
	if err != nil {
		t.Fatal(err)
	}
	if got.Kind != latency.KindLoadSearch || len(got.Load.Trials) != len(steps) || got.Load.Trials[0].Phase != latency.PhaseLow || got.Load.Trials[0].Rate.Probes == nil {
		t.Errorf("%+v, %+v, %s", got.Load, got.Outcome, steps)
	}
	// A busy machine may not keep the schedule, and that is what is then said.
	passed := got.Outcome.Reason == latency.ReasonWithinBudget && got.Load.BestPass == 200 && got.Load.Confirmed
	if !passed && got.Outcome.Reason != latency.ReasonGeneratorLimit {
		t.Errorf("%+v, %+v", got.Load, got.Outcome)
	}
}

func TestSearchWithoutEnd(t *testing.T) {
	port, _, stop := serving(t)
	options := latency.SearchOptions{Minimum: 50, Start: 100, Maximum: 200, Granularity: 0.5, Sniff: 1e8, Search: 1e8, Confirm: 1e8, Probes: 50}
	r := slow(port)
	r.Timeout = 10 * time.Second
	options.Budget.Accelerated = true
	look := func() (*latency.Result, error) {
		return SearchLoad(t.Context(), os.Getenv(sanitizedVariable), r, options, func(latency.Step) {}, func(Progress) {})
	}
	if got, err := look(); err != nil || got.Outcome.Reason != latency.ReasonNotAccelerated {
		t.Errorf("%+v, %v", got, err)
	}
	stop()
	if got, err := look(); err != nil || got.Outcome.Reason != latency.ReasonUnreachable {
		t.Errorf("%+v, %v", got, err)
	}
	options.Sniff = 0
	if got, err := look(); err == nil {
		t.Errorf("a search with trials of no length gives %+v", got)
	}
}
