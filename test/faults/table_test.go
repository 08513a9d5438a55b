// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// tablesVariable names the file to which the tables are appended; "make faults" prints it.
const tablesVariable = "FAULT_TABLES"

// line is what came of a row on a machine.
type line struct {
	name, machine string
	check         v1alpha1.CheckID
	outcome, says string
}

// table collects lines.
type table struct {
	title string
	mutex sync.Mutex
	lines []line
}

func newTable(title string) *table { return &table{title: title} }

// add takes a line, and fails the test of its row unless all is well with it or it is known to be open.
func (l *table) add(t *testing.T, found line) {
	t.Helper()
	well := slices.Contains([]string{outcomeCaught, outcomeSound, outcomeRefused}, found.outcome)
	reason, isOpen := open()[found.name]
	if !isOpen {
		reason, isOpen = open()[found.name+"@"+found.machine]
	}
	switch {
	case well && isOpen:
		t.Errorf("this row is open (%s), and it passes: take it out of open()", reason)
	case !well && isOpen:
		found.outcome, found.says = outcomeOpen, reason+": "+found.outcome+": "+found.says
	case !well:
		t.Errorf("%s: %s", found.outcome, found.says)
	case found.says != "":
		t.Log(found.says)
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.lines = append(l.lines, found)
}

// String is the table as text: one line for each row and machine, and the sums.
func (l *table) String() string {
	slices.SortStableFunc(l.lines, func(a, b line) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.machine, b.machine)) })
	var b strings.Builder
	count, rows := map[string]int{}, map[string]bool{}
	for _, found := range l.lines {
		fmt.Fprintf(&b, "%-10s %-15s %-28s %s", found.outcome, found.machine, found.check, found.name)
		if found.says != "" {
			fmt.Fprintf(&b, "\n%26s %s", "", found.says)
		}
		b.WriteByte('\n')
		count[found.outcome]++
		rows[found.name] = true
	}
	fmt.Fprintf(&b, "%d %s, on machines %d times:", len(rows), l.title, len(l.lines))
	for _, outcome := range slices.Sorted(maps.Keys(count)) {
		fmt.Fprintf(&b, " %d %s", count[outcome], outcome)
	}
	b.WriteByte('\n')
	return b.String()
}

// print appends the table to the file that was asked for, and logs its last line.
func (l *table) print(t *testing.T) {
	t.Helper()
	text := l.String()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	t.Log(lines[len(lines)-1])
	path := os.Getenv(tablesVariable)
	if path == "" {
		return
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteString(text + "\n")
	if err := cmp.Or(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}
