// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package testrun

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// pingPong is a repetition in which messages of 64 and 1024 bytes took so long, ten more each time.
func pingPong(t *testing.T, path latency.PathState, count int, least int64) *latency.Result {
	t.Helper()
	result := &latency.Result{
		Kind: latency.KindPingPong, Path: latency.Path{State: path, Message: "counted"}, Outcome: latency.Outcome{Verdict: latency.Passed},
		Setup: latency.Setup{Server: latency.Host{Kernel: "6.12\x1b[2J"}},
	}
	for i, bytes := range []int{64, 1024} {
		samples := make([]int64, 0, count)
		for sample := range count {
			samples = append(samples, least+int64(bytes)+10*int64(sample))
		}
		d, err := latency.Distribute(samples)
		if err != nil {
			t.Fatal(err)
		}
		result.Sizes = append(result.Sizes, latency.Size{Bytes: bytes, Lost: uint64(i), Distribution: d})
	}
	return result
}

func TestTrafficRecord(t *testing.T) {
	results := []*latency.Result{pingPong(t, latency.PathKernel, 1000, 5000), pingPong(t, latency.PathKernel, 300, 6000)}
	r, err := TrafficRecord(v1alpha1.LatencyTestPingPong, 3, results, "6.12", "b1")
	if err != nil {
		t.Fatal(err)
	}
	text, err := qualification.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	got, err := qualification.Parse(string(text))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if got.Histogram == "" {
		t.Error("the record has no histogram")
	}
	got.Histogram = ""
	// The second repetition has too few samples for 90 %, so that its table has the median alone.
	want := &qualification.Record{
		Version: qualification.Version, Kind: v1alpha1.LatencyTestPingPong, Kernel: "6.12", BootID: "b1", CPUs: "3", MaximumNanoseconds: 16_014,
		RepetitionMaximums: []int64{16_014, 10_014}, Percentiles: []v1alpha1.LatencyPercentile{{Percentile: v1alpha1.P50, Nanoseconds: 11_024}},
		Network: &qualification.NetworkRecord{
			Path: v1alpha1.LatencyPathKernel, PathMessage: "counted", ServerKernel: "6.12 [2J", Medians: []int64{10_064, 7_564},
			Sizes: [][]int64{{64, 1300, 0, 0, 5064, 10_059, 2888, 15_054, 10_064}, {1024, 1300, 2, 0, 6024, 11_019, 2888, 16_014, 11_024}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, tc := range map[string]struct {
		results []*latency.Result
		want    v1alpha1.LatencyPath
	}{
		"different ways":  {[]*latency.Result{pingPong(t, latency.PathKernel, 1, 1), pingPong(t, latency.PathAccelerated, 1, 1)}, v1alpha1.LatencyPathMixed},
		"one is not told": {[]*latency.Result{pingPong(t, latency.PathAccelerated, 1, 1), pingPong(t, latency.PathUnknown, 1, 1)}, v1alpha1.LatencyPathUnknown},
		"accelerated":     {[]*latency.Result{pingPong(t, latency.PathAccelerated, 1, 1)}, v1alpha1.LatencyPathAccelerated},
	} {
		if got := pathOf(tc.results); got != tc.want {
			t.Errorf("%s: the path is %s, want %s", name, got, tc.want)
		}
	}
}

func TestTrafficWithoutAnswers(t *testing.T) {
	_, err := TrafficRecord(v1alpha1.LatencyTestPingPong, 3, []*latency.Result{pingPong(t, latency.PathKernel, 0, 0)}, "6.12", "b1")
	if problem, _ := errors.AsType[Problem](err); problem.Reason != v1alpha1.TestNoAnswer {
		t.Errorf("no answer is %v", err)
	}
	if _, err := TrafficRecord(v1alpha1.LatencyTestPingPong, 3, nil, "6.12", "b1"); err == nil {
		t.Error("no repetition is a record")
	}
}

func TestBusyMachines(t *testing.T) {
	for name, tc := range map[string]struct {
		preemptions uint64
		elapsed     time.Duration
		busy        bool
	}{
		"threads of the kernel": {1000, time.Minute, false},
		"another program":       {6000, time.Minute, true},
		"a short measurement":   {40, 100 * time.Millisecond, false},
		"nobody tells":          {0, time.Minute, false},
		"no end":                {6000, 0, false},
	} {
		err := CheckQuiet(&latency.Result{Preemptions: tc.preemptions, ElapsedNanoseconds: tc.elapsed.Nanoseconds()})
		problem, _ := errors.AsType[Problem](err)
		if (err != nil) != tc.busy || (tc.busy && problem.Reason != v1alpha1.TestMachineBusy) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
