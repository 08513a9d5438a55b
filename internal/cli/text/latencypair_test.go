// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/golden"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// lengths are so many latencies in nanoseconds that differ by 1, in an order in which none tells of the next, around a middle.
func lengths(t *testing.T, n, middle int64) latency.Distribution {
	t.Helper()
	samples := make([]int64, n)
	for i := range samples {
		samples[i] = middle - n/2 + int64(i)*7919%n
	}
	d, err := latency.Distribute(samples)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func ended(verdict latency.Verdict, reason latency.Reason, message string) latency.Outcome {
	return latency.Outcome{Verdict: verdict, Reason: reason, Message: message}
}

func setup(client latency.Host) latency.Setup {
	return latency.Setup{Transport: latency.UDP, Waiting: latency.Spin, Peer: "10.0.0.2:2048", Client: client, Server: latency.Host{Name: "far", Kernel: "6.12", CPU: 4}}
}

// pingPongs are two results that have one size in common, of which the first has too few samples for 99 %.
func pingPongs(t *testing.T) (before, after *latency.Result) {
	before = &latency.Result{
		Kind: latency.KindPingPong, Outcome: ended(latency.Passed, latency.ReasonMeasured, "measured"), Path: latency.Path{State: latency.PathKernel},
		Setup: setup(latency.Host{Name: "near", Kernel: "6.12", CPU: 4, Environment: []string{"EF_POLL_USEC=1"}}),
		Sizes: []latency.Size{{Bytes: 32, Distribution: lengths(t, 2000, 9000)}, {Bytes: 64, Lost: 1, Distribution: lengths(t, 2000, 9000)}, {Bytes: 256, Lost: 3}},
	}
	after = &latency.Result{
		Kind: latency.KindPingPong, Outcome: ended(latency.Failed, latency.ReasonOverBudget, "64 bytes: the maximum is 10µs, and the budget has 9µs"),
		Path: latency.Path{State: latency.PathAccelerated}, Setup: setup(latency.Host{Name: "near", Kernel: "6.12", CPU: -1, Environment: []string{"EF_POLL_USEC=1", "LD_PRELOAD=libonload.so"}}),
		Sizes: []latency.Size{{Bytes: 64, Distribution: lengths(t, 11_000, 9005)}, {Bytes: 32, Distribution: lengths(t, 2000, 3000)}, {Bytes: 1024, Distribution: lengths(t, 2000, 3000)}},
	}
	return before, after
}

func sweeps(t *testing.T) (before, after *latency.Result) {
	rate := func(perSecond uint64, achieved float64, unanswered uint64, middle int64) latency.Rate {
		return latency.Rate{
			PerSecond: perSecond, AchievedPerSecond: achieved, Bytes: 64, Load: latency.Stream{Sent: perSecond, Lost: 7}, Late: 8, AnswersWanted: 2000 + unanswered, AnswersLost: unanswered,
			FromIntended: lengths(t, 2000, middle), FromActual: lengths(t, 2000, middle-1000),
		}
	}
	before = &latency.Result{
		Kind: latency.KindRateSweep, Outcome: ended(latency.Passed, latency.ReasonMeasured, "measured"), Setup: setup(latency.Host{Name: "near", CPU: 4}),
		Rates: []latency.Rate{rate(10_000, 10_000, 0, 9000), rate(50_000, 50_000, 0, 9000), rate(100_000, 99_999, 0, 9000)},
	}
	after = &latency.Result{
		Kind: latency.KindRateSweep, Outcome: ended(latency.Inconclusive, latency.ReasonGeneratorLimit, "the generator was the limit"), Setup: setup(latency.Host{Name: "near", CPU: 4}),
		Rates: []latency.Rate{rate(10_000, 10_000, 0, 6000), rate(50_000, 50_000, 300, 18_000), rate(100_000, 80_000, 0, 90_000)},
	}
	return before, after
}

func searches() (before, after *latency.Result) {
	of := func(best, lowest uint64, verdict latency.Verdict, bytes int) *latency.Result {
		return &latency.Result{
			Kind: latency.KindLoadSearch, Outcome: ended(verdict, latency.ReasonMeasured, "the highest rate"), Setup: setup(latency.Host{Name: "near", CPU: 4}),
			Load: &latency.Load{
				BestPass: best, LowestFail: lowest, Confirmed: true, HeldNanoseconds: 60_000_400_000, Why: ended(latency.Failed, latency.ReasonLoss, "3 of 9 messages were lost"),
				Trials: []latency.Trial{{Rate: latency.Rate{PerSecond: best, Bytes: bytes}}},
			},
		}
	}
	return of(100_000, 101_000, latency.Passed, 64), of(120_000, 121_000, latency.Passed, 128)
}

// rules are those of a search, with what changes them.
func rules(change func(*latency.SearchOptions)) *latency.SearchOptions {
	o := &latency.SearchOptions{
		Minimum: 1000, Start: 10_000, Maximum: 10_000_000, Granularity: 0.01, Sniff: 2 * time.Second, Search: 15 * time.Second, Confirm: time.Minute, Retries: 1,
		Growth: 10, GrowthPercent: 50, Probes: 1000, Budget: latency.Budget{LossPartsPerMillion: new(float64), Limits: []latency.Limit{{Percent: 99.9, Nanoseconds: 2e6}, {Percent: 99, Nanoseconds: 50_000}}},
	}
	change(o)
	return o
}

func TestLatencyPair(t *testing.T) {
	sizes, sizesAfter := pingPongs(t)
	rates, ratesAfter := sweeps(t)
	loads, loadsAfter := searches()
	loads.Load.Rules = rules(func(*latency.SearchOptions) {})
	loadsAfter.Load.Rules = rules(func(o *latency.SearchOptions) {
		o.Minimum, o.Start, o.Maximum, o.Granularity, o.Sniff, o.Search, o.Confirm, o.Retries = 2000, 20_000, 1_000_000, 0.02, time.Second, 10*time.Second, time.Hour, 0
		o.Growth, o.GrowthPercent, o.Probes, o.Longest = 1.5, 99, 500, 2*time.Hour
		o.Budget = latency.Budget{LossPartsPerMillion: new(1000.0), LatePartsPerMillion: new(0.5), MaximumNanoseconds: 3e6, LeastPerSecond: 200_000, Accelerated: true}
	})
	recorded, recordedAfter := searches()
	recorded.Generator, recordedAfter.Generator = "trex v3.04", "trex v3.04"
	recordedAfter.Load.BestPass, recordedAfter.Load.LowestFail, recordedAfter.Load.Confirmed, recordedAfter.Load.HeldNanoseconds = 0, 100_500, false, 0
	recordedAfter.Outcome = ended(latency.Inconclusive, latency.ReasonLoss, "no rate passed")
	for name, tc := range map[string]struct{ before, after *latency.Result }{
		"pingpong": {sizes, sizesAfter}, "rate": {rates, ratesAfter}, "load": {loads, loadsAfter}, "recorded": {recorded, recordedAfter},
	} {
		t.Run(name, func(t *testing.T) {
			golden.Assert(t, LatencyPair(tc.before, tc.after, NewPalette(false), 120), "pair-"+name+".txt")
		})
	}
}

// TestWhatPairsTell: what stands in the output of two results, and what does not, when one of them is changed.
func TestWhatPairsTell(t *testing.T) {
	cases := map[string]struct {
		change    func(before, after *latency.Result)
		want, not string
	}{
		"nothing else differs": {func(before, after *latency.Result) { after.Setup, after.Path = before.Setup, before.Path },
			"\nNothing that the results tell of both setups differs.\n", "WHAT ELSE DIFFERS"},
		"another group":           {func(_, after *latency.Result) { after.Setup.Group = "224.1.2.49" }, "\ngroup              -       224.1.2.49\n", ""},
		"round trips":             {func(before, after *latency.Result) { before.Setup.RoundTrip, after.Setup.RoundTrip = true, true }, "the round trip, with one message", "half of"},
		"a percentile of too few": {func(before, _ *latency.Result) { before.Sizes[1].Distribution.Samples = 199 }, "64     ratio                            -", "~1.00"},
		"too few answers":         {func(before, _ *latency.Result) { before.Sizes[0].Lost = 300 }, "32     ratio                            0.33      -", ""},
		"a length of nothing":     {func(_, after *latency.Result) { after.Sizes[1].Distribution.Percentiles[0].Nanoseconds = 0 }, "32     ratio                            -         0.39", ""},
		"an earlier version": {func(before, _ *latency.Result) { before.Sizes[1].Distribution.Percentiles[0].Independent = 0 },
			"\nbefore: a version before this one took samples that follow each other for independent,", "after: a version"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, after := pingPongs(t)
			tc.change(before, after)
			got := LatencyPair(before, after, NewPalette(false), 120)
			if !strings.Contains(got, tc.want) || tc.not != "" && strings.Contains(got, tc.not) {
				t.Errorf("want %q and not %q:\n%s", tc.want, tc.not, got)
			}
		})
	}
}

