// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package mistakes

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
)

// Flags of the tests, beside those of "go test".
//
//nolint:gochecknoglobals // That is how flags of tests are made.
var (
	seedFlag  = flag.Uint64("seed", 0, "make the history of this seed again, and no other")
	countFlag = flag.Int("histories", 0, "how many histories are made; 0 for a few")
	firstFlag = flag.Uint64("first", 1, "the first seed of the histories that -histories asks for")
	onlyFlag  = flag.String("mistake", "", "make those of the named mistakes whose names match this expression, and no others")
	// On a machine that is busy with other tests anything may take long.
	patience  = flag.Duration("patience", 150*time.Second, "how long anything may take")
	allFlag   = flag.Bool("all", false, "make all named mistakes, and not only a few")
	tableFlag = flag.String("table", "", "a file to which the tables are appended, too")
)

// knownFailures are what is being mended, by the name of the mistake or of the kind of history, with a part of the
// complaint. It is empty when everything is mended.
func knownFailures() map[string][]string {
	return map[string][]string{}
}

// complain fails the test for what is not known.
func complain(t *testing.T, name string, complaints []string) {
	t.Helper()
	for _, complaint := range complaints {
		known := slices.ContainsFunc(knownFailures()[name], func(part string) bool { return strings.Contains(complaint, part) })
		if known {
			t.Logf("known: %s", complaint)
			continue
		}
		t.Error(complaint)
	}
}

// printTable shows a table in the log of the test, and in the file that -table names.
func printTable(t *testing.T, rows table.Writer) {
	t.Helper()
	text := rows.Render() + "\n"
	fmt.Println(text)
	if *tableFlag == "" {
		return
	}
	file, err := os.OpenFile(*tableFlag, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // What matters was written before.
	if _, err := file.WriteString(text + "\n"); err != nil {
		t.Fatal(err)
	}
}

// namedTable is what each named mistake has cost.
type namedTable struct{ rows table.Writer }

func newNamedTable() *namedTable {
	rows := table.NewWriter()
	rows.SetStyle(table.StyleLight)
	rows.SetTitle("What a mistake costs")
	rows.AppendHeader(table.Row{"mistake", "reboots", "reboots of the correction", "taints", "without cause", "healthy NICs lost", "stuck", "false green", "status silent", "verdict"})
	return &namedTable{rows: rows}
}

func (n *namedTable) add(m *mistake, c *cost, complaints []string) {
	without := 0
	taints := slices.Concat(c.mistake.taints, c.correction.taints)
	for _, t := range taints {
		if t.doubt != "" {
			without++
		}
	}
	stuck, lies := 0, len(c.lies)
	if c.stuck != "" {
		stuck = 1
	}
	silent := 0
	if c.silent != "" {
		silent = 1
	}
	verdict := "as it should be"
	if len(complaints) > 0 {
		verdict = complaints[0]
	}
	n.rows.AppendRow(table.Row{
		m.name, countsText(c.mistake.reboots), countsText(c.correction.reboots), len(taints), without, len(c.mistake.lost), stuck, lies, silent, shorten(verdict),
	})
}

func (n *namedTable) print(t *testing.T) {
	t.Helper()
	printTable(t, n.rows)
}

// countsText is "xeon-1: 1, xeon-2: 1", or "0".
func countsText(counts map[string]int) string {
	texts := make([]string, 0, len(counts))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		texts = append(texts, fmt.Sprintf("%s: %d", name, counts[name]))
	}
	if len(texts) == 0 {
		return "0"
	}
	return strings.Join(texts, ", ")
}

func shorten(text string) string {
	const most = 100
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}
