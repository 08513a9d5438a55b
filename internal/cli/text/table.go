// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	prettytext "github.com/jedib0t/go-pretty/v6/text"
)

// gap is what separates columns.
const gap = 2

// section is a part of a table, below a title of its own.
type section struct {
	title string
	rows  [][]string
}

// Table draws rows below a header. Cells are folded so that the table is at most so wide, those of the
// last column first.
func Table(header []string, rows [][]string, palette Palette, columns int) string {
	return sections(header, []section{{rows: rows}}, palette, columns)
}

// sections draws a table in sections, whose columns stand below each other. Rows are indented below the
// titles of sections.
func sections(header []string, parts []section, palette Palette, columns int) string {
	all := [][]string{header}
	for _, part := range parts {
		for i, row := range part.rows {
			if part.title != "" {
				part.rows[i] = append([]string{indented(row[0])}, row[1:]...)
			}
		}
		all = append(all, part.rows...)
	}
	widths := fit(natural(all), columns)
	var b strings.Builder
	titles := make([]string, 0, len(header))
	for _, title := range header {
		titles = append(titles, palette.Title(title))
	}
	b.WriteString(columnsOf([][]string{titles}, widths))
	for _, part := range parts {
		if len(part.rows) > 0 && part.title != "" {
			b.WriteString(palette.Title(part.title) + "\n")
		}
		b.WriteString(columnsOf(part.rows, widths))
	}
	return b.String()
}

func indented(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

// natural is the width that each column needs to fold no cell.
func natural(rows [][]string) []int {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], prettytext.LongestLineLen(cell))
		}
	}
	return widths
}

// fit takes from the widest columns until all fit, but leaves each of them enough to be read.
func fit(widths []int, columns int) []int {
	const least = 12
	sum := gap * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	for ; sum > columns; sum-- {
		widest := slices.Index(widths, slices.Max(widths))
		if widths[widest] <= least {
			break
		}
		widths[widest]--
	}
	return widths
}

// columnsOf draws rows in columns of the given widths, without a header.
func columnsOf(rows [][]string, widths []int) string {
	if len(rows) == 0 {
		return ""
	}
	t := plainTable()
	configs := make([]table.ColumnConfig, 0, len(widths))
	for i, w := range widths {
		configs = append(configs, table.ColumnConfig{Number: i + 1, WidthMin: w})
	}
	t.SetColumnConfigs(configs)
	for _, row := range rows {
		folded := make([]string, 0, len(row))
		for i, cell := range row {
			folded = append(folded, foldCell(cell, widths[i]))
		}
		t.AppendRow(cells(folded))
	}
	return t.Render() + "\n"
}

// foldCell folds each line of a cell; continued lines are indented like their beginning.
func foldCell(cell string, columns int) string {
	var lines []string
	for line := range strings.SplitSeq(cell, "\n") {
		if width(line) <= columns {
			lines = append(lines, line)
			continue
		}
		trimmed := strings.TrimLeft(line, " ")
		indent := line[:len(line)-len(trimmed)]
		hanging := ""
		if indent != "" {
			hanging = strings.Repeat(" ", gap)
		}
		for i, part := range fold(trimmed, columns-len(indent+hanging)) {
			if i > 0 {
				part = hanging + part
			}
			lines = append(lines, indent+part)
		}
	}
	return strings.Join(lines, "\n")
}

// plainTable is a table without lines: columns two blanks apart.
func plainTable() table.Writer {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "", strings.Repeat(" ", gap)
	style.Options = table.OptionsNoBordersAndSeparators
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	return t
}

// align puts cells into columns, left-aligned, one line for each row.
func align(rows [][]string) []string {
	if len(rows) == 0 {
		return nil
	}
	t := plainTable()
	for _, row := range rows {
		t.AppendRow(cells(row))
	}
	return strings.Split(t.Render(), "\n")
}

// alignRight puts cells into columns, right-aligned.
func alignRight(rows [][]string) []string {
	t := plainTable()
	configs := make([]table.ColumnConfig, 0, len(rows[0]))
	for i := range rows[0] {
		configs = append(configs, table.ColumnConfig{Number: i + 1, Align: prettytext.AlignRight})
	}
	t.SetColumnConfigs(configs)
	for _, row := range rows {
		t.AppendRow(cells(row))
	}
	return strings.Split(t.Render(), "\n")
}

func cells(texts []string) table.Row {
	row := make(table.Row, 0, len(texts))
	for _, text := range texts {
		row = append(row, text)
	}
	return row
}
