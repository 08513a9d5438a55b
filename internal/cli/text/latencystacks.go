// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// ownProgram is what has measured where no other program has.
const ownProgram = "lowlatency-traffic"

// Stacks is one table of ping-pongs by several stacks: for each size a line for each stack, and below it, but for the first, the ratios of percentiles to those
// of the first. A second table says by which program and over which path each was measured, and how it ended.
func Stacks(stacks *latency.Stacks, palette Palette, columns int) string {
	var sides []*latency.ComparedSide
	for _, size := range stacks.Sizes {
		for _, row := range size.Sides {
			sides = append(sides, row.Measured)
		}
	}
	ladder := carried(sides)
	rows := make([][]string, 0, 2*len(sides))
	for i := range stacks.Sizes {
		rows = append(rows, linesOfStacks(&stacks.Sizes[i], ladder)...)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, with one message under way at a time\n\n", roundTripWords(stacks.RoundTrip))
	b.WriteString(Table(lengthsHeader([]string{"BYTES", "STACK", "SAMPLES", "LOST"}, ladder), rows, palette, columns))
	b.WriteString("\n" + stacksMeasured(stacks, palette, columns) + "\n")
	for _, sentence := range stacksRemarks(stacks) {
		b.WriteString(paragraph(sentence, columns))
	}
	return b.String()
}

// linesOfStacks are those of messages of one size.
func linesOfStacks(size *latency.StacksSize, ladder []float64) [][]string {
	lines := make([][]string, 0, 2*len(size.Sides))
	bytes := strconv.Itoa(size.Bytes)
	for i := range size.Sides {
		side := &size.Sides[i]
		counts := []string{notCarried, notCarried}
		if side.Measured != nil {
			counts = []string{unsigned(side.Measured.Samples), unsigned(side.Measured.Lost)}
		}
		lines = append(lines, slices.Concat([]string{bytes, side.Name}, counts, lengthCells(side.Measured, ladder)))
		if i > 0 && side.Measured != nil {
			lines = append(lines, ratioLine([]string{bytes, "  ratio"}, side.Ratios, len(counts), ladder))
		}
	}
	return lines
}

// stacksMeasured is the table of how each stack was measured.
func stacksMeasured(stacks *latency.Stacks, palette Palette, columns int) string {
	rows := make([][]string, 0, len(stacks.Sides))
	for _, side := range stacks.Sides {
		rows = append(rows, []string{
			side.Name, cmp.Or(side.Generator, ownProgram), orDash(string(side.Transport)), orDash(string(side.Waiting)), orDash(string(side.Path)),
			fmt.Sprintf("%s (%s)", side.Outcome.Verdict, side.Outcome.Reason),
		})
	}
	return Table([]string{"STACK", "MEASURED BY", "TRANSPORT", "WAITING", "PATH", "OUTCOME"}, rows, palette, columns)
}

// stacksRemarks say what the marks of the table mean, and what a reader has to know of the stacks.
func stacksRemarks(stacks *latency.Stacks) []string {
	first := stacks.Sides[0]
	remarks := lengthsLegend("ratio: to "+first.Name+"; ", "")
	differs := func(what func(latency.StacksSide) string) bool {
		return slices.ContainsFunc(stacks.Sides, func(side latency.StacksSide) bool { return what(side) != what(first) })
	}
	if differs(func(side latency.StacksSide) string { return side.Generator }) {
		remarks = append(remarks, "Not all were measured by the same program: ratios have what the programs themselves cost.")
	}
	if differs(func(side latency.StacksSide) string { return string(side.Transport) }) {
		remarks = append(remarks, "Not all are known to be measured over the same transport: ratios have what the transport costs.")
	}
	for _, side := range stacks.Sides {
		if side.Outcome.Verdict != latency.Passed {
			remarks = append(remarks, side.Name+": "+side.Outcome.Message)
		}
	}
	return remarks
}