// TestRulesOfPairs: what two searches were judged by is told where it differs, and that it is not known where a result does not have it.
func TestRulesOfPairs(t *testing.T) {
	same := func(*latency.SearchOptions) {}
	other := func(o *latency.SearchOptions) { o.Budget.LossPartsPerMillion, o.Budget.Limits = new(1000.0), nil }
	const unknown = ": a version before this one did not save the rules of a search,"
	for name, tc := range map[string]struct {
		before, after *latency.SearchOptions
		generator     string
		want, not     string
	}{
		"the same": {rules(same), rules(same), "", "\nNothing that the results tell of both setups differs.\n", unknown},
		"limits in another order": {rules(same), rules(func(o *latency.SearchOptions) { slices.Reverse(o.Budget.Limits) }), "",
			"\nNothing that the results tell of both setups differs.\n", "WHAT ELSE DIFFERS"},
		"others": {rules(same), rules(other), "",
			"\nloss allowed       0 parts per million    1000 parts per million\nlimits             99% 50 µs, 99.9% 2 ms  -\n", unknown},
		"others of recorded runs": {rules(same), rules(other), "trex v3.04", "\nloss allowed       0 parts per million    1000 parts per million\n", "peer"},
		"one that is not known":   {nil, rules(same), "", "\nbefore" + unknown, "retries"},
		"none that is known":      {nil, nil, "trex v3.04", "\nbefore and after" + unknown, "WHAT ELSE DIFFERS"},
	} {
		t.Run(name, func(t *testing.T) {
			before, _ := searches()
			after, _ := searches()
			before.Load.Rules, after.Load.Rules, before.Generator, after.Generator = tc.before, tc.after, tc.generator, tc.generator
			got := LatencyPair(before, after, NewPalette(false), 120)
			if !strings.Contains(got, tc.want) || strings.Contains(got, tc.not) {
				t.Errorf("want %q and not %q:\n%s", tc.want, tc.not, got)
			}
		})
	}
}

