// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
)

// evenly is 1, 2, ... n in an order in which each part of them has as many small ones as large ones.
func evenly(n int) []int64 {
	step, samples := n*618/1000|1, make([]int64, n)
	for i := range samples {
		samples[i] = int64(i*step%n + 1)
	}
	return samples
}

// ramp is 1, 2, ... n in another order.
func ramp(n int) []int64 {
	samples := make([]int64, n)
	for i := range samples {
		samples[i] = int64(i + 1)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { samples[i], samples[j] = samples[j], samples[i] })
	return samples
}

func TestDistribute(t *testing.T) {
	samples := evenly(10_000)
	kept := slices.Clone(samples)
	d, err := Distribute(samples)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(samples, kept) {
		t.Error("the samples were changed")
	}
	d.DeviationNanoseconds = math.Round(d.DeviationNanoseconds)
	d.MeanNanoseconds = math.Round(d.MeanNanoseconds*1000) / 1000
	d.HDR = ""
	// The intervals are those of the binomial distribution: 5000 ± 103, 9000 ± 62, 9900 ± 21.
	want := Distribution{
		Samples: 10_000, MinimumNanoseconds: 1, MeanNanoseconds: 5000.5, MedianNanoseconds: 5001, MaximumNanoseconds: 10_000, DeviationNanoseconds: 2887,
		Percentiles: []Percentile{
			{Percent: 50, Nanoseconds: 5001, LowNanoseconds: 4897, HighNanoseconds: new(int64(5104)), Beyond: 4999, Independent: 10_000},
			{Percent: 90, Nanoseconds: 9001, LowNanoseconds: 8938, HighNanoseconds: new(int64(9063)), Beyond: 999, Independent: 10_000},
			{Percent: 99, Nanoseconds: 9901, LowNanoseconds: 9879, HighNanoseconds: new(int64(9922)), Beyond: 99, Independent: 10_000},
		},
	}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}
}

func TestPercentilesThatSamplesCarry(t *testing.T) {
	cases := map[int][]float64{
		0: {}, 1: {}, 199: {}, 200: {50}, 999: {50}, 1000: {50, 90}, 9999: {50, 90}, 10_000: {50, 90, 99}, 100_000: {50, 90, 99, 99.9},
	}
	for n, want := range cases {
		d, err := Distribute(ramp(n))
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float64, 0, len(d.Percentiles))
		for _, p := range d.Percentiles {
			got = append(got, p.Percent)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d samples: %s", n, diff)
		}
	}
	if got := Samples(99.999); got != 10_000_000 {
		t.Errorf("99.999 %% takes %d samples", got)
	}
}

func TestHDRIsReadByItsLibrary(t *testing.T) {
	text, err := EncodeHDR(slices.Values([]int64{0, 1000, 2000, 2 * longest}))
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := hdrhistogram.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if decoded.TotalCount() != 4 || decoded.Max() < longest || !decoded.ValuesAreEquivalent(decoded.ValueAtQuantile(75), 2000) {
		t.Errorf("%d values up to %d, three quarters up to %d", decoded.TotalCount(), decoded.Max(), decoded.ValueAtQuantile(75))
	}
	if _, err := EncodeHDR(slices.Values([]int64{-1})); err == nil {
		t.Error("a negative latency was recorded")
	}
}

func TestCompare(t *testing.T) {
	got, err := Compare([]int64{110, 220, 330, 440, 550}, []int64{100, 200, 300, 400, 500})
	if err != nil {
		t.Fatal(err)
	}
	// Each pair has the same ratio, however much the machine changed between the pairs.
	for _, value := range []float64{got.Value, got.Low, got.High} {
		if math.Abs(value-1.1) > 1e-9 {
			t.Errorf("the ratio is %+v", got)
		}
	}
	noisy, err := Compare([]int64{100, 130, 90, 105, 98, 101}, []int64{100, 100, 100, 100, 100, 100})
	if err != nil || noisy.Low >= noisy.Value || noisy.High <= noisy.Value || noisy.Low < 0.9 || noisy.High > 1.3 {
		t.Errorf("the ratio is %+v, %v", noisy, err)
	}
	if again, _ := Compare([]int64{100, 130, 90, 105, 98, 101}, []int64{100, 100, 100, 100, 100, 100}); again != noisy {
		t.Errorf("the same runs give %+v and %+v", noisy, again)
	}
}

func TestCompareRefuses(t *testing.T) {
	for name, runs := range map[string][2][]int64{
		"no pairs": {{1, 2, 3, 4, 5}, {1, 2, 3, 4}}, "too few": {{1, 2, 3, 4}, {1, 2, 3, 4}}, "no time": {{0, 2, 3, 4, 5}, {1, 2, 3, 4, 5}},
	} {
		if _, err := Compare(runs[0], runs[1]); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestResultSurvivesJSON(t *testing.T) {
	d, err := Distribute(ramp(1000))
	if err != nil {
		t.Fatal(err)
	}
	want := Result{Version: Version, Kind: KindPingPong, Setup: Setup{Transport: UDP, Waiting: Spin}, Sizes: []Size{{Bytes: 32, Distribution: d}}}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Result
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
