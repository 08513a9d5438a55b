// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

import "math"

const (
	// batches is into how many parts, one after the other, a measurement is cut, to see by how much a percentile differs between them. Samples that
	// are further apart than such a part count as independent.
	batches = 30
	// studentQuantile bounds 95 % of the t distribution with batches-1 degrees of freedom.
	studentQuantile = 2.045230
)

// percentileOf is a percentile of samples, which are given in the order in which they were taken and sorted, with its interval. How many of n
// independent samples lie below a percentile is binomial, so that the samples at certain ranks bound it whatever the distribution is; where samples that
// follow each other are alike, that number scatters more, and the ranks are further apart by as much (P. Heidelberger, P. A. W. Lewis, Quantile Estimation in
// Dependent Sequences, Operations Research 32, 1984).
func percentileOf(samples, sorted []int64, percent float64) Percentile {
	n, share := len(sorted), percent/100
	rank := min(int(float64(n)*share+1e-9), n-1)
	alike := overdispersion(samples, sorted[rank])
	spread := studentQuantile * math.Sqrt(float64(n)*share*(1-share)*alike)
	p := Percentile{
		Percent: percent, Nanoseconds: sorted[rank], LowNanoseconds: sorted[max(int(math.Floor(float64(n)*share-spread))-1, 0)],
		Beyond: uint64(n - 1 - rank), Independent: max(1, uint64(float64(n)/alike)),
	}
	if high := int(math.Ceil(float64(n)*share + spread)); high < n {
		p.HighNanoseconds = new(sorted[high])
	}
	return p
}

// overdispersion is how many times as much as that of independent samples the number of samples above a value varies between the batches of a
// measurement; 1 at least. Samples are given in the order in which they were taken.
func overdispersion(samples []int64, value int64) float64 {
	size := len(samples) / batches
	if size == 0 {
		return 1
	}
	var counts [batches]float64
	mean := 0.0
	for i, sample := range samples[:size*batches] {
		if sample > value {
			counts[i/size]++
			mean += 1.0 / batches
		}
	}
	variance := 0.0
	for _, count := range counts {
		variance += (count - mean) * (count - mean) / (batches - 1)
	}
	binomial := mean * (1 - mean/float64(size))
	if binomial <= 0 {
		return 1
	}
	return max(1, variance/binomial)
}

// Span is the interval of a percentile in words, with the given form of its numbers: both ends, or the lower one alone where the samples give no upper
// end.
func Span(low int64, high *int64, number func(int64) string) string {
	if high == nil {
		return number(low) + ".."
	}
	return number(low) + ".." + number(*high)
}
