// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
)

const (
	// resamples of a bootstrap, and tail of them on each side of the interval of 95 %.
	resamples = 4000
	tail      = resamples / 40
	// PairsNeeded is the least number of pairs of runs that carry an interval: with fewer, no two resamples bound 95 %.
	PairsNeeded = 5
)

// Ratio compares two things that were measured in turns.
type Ratio struct {
	// Value is the median of the first divided by the median of the second.
	Value float64 `json:"value"`
	// Low to High holds it with 95 % confidence, by the bootstrap over pairs of runs.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Pairs is the number of runs of each.
	Pairs int `json:"pairs"`
}

// Compare is the ratio of a number that was taken of each run, such as its median. The runs at an index were made one after the other, so
// that what changes slowly on the machines changes both. It gives the same answer for the same runs.
func Compare(first, second []int64) (Ratio, error) {
	if len(first) != len(second) {
		return Ratio{}, fmt.Errorf("%d runs of one and %d of the other are no pairs", len(first), len(second))
	}
	if len(first) < PairsNeeded {
		return Ratio{}, fmt.Errorf("%d pairs of runs carry no interval; it takes %d", len(first), PairsNeeded)
	}
	if slices.Min(first) <= 0 || slices.Min(second) <= 0 {
		return Ratio{}, errors.New("a run took no time")
	}
	chance := rand.New(rand.NewPCG(1, uint64(len(first))))
	ratios := make([]float64, resamples)
	a, b := make([]int64, len(first)), make([]int64, len(first))
	for i := range ratios {
		for j := range a {
			drawn := chance.IntN(len(first))
			a[j], b[j] = first[drawn], second[drawn]
		}
		ratios[i] = median(a) / median(b)
	}
	slices.Sort(ratios)
	return Ratio{Value: median(first) / median(second), Low: ratios[tail], High: ratios[resamples-1-tail], Pairs: len(first)}, nil
}

// median of numbers in any order.
func median(numbers []int64) float64 {
	sorted := slices.Sorted(slices.Values(numbers))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return float64(sorted[half])
	}
	return (float64(sorted[half-1]) + float64(sorted[half])) / 2
}
