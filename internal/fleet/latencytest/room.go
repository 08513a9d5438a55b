// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencytest

import (
	"encoding/json"
	"math"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

const (
	// mostBytes is the largest object that etcd takes (--max-request-bytes), without what of a test is no result.
	mostBytes = 3<<19 - 8192
	// bytesOfRest is what a result has beside its measurements: names, times, the longest message, and runs before the previous one.
	bytesOfRest = 2200
)

// withCountsInRoom is a measurement of a network with as much of what was counted on the CPUs of both ends as a node's share of the object holds: without what
// scheduler and idle governor counted, then with half of the causes, then without any. Both ends give up the same, so that none seems to be the quiet one.
func (d *decider) withCountsInRoom(measured *v1alpha1.LatencyMeasurement) *v1alpha1.LatencyMeasurement {
	if measured.Network == nil {
		return measured
	}
	room := mostBytes/max(1, len(d.selectedNodes)) - bytesOfRest - bytesOf(d.asPrevious(measured))
	for _, leave := range []func(*countedAt){
		func(c *countedAt) { *c.isolation = nil },
		func(c *countedAt) { *c.causes = qualification.FirstCauses(*c.causes, v1alpha1.MaxTestCauses/2) },
		func(c *countedAt) { *c.causes = nil },
	} {
		if bytesOf(measured) <= room {
			return measured
		}
		measured = changeCounts(measured, leave)
	}
	return measured
}

// withoutCounts is a measurement without what was counted on CPUs meanwhile.
func withoutCounts(measured *v1alpha1.LatencyMeasurement) *v1alpha1.LatencyMeasurement {
	return changeCounts(measured, func(c *countedAt) { *c.causes, *c.isolation, *c.interrupts = nil, nil, "" })
}

// countedAt is what was counted on the CPU of an end, of a side of a comparison or of none.
type countedAt struct {
	causes     *[]string
	interrupts *v1alpha1.CountedInterrupts
	isolation  **v1alpha1.LatencyIsolation
}

// changeCounts is a measurement with a change of what was counted at each end.
func changeCounts(measured *v1alpha1.LatencyMeasurement, change func(*countedAt)) *v1alpha1.LatencyMeasurement {
	m := measured.DeepCopy()
	ofServer := func(s *v1alpha1.ServerCounts) {
		change(&countedAt{&s.ServerCauses, &s.ServerCountedInterrupts, &s.ServerIsolation})
	}
	change(&countedAt{&m.Causes, &m.CountedInterrupts, &m.Isolation})
	if m.Network == nil {
		return m
	}
	ofServer(&m.Network.ServerCounts)
	if m.Network.Comparison == nil {
		return m
	}
	for i := range m.Network.Comparison.Sides {
		side := &m.Network.Comparison.Sides[i]
		// What interrupts the clients of the sides have counted is one field of the measurement.
		change(&countedAt{&side.Causes, new(v1alpha1.CountedInterrupts), &side.Isolation})
		ofServer(&side.ServerCounts)
	}
	return m
}

// bytesOf is how long a measurement is in an object.
func bytesOf(measured *v1alpha1.LatencyMeasurement) int {
	text, err := json.Marshal(measured)
	if err != nil {
		return math.MaxInt
	}
	return len(text)
}
