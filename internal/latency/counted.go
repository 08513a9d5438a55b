// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

import (
	"slices"
	"strconv"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
)

// Events are all that the kernel counted of the client and on its CPU, the most frequent first.
func (r *Result) Events() []counted.Event {
	events := slices.Clone(r.Counted)
	for _, event := range []counted.Event{counted.Preemptions(r.Preemptions), counted.PageFaults(r.PageFaults)} {
		if event.Count > 0 {
			events = append(events, event)
		}
	}
	counted.Sort(events)
	return events
}

// PerSecond is how often something happened, in words, with two digits below ten.
func PerSecond(count uint64, nanoseconds int64) string {
	const few = 10
	rate := float64(count) / (float64(nanoseconds) / 1e9)
	if rate < few {
		return strconv.FormatFloat(rate, 'g', 2, 64)
	}
	return strconv.FormatFloat(rate, 'f', 0, 64)
}
