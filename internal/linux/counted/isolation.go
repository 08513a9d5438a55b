// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package counted

import "cmp"

// Isolation is what the scheduler and the idle governor of the kernel counted on one CPU while something was measured there.
type Isolation struct {
	CPU int `json:"cpu"`
	// Nanoseconds is for how long waiting was counted, IdleNanoseconds for how long idle states were; 0 in results that were saved when both were
	// taken for the same.
	Nanoseconds     int64 `json:"nanoseconds"`
	IdleNanoseconds int64 `json:"idleNanoseconds,omitempty"`
	// WaitedNanoseconds is for how long threads, all of them together, waited in the run queue of the CPU.
	WaitedNanoseconds uint64 `json:"waitedNanoseconds"`
	// RunQueueUnknown says why that is not known; "" when it is.
	RunQueueUnknown string `json:"runQueueUnknown,omitempty"`
	// IdleStates are those that were entered, the one with the longest latency first.
	IdleStates []IdleEntries `json:"idleStates,omitempty"`
	// IdleUnknown says why that is not known; "" when it is.
	IdleUnknown string `json:"idleUnknown,omitempty"`
	// BusyTicks is for how long the CPU was at work, of AllTicks, in the unit of /proc/stat. AllTicks is 0 where that is not known, and in results that
	// were saved before it was asked.
	BusyTicks uint64 `json:"busyTicks,omitempty"`
	AllTicks  uint64 `json:"allTicks,omitempty"`
	// BusyUnknown says why that is not known; "" when it is.
	BusyUnknown string `json:"busyUnknown,omitempty"`
}

// IdleEntries are how often a CPU entered one of its idle states.
type IdleEntries struct {
	// State is the kernel's name of it, such as C6.
	State string `json:"state"`
	// LatencyMicroseconds is how long the CPU takes to leave it at most; 0 where the kernel does not say it.
	LatencyMicroseconds int64  `json:"latencyMicroseconds"`
	Count               uint64 `json:"count"`
}

// Uncounted is a CPU of which nothing was counted, for a reason.
func Uncounted(cpu int, reason string) Isolation {
	return Isolation{CPU: cpu, RunQueueUnknown: reason, IdleUnknown: reason, BusyUnknown: reason}
}

// IdleOver is for how long idle states were counted.
func (i *Isolation) IdleOver() int64 { return cmp.Or(i.IdleNanoseconds, i.Nanoseconds) }
