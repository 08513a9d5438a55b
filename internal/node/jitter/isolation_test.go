// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package jitter

import (
	"testing"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// isolationAt is a reading in which threads have waited so long on CPU 3, which was read between two moments of the measurement.
func isolationAt(waited uint64, began, ended time.Duration) *host.Isolation {
	return &host.Isolation{
		RunQueues: host.Known(map[int]host.RunQueue{3: {WaitedNanoseconds: waited}}, "/proc/schedstat"), WaitedIn: host.Span{Began: time.Unix(0, 0).Add(began), Ended: time.Unix(0, 0).Add(ended)},
	}
}

// TestIsolationIsOfTheMeasurement: a reading that was not ended before the measurement counts what the CPU did afterwards.
func TestIsolationIsOfTheMeasurement(t *testing.T) {
	const duration = 10 * time.Second
	var i isolation
	add := func(waited uint64, began, ended time.Duration) {
		i.add(isolationAt(waited, began, ended), began, ended, duration)
	}
	add(100, time.Second, time.Second+time.Millisecond)
	if got := i.of(3); got.RunQueueUnknown == "" || got.IdleUnknown == "" {
		t.Errorf("one reading says %+v", got)
	}
	add(150, 4*time.Second, 4*time.Second)
	add(190, 9*time.Second, 9*time.Second)
	add(1e9, 10*time.Second-time.Millisecond, 10*time.Second+time.Millisecond)
	if got := i.of(3); got.WaitedNanoseconds != 90 || got.Nanoseconds != (8*time.Second).Nanoseconds() || got.RunQueueUnknown != "" {
		t.Errorf("%+v", got)
	}
	if got := (&isolation{}).of(3); got.CPU != 3 || got.RunQueueUnknown == "" {
		t.Errorf("no reading says %+v", got)
	}
}

// TestIsolationOfAStarvedReader: the last reading was begun after 2 s, and read when the reader got a CPU 6 s later. What was counted until then is not
// told as if it had come within a second.
func TestIsolationOfAStarvedReader(t *testing.T) {
	var i isolation
	i.add(isolationAt(0, time.Second, time.Second), time.Second, time.Second, 10*time.Second)
	i.add(isolationAt(700, 8*time.Second-time.Millisecond, 8*time.Second), 2*time.Second, 8*time.Second, 10*time.Second)
	if got := i.of(3); got.WaitedNanoseconds != 700 || got.Nanoseconds != (7*time.Second).Nanoseconds() {
		t.Errorf("%+v", got)
	}
}

func TestIsolationInterval(t *testing.T) {
	for measured, want := range map[time.Duration]time.Duration{time.Hour: time.Second, time.Second: 200 * time.Millisecond} {
		if got := isolationInterval(measured); got != want {
			t.Errorf("%s: every %s", measured, got)
		}
	}
}
