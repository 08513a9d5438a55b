// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

// alike are n latencies with an exponential distribution of mean 1 ms, of which each is like the one before: the normal numbers below them have the
// correlation of an autoregressive process of first order.
func alike(chance *rand.Rand, n int, correlation float64) []int64 {
	samples := make([]int64, n)
	x := chance.NormFloat64()
	for i := range samples {
		x = correlation*x + math.Sqrt(1-correlation*correlation)*chance.NormFloat64()
		samples[i] = int64(-1e6 * math.Log(math.Erfc(x/math.Sqrt2)/2))
	}
	return samples
}

// TestIntervalsHold: of many measurements of one distribution, about 95 % have the true percentile in their interval, also where samples that follow each
// other are alike, so that fewer of them would tell as much.
func TestIntervalsHold(t *testing.T) {
	const runs = 100
	for name, tc := range map[string]struct {
		n                        int
		correlation              float64
		lowest, highest          float64
		leastShare, largestShare float64
	}{
		"independent": {n: 2000, lowest: 0.91, highest: 1, leastShare: 0.7, largestShare: 1},
		"a little":    {n: 5000, correlation: 0.5, lowest: 0.9, highest: 1, leastShare: 0.25, largestShare: 0.9},
		"very":        {n: 10_000, correlation: 0.9, lowest: 0.9, highest: 1, leastShare: 0.02, largestShare: 0.2},
	} {
		t.Run(name, func(t *testing.T) {
			held, share := intervalsThatHold(t, runs, tc.n, tc.correlation)
			for _, percent := range []float64{50, 90} {
				if got := float64(held[percent]) / runs; got < tc.lowest || got > tc.highest {
					t.Errorf("%g %%: %.3f of the intervals hold the truth", percent, got)
				}
				if got := share[percent]; got < tc.leastShare || got > tc.largestShare {
					t.Errorf("%g %%: %.3f of the samples count as independent", percent, got)
				}
			}
		})
	}
}

// intervalsThatHold are in how many runs the interval of each percentile holds the true one, and which share of the samples counts as independent.
func intervalsThatHold(t *testing.T, runs, n int, correlation float64) (held map[float64]int, share map[float64]float64) {
	t.Helper()
	chance := rand.New(rand.NewPCG(3, 4))
	held, share = map[float64]int{}, map[float64]float64{}
	for range runs {
		d, err := Distribute(alike(chance, n, correlation))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range d.Percentiles {
			share[p.Percent] += float64(p.Independent) / float64(n) / float64(runs)
			if truth := int64(-1e6 * math.Log(1-p.Percent/100)); p.HighNanoseconds != nil && p.LowNanoseconds <= truth && truth <= *p.HighNanoseconds {
				held[p.Percent]++
			}
		}
	}
	return held, share
}

// TestBurstsBoundNothing: where all that is above a percentile came at once, another run may show any other value of it; spread over the whole
// measurement, the same samples bound it.
func TestBurstsBoundNothing(t *testing.T) {
	const n, slow = 100_000, 1200
	for name, tc := range map[string]struct {
		every int
		open  bool
	}{"one burst": {1, true}, "spread": {n / slow, false}} {
		t.Run(name, func(t *testing.T) {
			samples := evenly(n)
			for i := range slow {
				samples[(n/4+i*tc.every)%n] = int64(10*n + i)
			}
			d, err := Distribute(samples)
			if err != nil {
				t.Fatal(err)
			}
			p, carried := d.At(99)
			if !carried || (p.HighNanoseconds == nil) != tc.open || p.Independent < 1 || (p.Independent < n/10) != tc.open {
				t.Errorf("%+v", p)
			}
			if median, _ := d.At(50); median.HighNanoseconds == nil || median.Independent < n/20 {
				t.Errorf("the median is bounded by all other samples, too: %+v", median)
			}
		})
	}
}

func TestSpan(t *testing.T) {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	if got := Span(3, new(int64(5)), number) + " " + Span(3, nil, number); got != "3..5 3.." {
		t.Error(got)
	}
}
