// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

import (
	"slices"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
)

// Counts are what the kernel counted on the CPU of an end while it measured or answered, or why nothing was counted.
type Counts struct {
	// CPU that the end was kept to; -1 when to none.
	CPU int `json:"cpu"`
	// Counted are the interrupts and softirqs there over CountedNanoseconds, the most frequent first. The time is 0 where nothing was counted.
	Counted            []counted.Event `json:"counted,omitempty"`
	CountedNanoseconds int64           `json:"countedNanoseconds,omitempty"`
	// InterruptsFrom is where interrupts were counted: /proc/interrupts; /sys/kernel/irq, which has those of devices alone; or none.
	InterruptsFrom string `json:"interruptsFrom,omitempty"`
	// Isolation is what the scheduler and the idle governor counted; nil where nothing was counted.
	Isolation *counted.Isolation `json:"isolation,omitempty"`
	// Unknown says why nothing was counted; "" when something was.
	Unknown string `json:"unknown,omitempty"`
}

// End is one end of a measurement with all that the kernel counted of it.
type End struct {
	// Name is EndClient or EndServer.
	Name string
	// CPU that it was kept to; -1 when to none.
	CPU int
	// Counts of a search are several at the server, which counts for each client program. There are none where nobody asked.
	Counts []Counts
	// Preemptions and PageFaults are those of the program over the whole measurement.
	Preemptions, PageFaults uint64
}

// The names of both ends, as sentences have them.
const (
	EndClient = "client"
	EndServer = "server"
)

// Client is the end that measured.
func (r *Result) Client() End {
	end := End{Name: EndClient, CPU: r.Setup.Client.CPU, Preemptions: r.Preemptions, PageFaults: r.PageFaults}
	if r.CountedNanoseconds > 0 || r.Isolation != nil {
		end.Counts = []Counts{{
			CPU: end.CPU, Counted: r.Counted, CountedNanoseconds: r.CountedNanoseconds, InterruptsFrom: r.InterruptsFrom, Isolation: r.Isolation,
		}}
	}
	return end
}

// Server is the end that answered.
func (r *Result) Server() End {
	return End{Name: EndServer, CPU: r.Setup.Server.CPU, Counts: r.ServerCounts, Preemptions: r.ServerPreemptions, PageFaults: r.ServerPageFaults}
}

// Kernel are the interrupts and softirqs on the CPU of an end, the most frequent first.
func (e *End) Kernel() []counted.Event {
	var events []counted.Event
	for i := range e.Counts {
		events = counted.Merge(events, e.Counts[i].Counted)
	}
	counted.Sort(events)
	return events
}

// Events are all that the kernel counted of an end and on its CPU, the most frequent first.
func (e *End) Events() []counted.Event {
	events := e.Kernel()
	for _, event := range []counted.Event{counted.Preemptions(e.Preemptions), counted.PageFaults(e.PageFaults)} {
		if event.Count > 0 {
			events = append(events, event)
		}
	}
	counted.Sort(events)
	return events
}

// CountedNanoseconds is for how long was counted; 0 where nothing was.
func (e *End) CountedNanoseconds() int64 {
	over := int64(0)
	for i := range e.Counts {
		over += e.Counts[i].CountedNanoseconds
	}
	return over
}

// Unknown says why nothing was counted in a part of the measurement; "" when something was in all, or nobody asked.
func (e *End) Unknown() string {
	for i := range e.Counts {
		if e.Counts[i].Unknown != "" {
			return e.Counts[i].Unknown
		}
	}
	return ""
}

// InterruptsFrom is where interrupts were counted, each place once; "" where they were not.
func (e *End) InterruptsFrom() string {
	var from []string
	for i := range e.Counts {
		if one := e.Counts[i].InterruptsFrom; one != "" && !slices.Contains(from, one) {
			from = append(from, one)
		}
	}
	return strings.Join(from, ", ")
}

// Isolation is what the scheduler and the idle governor counted in each part of the measurement. What was not counted is unknown, and not nothing.
func (e *End) Isolation() []counted.Isolation {
	var found []counted.Isolation
	for i := range e.Counts {
		switch one := &e.Counts[i]; {
		case one.Unknown != "":
			found = append(found, counted.Uncounted(one.CPU, one.Unknown))
		case one.Isolation != nil:
			found = append(found, *one.Isolation)
		}
	}
	return found
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