// TestReported: latencies of messages on a schedule are told from round trips and from halves of them, and those of other generators from both.
func TestReported(t *testing.T) {
	for name, tc := range map[string]struct {
		kind            latency.Kind
		generator       string
		roundTrip       bool
		want, oneAtTime string
	}{
		"pingpong":       {latency.KindPingPong, "", false, "half of the round trip", "half of the round trip"},
		"whole":          {latency.KindPingPong, "", true, "the round trip", "the round trip"},
		"samples":        {latency.KindPingPong, "eflatency 9.0", false, "half of the round trip", "half of the round trip"},
		"rate":           {latency.KindRateSweep, "", false, "an estimate of one way", "half of the round trip"},
		"whole of rates": {latency.KindLoadSearch, "", true, "the round trip", "the round trip"},
		"recorded":       {latency.KindLoadSearch, "trex v3.04", false, "the way as the generator has measured it, from when messages left", "half of the round trip"},
	} {
		result := &latency.Result{Kind: tc.kind, Generator: tc.generator, Setup: latency.Setup{RoundTrip: tc.roundTrip}}
		if got, alone := Reported(result), ReportedOneAtATime(result); got != tc.want || alone != tc.oneAtTime {
			t.Errorf("%s: %q and %q, want %q and %q", name, got, alone, tc.want, tc.oneAtTime)
		}
	}
}
