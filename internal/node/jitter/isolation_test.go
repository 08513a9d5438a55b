// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package jitter

import (
	"testing"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// isolationAt is a reading in which threads have waited so long on CPU 3.
func isolationAt(waited uint64) *host.Isolation {
	return &host.Isolation{Waited: host.Known(map[int]uint64{3: waited}, "/proc/schedstat")}
}

// TestIsolationIsOfTheMeasurement: a reading that was not ended before the measurement counts what the CPU did afterwards.
func TestIsolationIsOfTheMeasurement(t *testing.T) {
	const duration = 10 * time.Second
	var i isolation
	i.add(isolationAt(100), time.Second, time.Second+time.Millisecond, duration)
	if got := i.of(3); got.RunQueueUnknown == "" || got.IdleUnknown == "" {
		t.Errorf("one reading says %+v", got)
	}
	i.add(isolationAt(150), 4*time.Second, 4*time.Second, duration)
	i.add(isolationAt(190), 9*time.Second, 9*time.Second, duration)
	i.add(isolationAt(1e9), 10*time.Second-time.Millisecond, 10*time.Second+time.Millisecond, duration)
	if got := i.of(3); got.WaitedNanoseconds != 90 || got.Nanoseconds != (8*time.Second).Nanoseconds() || got.RunQueueUnknown != "" {
		t.Errorf("%+v", got)
	}
	if got := (&isolation{}).of(3); got.CPU != 3 || got.RunQueueUnknown == "" {
		t.Errorf("no reading says %+v", got)
	}
}

func TestIsolationInterval(t *testing.T) {
	for measured, want := range map[time.Duration]time.Duration{time.Hour: time.Second, time.Second: 200 * time.Millisecond} {
		if got := isolationInterval(measured); got != want {
			t.Errorf("%s: every %s", measured, got)
		}
	}
}
