// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux

package traffic

import (
	"fmt"
	"maps"
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
	got, err := timesOf(times, wayBack(quiet, false)).distribute()
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(got.AchievedPerSecond-1000) > 1e-9 || got.AnswersLost != 1 || got.Load != (latency.Stream{Sent: 10, Lost: 3, Duplicates: 1, Reordered: 2, Gaps: 3}) {
		t.Errorf("%+v", got)
	}
	nanoseconds := []int64{got.FromIntended.MaximumNanoseconds, got.FromIntended.MinimumNanoseconds, got.FromActual.MaximumNanoseconds, got.WayBackNanoseconds}
	if diff := cmp.Diff([]int64{1600, 0, 1100, 400}, nanoseconds); diff != "" || got.BelowWayBack != 1 {
		t.Errorf("%s: %+v", diff, got)
	}
	want := latency.TimeLineOf(9_000_000, maps.All(map[int64]int64{0: 1600}))
	if diff := cmp.Diff(want, got.TimeLine); diff != "" {
		t.Errorf("time line (-want +got):\n%s", diff)
	}
	if whole, _ := timesOf(times, wayBack(quiet, true)).distribute(); whole.FromIntended.MaximumNanoseconds != 2000 {
		t.Errorf("%+v", whole)
	}
}

func TestWayBackRemark(t *testing.T) {
	for below, want := range map[uint64]bool{0: false, 9: false, 10: true} {
		remark := wayBackRemark(&latency.Rate{FromIntended: latency.Distribution{Samples: 1000}, BelowWayBack: below, WayBackNanoseconds: 400})
		said := strings.Contains(remark, fmt.Sprintf("%d of 1000 answers took less in all than 400ns", below))
		if said != want || (remark != "") != want {
			t.Errorf("%d below: remark %q", below, remark)
		}
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
		"long probes":   {func(r *RateRequest) { r.Rates, r.Probes, r.Duration = []uint64{1}, 1000, 10*time.Hour }, "for 10h0m0s: a stream has 33666666 in all"},
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

// TestLongTrials: a trial of more messages than a stream has goes in several, and is as long as it was asked for.
func TestLongTrials(t *testing.T) {
	port, _, _ := serving(t)
	r := slow(port)
	r.Probes, r.mostPerStream = 50, 100
	step := latency.Step{Phase: latency.PhaseConfirm, Rate: 200, Duration: 1100 * time.Millisecond}
	// A busy machine may not keep the schedule in one of the streams, which ends the trial.
	for range 5 {
		got, err := measureTrial(t.Context(), os.Getenv(sanitizedVariable), &r, step, func(Progress) {})
		if err != nil {
			t.Fatal(err)
		}
		if one := &got.Rates[0]; !one.IsOnSchedule() {
			continue
		}
		checkThreeStreams(t, &got.Rates[0])
		if got.ElapsedNanoseconds < step.Duration.Nanoseconds() {
			t.Errorf("%d ns", got.ElapsedNanoseconds)
		}
		if len(got.Remarks) == 0 || !strings.Contains(got.Remarks[len(got.Remarks)-1], "200 messages a second for 1.1s went in 3 streams one after the other: a stream has 100 messages") {
			t.Errorf("%q", got.Remarks)
		}
		return
	}
	t.Error("no trial was on its schedule")
}

// TestWayBackOfASearch: what the first stream has found of the way back holds for all that follow.
func TestWayBackOfASearch(t *testing.T) {
	port, _, _ := serving(t)
	r := slow(port)
	step := latency.Step{Phase: latency.PhaseSearch, Rate: 200, Duration: 100 * time.Millisecond}
	trial := func() *latency.Rate {
		t.Helper()
		got, err := measureTrial(t.Context(), os.Getenv(sanitizedVariable), &r, step, func(Progress) {})
		if err != nil || len(got.Rates) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		return &got.Rates[0]
	}
	if first := trial(); first.FromIntended.MaximumNanoseconds == 0 || r.back == nil || *r.back <= 0 {
		t.Fatalf("the first trial: %+v, way back %v", first, r.back)
	}
	*r.back = time.Hour.Nanoseconds()
	if later := trial(); later.FromIntended.MaximumNanoseconds != 0 {
		t.Errorf("a later trial has a way back of its own: %+v", later)
	}
}

// checkThreeStreams wants the messages of three streams of 367 ms, and as many probes, all of which were answered.
func checkThreeStreams(t *testing.T, one *latency.Rate) {
	t.Helper()
	const messages, probes = 3 * 73, 3 * 18
	if diff := cmp.Diff(latency.Stream{Sent: messages}, one.Load); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if one.Probes.Sent != probes || one.AnswersWanted != probes || one.FromIntended.Samples != probes {
		t.Errorf("%+v of %+v", one, one.Probes)
	}
}

func TestInStreams(t *testing.T) {
	for name, tc := range map[string]struct {
		step        latency.Step
		probes      int
		wantStreams int
		wantEach    time.Duration
	}{
		"one":                        {latency.Step{Rate: 10_000, Duration: 10 * time.Hour}, 0, 1, 10 * time.Hour},
		"as many as there can be":    {latency.Step{Rate: 1_000_000, Duration: 400 * time.Second}, 1000, 1, 400 * time.Second},
		"one more":                   {latency.Step{Rate: 1_000_000, Duration: 401 * time.Second}, 1000, 2, 200_500 * time.Millisecond},
		"half a day":                 {latency.Step{Rate: 1_000_000, Duration: 12 * time.Hour}, 1000, 108, 400 * time.Second},
		"half a day of the highest":  {latency.Step{Rate: 5_000_000, Duration: 12 * time.Hour}, 1000, 540, 80 * time.Second},
		"what does not divide":       {latency.Step{Rate: 1_234_567, Duration: time.Hour}, 1000, 12, 300 * time.Second},
		"parts of a millisecond":     {latency.Step{Rate: 4_999_999, Duration: 1001 * time.Second}, 1000, 13, 77 * time.Second},
		"more than the program does": {latency.Step{Rate: 1e12, Duration: time.Second}, 1000, 1000, time.Millisecond},
		"as many probes as are read": {latency.Step{Rate: 10_000, Duration: 336_666 * time.Millisecond}, 100_000, 1, 336_666 * time.Millisecond},
		"more probes than are read":  {latency.Step{Rate: 10_000, Duration: 336_668 * time.Millisecond}, 100_000, 2, 168_334 * time.Millisecond},
		"half a day of probes":       {latency.Step{Rate: 5000, Duration: 12 * time.Hour}, 1000, 2, 6 * time.Hour},
	} {
		r := slow(1)
		r.Probes = tc.probes
		if got := r.inStreams(tc.step); got != tc.wantStreams || r.Duration != tc.wantEach {
			t.Errorf("%s: %d streams of %s, want %d of %s", name, got, r.Duration, tc.wantStreams, tc.wantEach)
		}
		if err := r.Check(); (err != nil) != (tc.step.Rate > fastest) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStreamsAddUp(t *testing.T) {
	one := &rateTimes{intended: []int64{1, 2}, actual: []int64{1, 1}, rate: latency.Rate{
		PerSecond: 100, AchievedPerSecond: 99, Bytes: 64, Load: latency.Stream{Sent: 10, Lost: 3, Duplicates: 1, Reordered: 2, Gaps: 2},
		Probes: &latency.Stream{Sent: 3, Lost: 1, Gaps: 1}, Late: 2, MaximumLatenessNanoseconds: 50, AnswersWanted: 3, AnswersLost: 1,
		TimeLine: &latency.TimeLine{ElapsedNanoseconds: 10, LongestNanoseconds: []int64{2}},
	}}
	two := &rateTimes{intended: []int64{9}, actual: []int64{8}, rate: latency.Rate{
		PerSecond: 100, AchievedPerSecond: 100, Bytes: 64, Load: latency.Stream{Sent: 11, Lost: 1, Gaps: 1}, Probes: &latency.Stream{Sent: 2, Lost: 1, Gaps: 1},
		Late: 1, MaximumLatenessNanoseconds: 70, AnswersWanted: 2, AnswersLost: 1,
		TimeLine: &latency.TimeLine{ElapsedNanoseconds: 20, LongestNanoseconds: []int64{9}},
	}}
	var all rateTimes
	all.add(one)
	all.add(two)
	got, err := all.distribute()
	if err != nil {
		t.Fatal(err)
	}
	want := latency.Rate{
		PerSecond: 100, AchievedPerSecond: 99, Bytes: 64, Load: latency.Stream{Sent: 21, Lost: 4, Duplicates: 1, Reordered: 2, Gaps: 3},
		Probes: &latency.Stream{Sent: 5, Lost: 2, Gaps: 2}, Late: 3, MaximumLatenessNanoseconds: 70, AnswersWanted: 5, AnswersLost: 2,
	}
	if d := &got.FromIntended; d.Samples != 3 || d.MinimumNanoseconds != 1 || d.MaximumNanoseconds != 9 || got.FromActual.MaximumNanoseconds != 8 {
		t.Errorf("%+v", got)
	}
	if line := got.TimeLine; line.ElapsedNanoseconds != 30 || line.LongestNanoseconds[10] != 2 || line.LongestNanoseconds[40] != 9 {
		t.Errorf("the time line is %+v", line)
	}
	got.FromIntended, got.FromActual, got.TimeLine = latency.Distribution{}, latency.Distribution{}, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatEndsASearch(t *testing.T) {
	accelerated := latency.Budget{Accelerated: true}
	rates, clock := []latency.Rate{{}}, latency.Outcome{Verdict: latency.Inconclusive, Reason: latency.ReasonClockUnsteady}
	for name, tc := range map[string]struct {
		trial  latency.Result
		budget latency.Budget
		want   latency.Reason
	}{
		"nothing":              {latency.Result{Rates: rates}, latency.Budget{}, ""},
		"a rate too high":      {latency.Result{Rates: rates, Outcome: latency.Outcome{Reason: latency.ReasonGeneratorLimit}}, latency.Budget{}, ""},
		"no rate":              {latency.Result{Outcome: latency.Outcome{Reason: latency.ReasonPeerVanished}}, latency.Budget{}, latency.ReasonPeerVanished},
		"a clock":              {latency.Result{Rates: rates, Outcome: clock}, latency.Budget{}, latency.ReasonClockUnsteady},
		"another path":         {latency.Result{Rates: rates, Path: latency.Path{State: latency.PathKernel}}, accelerated, latency.ReasonNotAccelerated},
		"the path that counts": {latency.Result{Rates: rates, Path: latency.Path{State: latency.PathAccelerated}}, accelerated, ""},
	} {
		if got, ended := endOfSearch(&tc.trial, &tc.budget); got.Reason != tc.want || ended != (tc.want != "") {
			t.Errorf("%s: %+v, %t, want %q", name, got, ended, tc.want)
		}
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
