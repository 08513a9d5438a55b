// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The bounds of the orders of magnitude that messages tell.
func TestMagnitudes(t *testing.T) {
	counts := map[uint64]string{
		1: "once", 2: "a few times", 9: "a few times", 10: "tens to hundreds of times", 999: "tens to hundreds of times", 1000: "thousands of times",
	}
	for count, want := range counts {
		if diff := cmp.Diff(want, times(count)); diff != "" {
			t.Errorf("%d: %s", count, diff)
		}
	}
	rates := map[float64]string{
		1.5: "a few times a second", 9.9: "a few times a second", 10: "tens of times a second", 99.9: "tens of times a second",
		100: "hundreds of times a second", 999: "hundreds of times a second", 1000: "thousands of times a second",
	}
	for rate, want := range rates {
		if diff := cmp.Diff(want, rateText(rate)); diff != "" {
			t.Errorf("%g: %s", rate, diff)
		}
	}
}

// Up to five objects are named, and each once; the others are counted.
func TestEnumerate(t *testing.T) {
	cases := map[string][]string{
		"":                          {},
		"a":                         {"a"},
		"a; b; c; d; e":             {"a", "b", "c", "d", "e"},
		"a; b; c; d; e; and 1 more": {"a", "b", "c", "d", "e", "f"},
		"a; b; c; d; e; and 2 more": {"a", "b", "c", "d", "e", "f", "g"},
	}
	for want, items := range cases {
		if diff := cmp.Diff(want, enumerate(items)); diff != "" {
			t.Errorf("%v: %s", items, diff)
		}
	}
}
