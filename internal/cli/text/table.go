// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	prettytext "github.com/jedib0t/go-pretty/v6/text"
)

// plainTable is a table without lines: columns two blanks apart.
func plainTable() table.Writer {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = prettytext.FormatDefault
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	return t
}

// Table draws rows below a header; the cells of the last column are wrapped so that the table is at most
// so wide.
func Table(header []string, rows [][]string, palette Palette, columns int) string {
	t := plainTable()
	titles := make([]string, 0, len(header))
	for _, title := range header {
		titles = append(titles, palette.Title(title))
	}
	t.AppendHeader(cells(titles))
	for _, row := range rows {
		t.AppendRow(cells(row))
	}
	t.SetColumnConfigs([]table.ColumnConfig{{
		Number:           len(header),
		WidthMax:         max(columns-widthBefore(append([][]string{header}, rows...), len(header)-1), 24),
		WidthMaxEnforcer: prettytext.WrapSoft,
	}})
	return t.Render() + "\n"
}

// widthBefore is the width of the columns before the given one.
func widthBefore(rows [][]string, last int) int {
	sum := 0
	for column := range last {
		widest := 0
		for _, row := range rows {
			for line := range strings.SplitSeq(row[column], "\n") {
				widest = max(widest, width(line))
			}
		}
		sum += widest + 2
	}
	return sum
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
	var configs []table.ColumnConfig
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
