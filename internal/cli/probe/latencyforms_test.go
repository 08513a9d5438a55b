// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"bytes"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// logged are the tags of a log of histograms, each with how many samples its histogram has.
func logged(t *testing.T, log string) (tags []string, samples []int64) {
	t.Helper()
	reader := hdrhistogram.NewHistogramLogReader(strings.NewReader(log))
	for {
		one, err := reader.NextIntervalHistogram()
		if err != nil {
			t.Fatalf("%v: %s", err, log)
		}
		if one == nil {
			return tags, samples
		}
		tags, samples = append(tags, one.Tag()), append(samples, one.TotalCount())
	}
}

// csvColumns are the columns of the comma-separated form.
const csvColumns = "bytes,rate,what,nanoseconds,low,high,samples,trial,phase,verdict,latencies,count\n"

// threeFrom are three latencies from a shortest one.
func threeFrom(shortest int64) latency.Distribution {
	return latency.Distribution{Samples: 3, MinimumNanoseconds: shortest, MeanNanoseconds: float64(shortest) + 5, MaximumNanoseconds: shortest + 10}
}

// aTrial is one of 64 bytes that sent 100 messages.
func aTrial(phase latency.Phase, perSecond, lost uint64, outcome latency.Outcome) latency.Trial {
	return latency.Trial{Phase: phase, Outcome: outcome, Rate: latency.Rate{
		PerSecond: perSecond, Bytes: 64, Late: 4, Load: latency.Stream{Sent: 100, Lost: lost}, AnswersWanted: 3, FromIntended: threeFrom(int64(perSecond)),
	}}
}

// written is a result, and its rows.
type written struct {
	result *latency.Result
	want   string
}

func writtenCases() map[string]written {
	passed, failed := latency.Outcome{Verdict: latency.Passed}, latency.Outcome{Verdict: latency.Failed}
	blind := aTrial(latency.PhaseLow, 100, 7, failed)
	blind.Rate.FromIntended, blind.Rate.AnswersWanted = latency.Distribution{}, 0
	return map[string]written{
		"stamps": {&latency.Result{Kind: latency.KindPingPong, Outcome: passed, Setup: latency.Setup{RoundTrip: true}, Sizes: []latency.Size{
			{Bytes: 64, Lost: 1, Distribution: threeFrom(50), Stamps: &latency.Stamps{Messages: 3, Wire: threeFrom(30), Host: threeFrom(10)}},
			{Bytes: 128, Distribution: threeFrom(50), Stamps: &latency.Stamps{Messages: 3, WithoutSent: 3}},
			{Bytes: 256, Lost: 9},
		}}, `64,,minimum,50,,,3,,,,the round trip,
64,,mean,55.0,,,3,,,,the round trip,
64,,maximum,60,,,3,,,,the round trip,
64,,wire minimum,30,,,3,,,,the round trip,
64,,wire mean,35.0,,,3,,,,the round trip,
64,,wire maximum,40,,,3,,,,the round trip,
64,,host minimum,10,,,3,,,,the round trip,
64,,host mean,15.0,,,3,,,,the round trip,
64,,host maximum,20,,,3,,,,the round trip,
64,,lost,,,,,,,,,1
128,,minimum,50,,,3,,,,the round trip,
128,,mean,55.0,,,3,,,,the round trip,
128,,maximum,60,,,3,,,,the round trip,
128,,lost,,,,,,,,,0
256,,lost,,,,,,,,,9
,,outcome,,,,,,,Passed,,
`},
		"a rate without an answer": {&latency.Result{Kind: latency.KindRateSweep, Outcome: failed, Sizes: []latency.Size{{Bytes: 64, Distribution: threeFrom(50)}}, Rates: []latency.Rate{
			{PerSecond: 100, Bytes: 64, Late: 2, AnswersWanted: 3, FromIntended: threeFrom(70)},
			{PerSecond: 200, Bytes: 64, Load: latency.Stream{Sent: 9, Lost: 9}, AnswersWanted: 4, AnswersLost: 4},
		}}, `64,,minimum,50,,,3,,,,half of the round trip,
64,,mean,55.0,,,3,,,,half of the round trip,
64,,maximum,60,,,3,,,,half of the round trip,
64,,lost,,,,,,,,,0
64,100,minimum,70,,,3,,,,an estimate of one way,
64,100,mean,75.0,,,3,,,,an estimate of one way,
64,100,maximum,80,,,3,,,,an estimate of one way,
64,100,late,,,,,,,,,2
64,100,lost,,,,,,,,,0
64,100,no answer,,,,,,,,,0
64,200,late,,,,,,,,,0
64,200,lost,,,,,,,,,9
64,200,no answer,,,,,,,,,4
,,outcome,,,,,,,Failed,,
`},
		"a search that tries a rate twice": {&latency.Result{Kind: latency.KindLoadSearch, Outcome: passed, Load: &latency.Load{
			BestPass: 100, LowestFail: 200, Why: failed,
			Trials: []latency.Trial{aTrial(latency.PhaseLow, 100, 0, passed), aTrial(latency.PhaseSearch, 200, 5, failed), aTrial(latency.PhaseConfirm, 100, 0, passed)},
		}}, `64,100,minimum,100,,,3,1,Low,Passed,an estimate of one way,
64,100,mean,105.0,,,3,1,Low,Passed,an estimate of one way,
64,100,maximum,110,,,3,1,Low,Passed,an estimate of one way,
64,100,late,,,,,1,Low,Passed,,4
64,100,lost,,,,,1,Low,Passed,,0
64,100,no answer,,,,,1,Low,Passed,,0
64,200,minimum,200,,,3,2,Search,Failed,an estimate of one way,
64,200,mean,205.0,,,3,2,Search,Failed,an estimate of one way,
64,200,maximum,210,,,3,2,Search,Failed,an estimate of one way,
64,200,late,,,,,2,Search,Failed,,4
64,200,lost,,,,,2,Search,Failed,,5
64,200,no answer,,,,,2,Search,Failed,,0
64,100,minimum,100,,,3,3,Confirm,Passed,an estimate of one way,
64,100,mean,105.0,,,3,3,Confirm,Passed,an estimate of one way,
64,100,maximum,110,,,3,3,Confirm,Passed,an estimate of one way,
64,100,late,,,,,3,Confirm,Passed,,4
64,100,lost,,,,,3,Confirm,Passed,,0
64,100,no answer,,,,,3,Confirm,Passed,,0
,100,best pass,,,,,,,Passed,,
,200,lowest fail,,,,,,,Failed,,
,,outcome,,,,,,,Passed,,
`},
		"a generator that takes no latencies": {&latency.Result{
			Kind: latency.KindLoadSearch, Generator: "testpmd 22.11", Outcome: failed, Load: &latency.Load{LowestFail: 100, Why: failed, Trials: []latency.Trial{blind}},
		}, `64,100,lost,,,,,1,Low,Failed,,7
,,best pass,,,,,,,,,
,100,lowest fail,,,,,,,Failed,,
,,outcome,,,,,,,Failed,,
`},
	}
}

