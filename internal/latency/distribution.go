// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

import (
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	// samplesBeyond is how many samples must lie beyond a percentile for it to be printed: 99.999 % takes ten million.
	samplesBeyond = 100
	// longest is the longest latency that a histogram holds; histogramDigits are its significant digits.
	longest         = 100_000_000_000
	histogramDigits = 3
)

// Ladder are the percentiles that are looked for.
func Ladder() []float64 { return []float64{50, 90, 99, 99.9, 99.99, 99.999} }

// Samples is how many samples a percentile takes.
func Samples(percent float64) uint64 {
	return uint64(math.Ceil(samplesBeyond/(1-percent/100) - 1e-6))
}

// Distribute describes samples, in nanoseconds, which are given in the order in which they were taken. Percentile and median are the samples at the
// rank that sfnt-pingpong takes, n·p/100 from 0.
func Distribute(samples []int64) (Distribution, error) {
	sorted := slices.Clone(samples)
	slices.Sort(sorted)
	d := Distribution{Samples: uint64(len(sorted)), Percentiles: []Percentile{}}
	var err error
	if d.HDR, err = EncodeHDR(slices.Values(sorted)); err != nil || len(sorted) == 0 {
		return d, err
	}
	d.MinimumNanoseconds, d.MaximumNanoseconds = sorted[0], sorted[len(sorted)-1]
	d.MedianNanoseconds = sorted[len(sorted)/2]
	d.MeanNanoseconds, d.DeviationNanoseconds = moments(sorted)
	for _, percent := range Ladder() {
		if uint64(len(sorted)) >= Samples(percent) {
			d.Percentiles = append(d.Percentiles, percentileOf(samples, sorted, percent))
		}
	}
	return d, nil
}

// At is a percentile of a distribution, and whether the samples carry it.
func (d *Distribution) At(percent float64) (Percentile, bool) {
	at := slices.IndexFunc(d.Percentiles, func(p Percentile) bool { return p.Percent == percent })
	if at < 0 {
		return Percentile{}, false
	}
	return d.Percentiles[at], true
}

// moments are the mean and the standard deviation of a sample.
func moments(samples []int64) (mean, deviation float64) {
	n := float64(len(samples))
	for _, s := range samples {
		mean += float64(s) / n
	}
	if len(samples) < 2 {
		return mean, 0
	}
	squares := 0.0
	for _, s := range samples {
		squares += (float64(s) - mean) * (float64(s) - mean)
	}
	return mean, math.Sqrt(squares / (n - 1))
}

// EncodeHDR writes lengths in nanoseconds as an HDR histogram of 3 significant digits up to 100 s, in the compressed V2 encoding and
// base64, which the tools of HdrHistogram read and merge.
func EncodeHDR(lengths iter.Seq[int64]) (string, error) {
	return EncodeHDRCounts(func(yield func(int64, int64) bool) {
		for length := range lengths {
			if !yield(length, 1) {
				return
			}
		}
	})
}

// EncodeHDRCounts is EncodeHDR of lengths that each occur so many times.
func EncodeHDRCounts(lengths iter.Seq2[int64, int64]) (string, error) {
	all := hdrhistogram.New(1, longest, histogramDigits)
	for length, times := range lengths {
		if err := all.RecordValues(min(length, longest), times); err != nil {
			return "", fmt.Errorf("recording %d ns: %w", length, err)
		}
	}
	encoded, err := all.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return "", fmt.Errorf("encoding the histogram: %w", err)
	}
	return string(encoded), nil
}
