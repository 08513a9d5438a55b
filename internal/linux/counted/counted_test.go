// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package counted

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCompare: a rare event that explains much goes before frequent ones that explain little.
func TestCompare(t *testing.T) {
	events := []Event{
		{Softirq, "RCU", 900}, {Interrupt, "142 eth0", 1}, {Interrupt, "LOC", 25}, PageFaults(2), Preemptions(3), {Softirq, "TIMER", 950}, Firmwares(1),
	}
	want := []Event{Firmwares(1), Preemptions(3), PageFaults(2), {Interrupt, "LOC", 25}, {Interrupt, "142 eth0", 1}, {Softirq, "TIMER", 950}, {Softirq, "RCU", 900}}
	slices.SortStableFunc(events, Compare)
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
