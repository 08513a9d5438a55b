// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package counted names what the kernel counts on a CPU, and by how much it moved while something was measured there: a bad figure comes with
// what may have made it. It is pure.
package counted

import (
	"cmp"
	"slices"
)

// Event is a counter of the kernel that moved.
type Event struct {
	// Kind is Interrupt, Softirq, ContextSwitch, PageFault or Firmware.
	Kind Kind `json:"kind"`
	// Name is the line of /proc/interrupts or /proc/softirqs, with its description, or the name that the kernel has for the counter elsewhere.
	Name string `json:"name"`
	// Count is by how much the counter moved between two readings.
	Count uint64 `json:"count"`
}

// Kind is the kind of a counter.
type Kind string

const (
	// Interrupt is a line of /proc/interrupts.
	Interrupt Kind = "Interrupt"
	// Softirq is a line of /proc/softirqs.
	Softirq Kind = "Softirq"
	// ContextSwitch is nonvoluntary_ctxt_switches of the thread that measures: the kernel gave its CPU to something else.
	ContextSwitch Kind = "ContextSwitch"
	// PageFault is a fault of memory of the thread that measures, minor or major (getrusage(2)).
	PageFault Kind = "PageFault"
)

// Title is the name of the counter, with its kind where the name alone could be either.
func (e Event) Title() string {
	if e.Kind == Softirq {
		return "softirq " + e.Name
	}
	return e.Name
}

// Preemptions are those of the thread that measures.
func Preemptions(count uint64) Event {
	return Event{ContextSwitch, "nonvoluntary_ctxt_switches", count}
}

// PageFaults are those of the thread that measures.
func PageFaults(count uint64) Event { return Event{PageFault, "minor or major", count} }

// Sort puts the most frequent first, and leaves what is equally frequent in its order.
func Sort(events []Event) {
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(b.Count, a.Count) })
}

// Compare puts first what tells most directly why a thread did not run: the firmware, which stops all CPUs; then what happened to the thread
// itself, preemptions and page faults; then interrupts; and softirqs last, since they follow from interrupts. Of one kind the most frequent comes first.
func Compare(a, b Event) int {
	return cmp.Or(cmp.Compare(a.Kind.rank(), b.Kind.rank()), cmp.Compare(b.Count, a.Count))
}

// rank is the place of a kind in the order of Compare.
func (k Kind) rank() int {
	const firmware, thread, interrupt, softirq = 0, 1, 2, 3
	switch k {
	case Firmware:
		return firmware
	case ContextSwitch, PageFault:
		return thread
	case Softirq:
		return softirq
	default:
		return interrupt
	}
}

// Merge adds what was counted to what was counted before, and changes the latter.
func Merge(all, more []Event) []Event {
	for _, one := range more {
		at := slices.IndexFunc(all, func(e Event) bool { return e.Kind == one.Kind && e.Name == one.Name })
		if at < 0 {
			all = append(all, one)
		} else {
			all[at].Count += one.Count
		}
	}
	return all
}

// Total of a kind.
func Total(events []Event, kind Kind) uint64 {
	total := uint64(0)
	for _, event := range events {
		if event.Kind == kind {
			total += event.Count
		}
	}
	return total
}
