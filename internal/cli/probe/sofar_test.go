// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/traffic"
)

func TestSoFar(t *testing.T) {
	carried := []latency.Percentile{{Percent: 50, Nanoseconds: 10_439}, {Percent: 99, Nanoseconds: 2_345_678}}
	for want, p := range map[string]traffic.Progress{
		"warming up": {Phase: traffic.PhaseWarmUp, Bytes: 1},
		"64 bytes: 0 half round trips, 50 without an answer":                                            {Phase: traffic.PhaseOneAtATime, Bytes: 64, Sent: 50, Lost: 50},
		"64 bytes: 20000 half round trips, 50 % 5.2 µs, 99 % 1.2 ms, longest 2 ms, 0 without an answer": {Phase: traffic.PhaseOneAtATime, Bytes: 64, Samples: 20_000, LongestNanoseconds: 4_000_000, Percentiles: carried},
		"50000 messages a second: 9000 sent, 3 late; 1000 round trips, 50 % 10 µs, 99 % 2.3 ms, longest 4 ms": {
			Phase: traffic.PhaseOnSchedule, Bytes: 64, PerSecond: 50_000, Sent: 9000, Late: 3, Samples: 1000, LongestNanoseconds: 4_000_000, Percentiles: carried,
		},
	} {
		if diff := cmp.Diff(want, soFar(p, false)); diff != "" {
			t.Error(diff)
		}
	}
}
