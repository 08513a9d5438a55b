// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// DeviceInterrupts has a folder for each interrupt of a device (Documentation/ABI/testing/sysfs-kernel-irq). It is the source of the
// counters where /proc/interrupts is hidden.
const DeviceInterrupts = "/sys/kernel/irq"

// deviceInterrupts counts the interrupts of devices from /sys/kernel/irq, one file for each: no container runtime hides them. Those
// without a handler never come, and are left out. The latest table is shared as by counters.
func (r *reader) deviceInterrupts(latest *atomic.Pointer[counterTable]) ([]int, Fact[[]InterruptLine]) {
	possible := read(r, r.set("/sys/devices/system/cpu/possible", "")[0])
	if !possible.Known {
		return nil, Absent[[]InterruptLine](possible.Source, possible.Reason)
	}
	table := counterTable{columns: possible.Value.IDs()}
	var earlier []InterruptLine
	if known := latest.Load(); known != nil && slices.Equal(known.columns, table.columns) {
		earlier, table.columns = known.lines, known.columns
	}
	for _, number := range r.numbered(DeviceInterrupts, "", "", maxEntries) {
		line, ok := r.deviceInterrupt(number, len(table.columns), earlier)
		if ok {
			table.lines = append(table.lines, line)
		}
		if len(earlier) > 0 && earlier[0].Name == line.Name {
			earlier = earlier[1:]
		}
	}
	if err := r.broken(); err != nil || len(table.lines) == 0 {
		return nil, Absent[[]InterruptLine](DeviceInterrupts, "no interrupt of a device can be read")
	}
	latest.Store(&table)
	return table.columns, Known(table.lines, DeviceInterrupts)
}

// deviceInterrupt reads one interrupt: its counters each time, and who handles it when it is new. The earlier table begins with it, if it has it.
func (r *reader) deviceInterrupt(number, columns int, earlier []InterruptLine) (InterruptLine, bool) {
	line := InterruptLine{Name: strconv.Itoa(number)}
	folder := DeviceInterrupts + "/" + line.Name + "/"
	known := len(earlier) > 0 && earlier[0].Name == line.Name
	if known {
		line.Description = earlier[0].Description
	} else {
		actions := r.nameFact(folder + "actions")
		if !actions.Known {
			return line, false
		}
		line.Description = fmt.Sprintf("%s %s-%s  %s", r.textFact(folder+"chip_name").Value, r.textFact(folder+"hwirq").Value,
			r.textFact(folder+"type").Value, strings.ReplaceAll(actions.Value, ",", ", "))
	}
	counts := read(r, source[[]uint64]{folder + "per_cpu_count", func(text string) ([]uint64, error) { return perCPUCounts(text, columns) }})
	line.Counts = counts.Value
	if known && slices.Equal(line.Counts, earlier[0].Counts) {
		line.Counts = earlier[0].Counts
	}
	return line, counts.Known
}

// perCPUCounts reads the counters of an interrupt, one for each possible CPU with commas between them (kernel/irq/irqdesc.c,
// per_cpu_count_show).
func perCPUCounts(text string, columns int) ([]uint64, error) {
	fields := strings.Split(text, ",")
	if len(fields) != columns {
		return nil, fmt.Errorf("%d counters of %d possible CPUs", len(fields), columns)
	}
	counts := make([]uint64, columns)
	for i, field := range fields {
		count, err := parseCount(field)
		if err != nil {
			return nil, err
		}
		counts[i] = count
	}
	return counts, nil
}
