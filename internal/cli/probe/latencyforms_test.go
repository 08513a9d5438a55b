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

// TestRowsOfStamps: the parts of a latency are told apart, and from the whole.
func TestRowsOfStamps(t *testing.T) {
	result := &latency.Result{Sizes: []latency.Size{{
		Bytes: 64, Distribution: latency.Distribution{Samples: 3, MinimumNanoseconds: 50, MaximumNanoseconds: 60},
		Stamps: &latency.Stamps{
			Messages: 3, WithoutSent: 1, Wire: latency.Distribution{Samples: 2, MinimumNanoseconds: 30, MaximumNanoseconds: 40}, Host: latency.Distribution{Samples: 2, MinimumNanoseconds: 10, MaximumNanoseconds: 20},
		},
	}}}
	want := `bytes,rate,what,nanoseconds,low,high,samples
64,,minimum,50,,,3
64,,mean,0.0,,,3
64,,maximum,60,,,3
64,,wire minimum,30,,,2
64,,wire mean,0.0,,,2
64,,wire maximum,40,,,2
64,,host minimum,10,,,2
64,,host mean,0.0,,,2
64,,host maximum,20,,,2
`
	var got bytes.Buffer
	if err := writeLatencyCSV(&got, result); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
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
			if lines := strings.Count(log.String(), "\n"); lines != 2+len(tc.tags) {
				t.Errorf("the log has %d lines:\n%s", lines, log.String())
			}
		})
	}
}
