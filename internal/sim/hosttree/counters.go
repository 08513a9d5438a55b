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
	// A column is 11 wide: a number of 16 bits leaves a space before it.
	for column := range strings.FieldsSeq(lines[0]) {
		number, named := strings.CutPrefix(column, "CPU")
		cpu, err := strconv.ParseUint(number, 10, 16)
		if !named || err != nil {
			return nil, fmt.Errorf("column %q is not a CPU", column)
		}
		c.columns = append(c.columns, int(cpu))
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
	if !found || name == "" {
		return fmt.Errorf("line %q has no name", line)
	}
	if isTotal(name) {
		c.totals = append(c.totals, name)
		return nil
	}
	row := counterRow{name: name}
	for range c.columns {
		field, after, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
		count, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return fmt.Errorf("line %q has too few counts", line)
		}
		row.counts, rest = append(row.counts, count), after
	}
	row.text = strings.TrimPrefix(rest, " ")
	c.rows = append(c.rows, row)
	return nil
}

// isTotal tells lines with one count for the machine.
func isTotal(name string) bool { return name == "ERR" || name == "MIS" || name == "Err" }