// TestRows: the parts of a latency are told apart, and from the whole; trials from each other, with what became of each; and what was not measured has no number.
func TestRows(t *testing.T) {
	for name, tc := range writtenCases() {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			if err := writeLatencyCSV(&got, tc.result); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(csvColumns+tc.want, got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestHistogramLogs(t *testing.T) {
	all := results(t)
	all["rate"].Sizes = all["pingpong"].Sizes
	stamped := all["pingpong"].Sizes[0]
	stamped.Stamps = &latency.Stamps{Messages: 1000, WithoutSent: 30, Wire: distributed(t, 970, 2000), Host: distributed(t, 970, 1000)}
	all["rate"].Rates[0].FromActual = distributed(t, 20, 1)
	for name, tc := range map[string]struct {
		result  *latency.Result
		tags    []string
		samples []int64
	}{
		"pingpong": {all["pingpong"], []string{"64bytes"}, []int64{1000}},
		"stamps":   {&latency.Result{Sizes: []latency.Size{stamped}}, []string{"64bytes", "64bytes-wire", "64bytes-host"}, []int64{1000, 970, 970}},
		"rate":     {all["rate"], []string{"64bytes", "1000persecond-intended", "1000persecond-sent"}, []int64{1000, 1000, 20}},
		"load": {all["load"], []string{
			"trial1-low-1000persecond-intended", "trial1-low-1000persecond-sent", "trial2-confirm-1000persecond-intended", "trial2-confirm-1000persecond-sent",
		}, []int64{1000, 1000, 1000, 1000}},
		"without histograms": {&latency.Result{Sizes: []latency.Size{{Bytes: 64}}, Rates: []latency.Rate{{PerSecond: 7}}}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			if err := writeLatencyHDR(&log, tc.result); err != nil {
				t.Fatal(err)
			}
			tags, samples := logged(t, log.String())
			if diff := cmp.Diff(tc.tags, tags) + cmp.Diff(tc.samples, samples); diff != "" {
				t.Errorf("%s\n%s", diff, log.String())
			}
			if lines := strings.Count(log.String(), "\n") - strings.Count(log.String(), "#[latencies of "); lines != 2+len(tc.tags) {
				t.Errorf("the log has %d lines:\n%s", lines, log.String())
			}
		})
	}
}

// TestHistogramLogsSayOfWhat: a log of whole round trips is told from one of halves, which are half as long.
func TestHistogramLogsSayOfWhat(t *testing.T) {
	const version = "#[Histogram log format version 1.3]\n"
	all := results(t)
	all["rate"].Sizes = all["pingpong"].Sizes
	whole := *all["rate"]
	whole.Setup.RoundTrip = true
	for name, tc := range map[string]struct {
		result *latency.Result
		want   string
	}{
		"pingpong": {all["pingpong"], "#[latencies of messages that went one at a time: half of the round trip]\n"},
		"rate": {all["rate"], "#[latencies of messages that went one at a time: half of the round trip]\n" +
			"#[latencies of messages on a schedule: an estimate of one way]\n"},
		"whole":    {&whole, "#[latencies of messages that went one at a time: the round trip]\n#[latencies of messages on a schedule: the round trip]\n"},
		"recorded": {all["recorded"], "#[latencies of messages on a schedule: the way as the generator has measured it, from when messages left]\n"},
		"nothing":  {&latency.Result{Kind: latency.KindRateSweep}, ""},
	} {
		var log bytes.Buffer
		if err := writeLatencyHDR(&log, tc.result); err != nil {
			t.Fatal(err)
		}
		if want := version + tc.want + "\"StartTimestamp\","; !strings.HasPrefix(log.String(), want) {
			t.Errorf("%s: the log does not begin with\n%s\n%.400s", name, want, log.String())
		}
	}
}
