// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

import (
	"errors"
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// DecodeHDR reads what EncodeHDR or another program wrote: an HDR histogram of nanoseconds, V2 compressed, in base64. The text may be
// anybody's.
func DecodeHDR(text string) (histogram *hdrhistogram.Histogram, err error) {
	// The library panics over headers that no histogram has.
	defer func() {
		if reason := recover(); reason != nil {
			histogram, err = nil, fmt.Errorf("the text is no HDR histogram: %v", reason)
		}
	}()
	histogram, err = hdrhistogram.Decode([]byte(text))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the text is no HDR histogram: %w", err)
	case histogram == nil || histogram.LowestTrackableValue() < 1 || histogram.HighestTrackableValue() > maximumLength || histogram.HighestTrackableValue() < histogram.LowestTrackableValue():
		return nil, errors.New("the text is no HDR histogram of lengths")
	}
	return histogram, nil
}

// maximumLength is the longest length that a histogram may be for, in nanoseconds: 73 years, the half of which a Bar can still double.
const maximumLength = 1 << 61

// Bar is how many samples of a histogram lie between two lengths.
type Bar struct {
	FromNanoseconds, ToNanoseconds int64
	Count                          int64
}

// Bars are the samples of a histogram by powers of two, without empty bars at both ends.
func Bars(histogram *hdrhistogram.Histogram) []Bar {
	var bars []Bar
	for _, b := range histogram.Distribution() {
		if b.Count <= 0 {
			continue
		}
		from := int64(1)
		for from <= b.From/2 {
			from *= 2
		}
		for len(bars) > 0 && bars[len(bars)-1].FromNanoseconds < from {
			last := bars[len(bars)-1]
			bars = append(bars, Bar{last.ToNanoseconds, 2 * last.ToNanoseconds, 0})
		}
		if len(bars) == 0 {
			bars = append(bars, Bar{from, 2 * from, 0})
		}
		bars[len(bars)-1].Count += b.Count
	}
	return bars
}
