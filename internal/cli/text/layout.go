// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"strings"

	prettytext "github.com/jedib0t/go-pretty/v6/text"
)

// width counts the columns of a text, without its colours.
func width(text string) int { return prettytext.StringWidthWithoutEscSequences(text) }

// padRight fills a text with blanks up to the number of columns.
func padRight(text string, columns int) string {
	return text + strings.Repeat(" ", max(0, columns-width(text)))
}

// padLeft puts blanks before a text up to the number of columns.
func padLeft(text string, columns int) string {
	return strings.Repeat(" ", max(0, columns-width(text))) + text
}

// box draws a frame of the given outer width around lines. A line that does not fit is cut.
func box(title string, lines []string, columns int, palette Palette) []string {
	inner := columns - 4
	title = prettytext.Trim(title, inner-2)
	drawn := []string{
		palette.Faint("╭─ ") + palette.Title(title) + palette.Faint(" "+strings.Repeat("─", inner-width(title)-1)+"╮"),
	}
	for _, line := range lines {
		line = padRight(prettytext.Trim(line, inner), inner)
		drawn = append(drawn, palette.Faint("│ ")+line+palette.Faint(" │"))
	}
	return append(drawn, palette.Faint("╰"+strings.Repeat("─", columns-2)+"╯"))
}

// flow puts pieces side by side, a gap between them, into lines of at most the given width. A piece that
// is wider than a line gets a line of its own.
func flow(pieces []string, gap string, columns int) []string {
	var lines []string
	line := ""
	for _, piece := range pieces {
		if line != "" && width(line)+width(gap)+width(piece) > columns {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += gap
		}
		line += piece
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// wrap breaks a text at blanks into lines of at most the given width; later lines are indented.
func wrap(text, indent string, columns int) []string {
	lines := flow(strings.Fields(text), " ", columns-len(indent))
	for i := 1; i < len(lines); i++ {
		lines[i] = indent + lines[i]
	}
	return lines
}
