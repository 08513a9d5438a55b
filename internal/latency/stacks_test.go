// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pinged is a ping-pong of these sizes, each with so many latencies of 1 µs times a factor and a few nanoseconds more.
func pinged(t *testing.T, factor int64, sizes ...int) *Result {
	t.Helper()
	result := &Result{Version: Version, Kind: KindPingPong, Setup: Setup{Transport: TCP, Waiting: Spin}, Path: Path{State: PathKernel}, Outcome: Outcome{Verdict: Passed, Reason: ReasonMeasured}}
	samples := make([]int64, 1000)
	for i := range samples {
		samples[i] = factor*1000 + int64(i*7919%10)
	}
	d, err := Distribute(samples)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range sizes {
		result.Sizes = append(result.Sizes, Size{Bytes: size, Distribution: d})
	}
	return result
}

func TestCompareStacks(t *testing.T) {
	other := pinged(t, 2, 1024, 64)
	other.Generator, other.Path.State, other.Setup = "eflatency 9.1", PathUnknown, Setup{Transport: UDP}
	all := CompareStacks([]Stack{{"kernel", pinged(t, 4, 64, 256)}, {"onload", pinged(t, 1, 64, 256)}, {"ef_vi", other}, {"again", pinged(t, 4, 256)}})
	type line struct {
		Bytes  int
		Name   string
		P50    int64
		Ratio  float64
		Within bool
	}
	var got []line
	for _, size := range all.Sizes {
		for _, side := range size.Sides {
			one := line{Bytes: size.Bytes, Name: side.Name}
			if p, found := side.Measured.At(50); found {
				one.P50 = p.Nanoseconds / 1000
			}
			for _, ratio := range side.Ratios {
				if ratio.Percent == 50 {
					one.Ratio, one.Within = float64(int(ratio.Ratio*100+0.5))/100, ratio.WithinSpread
				}
			}
			got = append(got, one)
		}
	}
	want := []line{
		{64, "kernel", 4, 0, false}, {64, "onload", 1, 0.25, false}, {64, "ef_vi", 2, 0.5, false}, {64, "again", 0, 0, false},
		{256, "kernel", 4, 0, false}, {256, "onload", 1, 0.25, false}, {256, "ef_vi", 0, 0, false}, {256, "again", 4, 1, true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	ended := Outcome{Verdict: Passed, Reason: ReasonMeasured}
	sides := []StacksSide{
		{"kernel", "", TCP, Spin, PathKernel, ended}, {"onload", "", TCP, Spin, PathKernel, ended}, {"ef_vi", "eflatency 9.1", UDP, "", PathUnknown, ended},
		{"again", "", TCP, Spin, PathKernel, ended},
	}
	if diff := cmp.Diff(sides, all.Sides); diff != "" {
		t.Errorf("sides (-want +got):\n%s", diff)
	}
}
