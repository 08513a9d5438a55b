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

func TestHistogramLogs(t *testing.T) {
	all := results(t)
	all["rate"].Sizes = all["pingpong"].Sizes
	all["rate"].Rates[0].FromActual = distributed(t, 20, 1)
	for name, tc := range map[string]struct {
		result  *latency.Result
		tags    []string
		samples []int64
	}{
		"pingpong": {all["pingpong"], []string{"64bytes"}, []int64{1000}},
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
