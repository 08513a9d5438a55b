// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
)

// Since lists the interrupts and softirqs of one CPU that were counted since an earlier reading, the most frequent first. What either reading
// does not have is left out.
func (c *Counters) Since(earlier *Counters, cpu int) []counted.Event {
	events := movedLines(counted.Interrupt, cpu,
		earlier.Interrupts.Columns, earlier.Interrupts.Lines.Value, c.Interrupts.Columns, c.Interrupts.Lines.Value)
	events = append(events, movedLines(counted.Softirq, cpu,
		earlier.Softirqs.Columns, earlier.Softirqs.Lines.Value, c.Softirqs.Columns, c.Softirqs.Lines.Value)...)
	counted.Sort(events)
	return events
}

// NoInterrupts stands where no interrupt could be counted.
const NoInterrupts = "none"

// InterruptsFrom is where interrupts were counted: /proc/interrupts, DeviceInterrupts, or NoInterrupts.
func (c *Counters) InterruptsFrom() string {
	if !c.Interrupts.Lines.Known {
		return NoInterrupts
	}
	return c.Interrupts.Lines.Source
}

// movedLines compares the lines of two counter tables in the column of a CPU.
func movedLines(kind counted.Kind, cpu int, oldColumns []int, old []InterruptLine, newColumns []int, now []InterruptLine) []counted.Event {
	oldColumn, newColumn := slices.Index(oldColumns, cpu), slices.Index(newColumns, cpu)
	if oldColumn < 0 || newColumn < 0 {
		return nil
	}
	was := make(map[string]uint64, len(old))
	for _, line := range old {
		if oldColumn < len(line.Counts) {
			was[line.Name] = line.Counts[oldColumn]
		}
	}
	var events []counted.Event
	for _, line := range now {
		if newColumn >= len(line.Counts) {
			continue
		}
		if count, known := was[line.Name]; known && line.Counts[newColumn] > count {
			events = append(events, counted.Event{Kind: kind, Name: nameOf(line), Count: line.Counts[newColumn] - count})
		}
	}
	return events
}

// nameOf is the name of a counter with what the kernel says of it.
func nameOf(line InterruptLine) string {
	description := strings.Join(strings.Fields(line.Description), " ")
	if description == "" {
		return line.Name
	}
	return line.Name + " " + description
}
