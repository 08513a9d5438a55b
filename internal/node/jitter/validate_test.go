// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package jitter

import "testing"

func TestValidate(t *testing.T) {
	cases := map[string]struct {
		spoil func(*Result)
		want  string
	}{
		"a result":                   {func(*Result) {}, ""},
		"no CPUs":                    {func(r *Result) { r.CPUs = nil }, "it has no cpus"},
		"a negative threshold":       {func(r *Result) { r.ThresholdNanoseconds = -1 }, "thresholdNanoseconds is -1"},
		"a CPU twice":                {func(r *Result) { r.CPUs = append(r.CPUs, r.CPUs[0]) }, "CPU 3 is in it twice"},
		"a CPU below zero":           {func(r *Result) { r.CPUs[0].CPU = -1 }, "CPU -1: no CPU has a negative number"},
		"no time":                    {func(r *Result) { r.CPUs[0].DurationNanoseconds = 0 }, "CPU 3: durationNanoseconds is 0: nothing was measured"},
		"a negative time":            {func(r *Result) { r.CPUs[0].DurationNanoseconds = -5 }, "CPU 3: durationNanoseconds is -5: nothing was measured"},
		"a negative time of counts":  {func(r *Result) { r.CPUs[0].CountedNanoseconds = -5 }, "CPU 3: countedNanoseconds is -5"},
		"more missing than there is": {func(r *Result) { r.CPUs[0].NotRecorded = 8 }, "CPU 3: 8 interruptions are not recorded, of 7"},
		"a negative rate": {func(r *Result) { r.CPUs[0].InterruptionsPerSecond = -0.5 },
			"CPU 3: negative among loopNanoseconds 20, interruptionsPerSecond -0.5 and stolenPartsPerMillion 0"},
		"a negative maximum":         {func(r *Result) { r.CPUs[0].MaximumNanoseconds = -1 }, "CPU 3: negative among stolenNanoseconds 0 and maximumNanoseconds -1"},
		"a percentile above all":     {func(r *Result) { r.CPUs[0].OverInterruptions[0].Percent = 101 }, "CPU 3: percentile 101 is 700 ns"},
		"a negative percentile":      {func(r *Result) { r.CPUs[0].OverTime[0].Nanoseconds = -1 }, "CPU 3: percentile 50 is -1 ns"},
		"a bucket without room":      {func(r *Result) { r.CPUs[0].Histogram[0].ToNanoseconds = 512 }, "CPU 3: the histogram counts from 512 to 512 ns"},
		"an interruption of nothing": {func(r *Result) { r.CPUs[0].Worst[0].LengthNanoseconds = 0 }, "CPU 3: an interruption among the worst lasts 0 ns"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			result := &Result{ThresholdNanoseconds: 500, CPUs: []CPUResult{{
				CPU: 3, DurationNanoseconds: 1e9, Interruptions: 7, LoopNanoseconds: 20, OverInterruptions: []Percentile{{50, 700}},
				OverTime: []Percentile{{50, 0}}, Histogram: []Bucket{{512, 1024, 7}}, Worst: []Interruption{{LengthNanoseconds: 900}},
			}}}
			tc.spoil(result)
			got := ""
			if err := result.Validate(); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("the error is %q, want %q", got, tc.want)
			}
		})
	}
}
