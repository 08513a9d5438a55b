// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hosttree

import (
	"fmt"
	"strconv"
	"strings"
)

// counters is a table of /proc/interrupts or /proc/softirqs.
type counters struct {
	// columns are the numbers of the CPUs.
	columns []int
	rows    []counterRow
	// totals are lines such as ERR that count for the machine; they stay 0.
	totals []string
}

// counterRow is one line: a count for each column, and what is printed after them.
type counterRow struct {
	name   string
	counts []uint64
	text   string
}

func (c *counters) add(name, text string) {
	c.rows = append(c.rows, counterRow{name, make([]uint64, len(c.columns)), text})
}

// String prints the table as show_interrupts of kernel/irq/proc.c does.
func (c *counters) String() string {
	var b strings.Builder
	b.WriteString("    ")
	for _, cpu := range c.columns {
		fmt.Fprintf(&b, "%11s", fmt.Sprint("CPU", cpu))
	}
	b.WriteByte('\n')
	for _, row := range c.rows {
		fmt.Fprintf(&b, "%4s:", row.name)
		for _, count := range row.counts {
			field := strconv.FormatUint(count, 10)
			b.WriteString(strings.Repeat(" ", max(1, 11-len(field))) + field)
		}
		if row.text != "" {
			b.WriteString("  " + row.text)
		}
		b.WriteByte('\n')
	}
	for _, name := range c.totals {
		fmt.Fprintf(&b, "%4s:%11d\n", name, 0)
	}
	return b.String()
}

// parseCounters reads what String printed.
func parseCounters(text string) (*counters, error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	c := &counters{}
	for column := range strings.FieldsSeq(lines[0]) {
		cpu, err := strconv.Atoi(strings.TrimPrefix(column, "CPU"))
		if err != nil {
			return nil, fmt.Errorf("column %q is not a CPU", column)
		}
		c.columns = append(c.columns, cpu)
	}
	for _, line := range lines[1:] {
		if err := c.parseRow(line); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *counters) parseRow(line string) error {
	name, rest, found := strings.Cut(strings.TrimSpace(line), ":")
	if !found {
		return fmt.Errorf("line %q has no name", line)
	}
	row := counterRow{name: name}
	for range c.columns {
		rest = strings.TrimLeft(rest, " ")
		field, after, _ := strings.Cut(rest, " ")
		count, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			break
		}
		row.counts, rest = append(row.counts, count), after
	}
	if len(row.counts) < len(c.columns) {
		c.totals = append(c.totals, name)
		return nil
	}
	row.text = strings.TrimPrefix(rest, " ")
	c.rows = append(c.rows, row)
	return nil
}
