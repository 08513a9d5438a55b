// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

import (
	"math"
	"slices"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
)

func TestBarsOfADecodedHistogram(t *testing.T) {
	text, err := EncodeHDR(slices.Values([]int64{1, 3, 3, 900, 100_000}))
	if err != nil {
		t.Fatal(err)
	}
	histogram, err := DecodeHDR(text)
	if err != nil {
		t.Fatal(err)
	}
	bars := Bars(histogram)
	var counts []Bar
	for _, bar := range bars {
		if bar.Count > 0 {
			counts = append(counts, bar)
		}
	}
	want := []Bar{{1, 2, 1}, {2, 4, 2}, {512, 1024, 1}, {65536, 131072, 1}}
	if diff := cmp.Diff(want, counts); diff != "" || len(bars) != 17 {
		t.Errorf("%d bars: %s", len(bars), diff)
	}
}

// TestHistogramsOfEndlessLengths: what somebody else has encoded may be for any length, and ends all the same.
func TestHistogramsOfEndlessLengths(t *testing.T) {
	histogram := hdrhistogram.New(1, math.MaxInt64, 1)
	if err := histogram.RecordValue(1 << 62); err != nil {
		t.Fatal(err)
	}
	text, err := histogram.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeHDR(string(text)); err == nil {
		t.Error("a histogram of 146 years is accepted")
	}
	if bars := Bars(histogram); len(bars) != 1 || bars[0].FromNanoseconds != 1<<62 {
		t.Errorf("bars %+v", bars)
	}
}

func FuzzDecodeHDR(f *testing.F) {
	text, err := EncodeHDR(slices.Values([]int64{1, 900, 100_000}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add("")
	f.Add("HISTFAAAAB542pNpmSzMwMDAxAABzFCaEUoz2X+AsQA/awKA")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 {
			return
		}
		histogram, err := DecodeHDR(text)
		if (histogram == nil) != (err != nil) {
			t.Errorf("%v and %v", histogram, err)
		}
	})
}
