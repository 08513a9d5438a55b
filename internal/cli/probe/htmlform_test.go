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
		}},
		"rate": {latency.Outcome{Verdict: latency.Passed, Reason: latency.ReasonMeasured, Message: "measured"}, []string{"probe rate", "RateSweep", `<span class="good">Passed</span>`}},
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
