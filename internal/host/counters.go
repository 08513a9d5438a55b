// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cpus"
)

// counterTable is /proc/interrupts or /proc/softirqs: a header with one column for each online CPU, then
// lines of a name, the counters and, in interrupts, a description.
type counterTable struct {
	columns []int
	lines   []InterruptLine
}

// parseCounters reads a counter table as the kernel prints it (kernel/irq/proc.c, show_interrupts;
// fs/proc/softirqs.c).
func parseCounters(text string) (counterTable, error) {
	header, body, _ := strings.Cut(text, "\n")
	columns, err := parseColumns(header)
	if err != nil {
		return counterTable{}, err
	}
	table := counterTable{columns: columns}
	for line := range strings.Lines(body) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		if len(table.lines) == maxEntries {
			return counterTable{}, tooManyError{maxEntries}
		}
		parsed, err := parseCounterLine(line, len(columns))
		if err != nil {
			return counterTable{}, fmt.Errorf("line %d: %w", len(table.lines)+2, err)
		}
		table.lines = append(table.lines, parsed)
	}
	return table, nil
}

// parseColumns reads the header: "CPU0 CPU1 …" in ascending order.
func parseColumns(header string) ([]int, error) {
	var columns []int
	for field := range strings.FieldsSeq(header) {
		id, ok := numberIn(field, "CPU", "")
		if !ok || id > cpus.MaxCPU {
			return nil, fmt.Errorf("the header names %q where a CPU belongs", abbreviate(field))
		}
		if len(columns) > 0 && id <= columns[len(columns)-1] {
			return nil, fmt.Errorf("the header names CPU%d after CPU%d", id, columns[len(columns)-1])
		}
		columns = append(columns, id)
	}
	if len(columns) == 0 {
		return nil, errors.New("the header names no CPU")
	}
	return columns, nil
}

// cutCount takes a number off the beginning of a text.
func cutCount(text string) (count uint64, rest string, ok bool) {
	field, rest, _ := strings.Cut(text, " ")
	count, err := strconv.ParseUint(field, 10, 64)
	return count, strings.TrimLeft(rest, " "), err == nil
}

// parseCounterLine reads one line. Lines that count for the whole machine have a single counter.
func parseCounterLine(line string, columns int) (InterruptLine, error) {
	name, rest, ok := strings.Cut(line, ":")
	name = strings.TrimSpace(name)
	if _, err := plainText(line); err != nil || !ok || name == "" {
		return InterruptLine{}, fmt.Errorf("%q is not of the form NAME: COUNTERS", abbreviate(line))
	}
	rest = strings.TrimSpace(rest)
	// Each counter takes two bytes at least, which bounds what a short line with many columns may cost.
	counts := make([]uint64, 0, min(columns, (len(rest)+1)/2))
	for len(counts) < columns {
		count, after, ok := cutCount(rest)
		if !ok {
			break
		}
		counts, rest = append(counts, count), after
	}
	// The strings are cloned so that a Facts that is kept does not keep the whole file.
	return InterruptLine{
		Name: strings.Clone(name), Counts: counts, Description: strings.Clone(rest),
	}, nil
}
