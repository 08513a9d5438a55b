// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/jitter"
)

// TestLatencyPages: the page has what was measured and what it is worth, and nothing of a cluster that is not there; names are no markup.
func TestLatencyPages(t *testing.T) {
	all := results(t)
	for _, of := range []string{"rate", "load"} {
		all[of].Sizes = all["pingpong"].Sizes
	}
	for name, tc := range map[string]struct {
		outcome latency.Outcome
		want    []string
	}{
		"pingpong": {latency.Outcome{Verdict: latency.Failed, Reason: latency.ReasonGrowth, Message: "64 bytes took <long>"}, []string{
			"probe pingpong", "PingPong", `<span class="bad">Failed</span>`, "64 bytes took &lt;long&gt;", "CPUs 4 ·", "64 bytes: 50 %", "kernel 6.12.0-rt",
			"Latencies are half of the round trip.",
		}},
		"rate": {latency.Outcome{Verdict: latency.Passed, Reason: latency.ReasonMeasured, Message: "measured"}, []string{"probe rate", "RateSweep", `<span class="good">Passed</span>`, "Latencies are an estimate of one way."}},
		"load": {latency.Outcome{Verdict: latency.Inconclusive, Reason: latency.ReasonUnfinished, Message: "unfinished"}, []string{"probe load", "LoadSearch", `<span class="warn">Inconclusive</span>`}},
	} {
		t.Run(name, func(t *testing.T) {
			result := all[name]
			result.Outcome, result.Setup.Client = tc.outcome, latency.Host{Name: "<script>worker-1", Kernel: "6.12.0-rt", CPU: 4}
			result.Setup.Server = latency.Host{Name: "worker-2", Kernel: "6.12.1-rt", CPU: -1}
			var out bytes.Buffer
			if err := writeLatency("html", &out, result); err != nil {
				t.Fatal(err)
			}
			expectPage(t, out.String(), append(tc.want, "&lt;script&gt;worker-1", "to a server on node worker-2, kernel 6.12.1-rt"))
		})
	}
}

// TestPagesWithoutFigures: a measurement that found nothing, or less than it was to, has a page with how it has ended and all that there is.
func TestPagesWithoutFigures(t *testing.T) {
	const figures = "<svg"
	all := results(t)
	unreachable := latency.Outcome{Verdict: latency.Inconclusive, Reason: latency.ReasonUnreachable, Message: "no connection to far"}
	unanswered := latency.Size{Bytes: 1024, Lost: 50}
	for name, tc := range map[string]struct {
		result    *latency.Result
		want, not string
	}{
		"no ping-pong":           {&latency.Result{Kind: latency.KindPingPong}, "PingPong", figures},
		"no rate":                {&latency.Result{Kind: latency.KindRateSweep}, "RateSweep", figures},
		"no trial":               {&latency.Result{Kind: latency.KindLoadSearch, Load: &latency.Load{}}, "LoadSearch", figures},
		"no search":              {&latency.Result{Kind: latency.KindLoadSearch, Sizes: all["pingpong"].Sizes}, "LoadSearch", figures},
		"a size without answer":  {&latency.Result{Kind: latency.KindPingPong, Sizes: append(all["pingpong"].Sizes, unanswered)}, "No message of 1024 bytes came back.", "1024 bytes: "},
		"the figures of others":  {&latency.Result{Kind: latency.KindPingPong, Sizes: append(all["pingpong"].Sizes, unanswered)}, "64 bytes: 50 %", "no figures"},
		"no size with an answer": {&latency.Result{Kind: latency.KindPingPong, Sizes: []latency.Size{unanswered}}, "No message of 1024 bytes came back.", figures},
		"no way back":            {&latency.Result{Kind: latency.KindRateSweep, Sizes: []latency.Size{unanswered}, Rates: all["rate"].Rates}, "There are no figures of messages on a schedule here", figures},
		"the way back alone": {&latency.Result{Kind: latency.KindRateSweep, Sizes: all["pingpong"].Sizes, Setup: latency.Setup{RoundTrip: true}},
			"Latencies are the round trip.", "an estimate"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.result.Outcome = unreachable
			var out bytes.Buffer
			if err := writeJudged("html", &out, tc.result); err == nil || err.Error() != "inconclusive (Unreachable): no connection to far" || ExitCode(err, 2) != 3 {
				t.Errorf("ends with %d: %v", ExitCode(err, 2), err)
			}
			for _, word := range []string{tc.want, `<span class="warn">Inconclusive</span>`, "<p>no connection to far</p>"} {
				if !strings.Contains(out.String(), word) {
					t.Errorf("%q is missing", word)
				}
			}
			if strings.Contains(out.String(), tc.not) {
				t.Errorf("the page has %q", tc.not)
			}
			if t.Failed() {
				t.Log(out.String())
			}
		})
	}
}

// TestJitterPage: the probe of jitter takes no limits, and its page has no verdict.
func TestJitterPage(t *testing.T) {
	one := jitter.CPUResult{CPU: 3, DurationNanoseconds: 1e9, MaximumNanoseconds: 7000, Interruptions: 1, StolenPartsPerMillion: 7, HDR: distributed(t, 1000, 7000).HDR}
	for _, percent := range latency.Ladder() {
		one.OverTime = append(one.OverTime, jitter.Percentile{Percent: percent, Nanoseconds: 7000})
	}
	result := &jitter.Result{CPUs: []jitter.CPUResult{one}}
	var out bytes.Buffer
	if err := writeJitterHTML(&out, result); err != nil {
		t.Fatal(err)
	}
	expectPage(t, out.String(), []string{"probe jitter", "CPUs 3 ·", `<span class="faint">measured</span>`, "7 µs"})
}

// expectPage wants words in a page, and pictures, and nothing about an operator.
func expectPage(t *testing.T, page string, words []string) {
	t.Helper()
	for _, word := range append(words, "<svg", "Written by kubectl lowlatency probe ") {
		if !strings.Contains(page, word) {
			t.Errorf("the page has no %q", word)
		}
	}
	for _, word := range []string{"<script", "the operator", "The run before", "Median of the nodes"} {
		if strings.Contains(page, word) {
			t.Errorf("the page has %q", word)
		}
	}
	if t.Failed() {
		t.Log(page)
	}
}
