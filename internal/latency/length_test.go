// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

import "testing"

func TestLength(t *testing.T) {
	for nanoseconds, want := range map[int64]string{0: "0 ns", 500: "500 ns", 1500: "1.5 µs", 12_340: "12.34 µs", 100_000: "100 µs", 3_000_000: "3 ms", 1_000_000_000: "1 s", 2_500_000_000: "2.5 s", 2_500_000_000_000: "2500 s"} {
		if got := Length(nanoseconds); got != want {
			t.Errorf("%d: %s, want %s", nanoseconds, got, want)
		}
	}
}
