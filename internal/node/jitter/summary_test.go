// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build amd64 || arm64

package jitter

import (
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// gigahertz is a clock on which a tick is a nanosecond; the counter is 5,000 ahead of the kernel's clock.
func gigahertz() clock { return clock{hertz: 1e9, counter: 5_000, nanoseconds: 0} }

// second is the state of a loop that ran for a second from counter 10,000 on and took 10 ns a turn.
func second(interruptions uint64) *spinState {
	return &spinState{begin: 10_000, finish: 1_000_010_000, loops: 99_000_000, shortest: 10, interruptions: interruptions}
}

func TestSummarize(t *testing.T) {
	gaps := []gap{{20_000, 1_010}, {40_000, 2_010}, {90_000, 500_010}, {900_000, 1_010}}
	got, err := summarize(7, second(4), gaps, gigahertz())
	if err != nil {
		t.Fatal(err)
	}
	want := CPUResult{
		CPU: 7, DurationNanoseconds: 1_000_000_000, Loops: 99_000_000, LoopNanoseconds: 10,
		Interruptions: 4, InterruptionsPerSecond: 4,
		StolenNanoseconds: 504_000, StolenPartsPerMillion: 504, MaximumNanoseconds: 500_010,
		// Four interruptions carry no percentile.
		OverTime: []Percentile{{50, 0}, {90, 0}, {99, 0}, {99.9, 0}, {99.99, 500_010}, {99.999, 500_010}},
		Histogram: []Bucket{
			{512, 1024, 2}, {1024, 2048, 1}, {2048, 4096, 0}, {4096, 8192, 0}, {8192, 16384, 0}, {16384, 32768, 0},
			{32768, 65536, 0}, {65536, 131072, 0}, {131072, 262144, 0}, {262144, 524288, 1},
		},
		Worst: []Interruption{
			{AtNanoseconds: 10_000, LengthNanoseconds: 1_010, ClockNanoseconds: 15_000},
			{AtNanoseconds: 30_000, LengthNanoseconds: 2_010, ClockNanoseconds: 35_000},
			{AtNanoseconds: 80_000, LengthNanoseconds: 500_010, ClockNanoseconds: 85_000},
			{AtNanoseconds: 890_000, LengthNanoseconds: 1_010, ClockNanoseconds: 895_000},
		},
		// All came in the first of the 60 slices.
		TimeLine: &latency.TimeLine{ElapsedNanoseconds: 1_000_000_000, LongestNanoseconds: append([]int64{500_010}, make([]int64, latency.TimeSlices-1)...)},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(CPUResult{}, "HDR"), cmpopts.EquateApprox(0, 1e-6)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	decoded, err := hdrhistogram.Decode([]byte(got.HDR))
	if err != nil {
		t.Fatal(err)
	}
	if decoded.TotalCount() != 4 || decoded.Max() < 500_000 {
		t.Errorf("the HDR histogram has %d values up to %d", decoded.TotalCount(), decoded.Max())
	}
}

func TestSummarizeNothing(t *testing.T) {
	got, err := summarize(0, second(0), nil, gigahertz())
	if err != nil {
		t.Fatal(err)
	}
	if got.Interruptions != 0 || got.StolenPartsPerMillion != 0 || got.MaximumNanoseconds != 0 || len(got.Histogram)+len(got.Worst)+len(got.OverInterruptions) != 0 {
		t.Errorf("an undisturbed second gives %+v", got)
	}
}

// TestPercentilesAreCarried: a percentile over interruptions is given from the number of them on that latency.Samples says.
func TestPercentilesAreCarried(t *testing.T) {
	for count, want := range map[int][]Percentile{
		0: nil, 199: nil, 200: {{50, 100}}, 999: {{50, 500}}, 1_000: {{50, 500}, {90, 900}}, 10_000: {{50, 5_000}, {90, 9_000}, {99, 9_900}},
	} {
		lengths := make([]uint64, count)
		for i := range lengths {
			lengths[i] = uint64(i + 1)
		}
		if diff := cmp.Diff(want, overInterruptions(lengths, gigahertz())); diff != "" {
			t.Errorf("%d interruptions (-want +got):\n%s", count, diff)
		}
	}
}

// TestSummarizeKeepsTheLongest: a record with more interruptions than a result names keeps the longest, and says how
// many had no room.
func TestSummarizeKeepsTheLongest(t *testing.T) {
	gaps := make([]gap, 0, 2*worstKept)
	for i := range uint64(2 * worstKept) {
		gaps = append(gaps, gap{at: 20_000 + 1_000*i, length: 100 + i})
	}
	got, err := summarize(0, second(uint64(len(gaps))+5), gaps, gigahertz())
	if err != nil {
		t.Fatal(err)
	}
	if got.NotRecorded != 5 || got.Interruptions != 2*worstKept+5 {
		t.Errorf("%d interruptions, %d of them not recorded", got.Interruptions, got.NotRecorded)
	}
	if len(got.Worst) != worstKept || got.Worst[0].LengthNanoseconds != 100+worstKept {
		t.Errorf("%d are kept, the first of %d ns", len(got.Worst), got.Worst[0].LengthNanoseconds)
	}
}
