// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Terminals that know synchronized updates (DEC private mode 2026) show nothing of what is between the two before it is whole, and others pass over
// them. The driver of a terminal hands on a longer piece in parts.
const beginUpdate, endUpdate = "\x1b[?2026h", "\x1b[?2026l"

// screen shows a changing picture: redrawn in place on a terminal. Elsewhere it prints a line for each change of the summary,
// and the picture once, when it is final.
type screen struct {
	narrator *narrator
	// last is the picture as it was asked for, summary the line that stands for it.
	last, summary string
	// rows and columns are those that the last drawing took and had.
	rows, columns int
}

func (n *narrator) screen() *screen { return &screen{narrator: n} }

// show replaces what the screen shows.
func (s *screen) show(summary, picture string) {
	if s.narrator.size != nil {
		s.redraw(picture)
	} else if summary != s.summary {
		s.narrator.say("%s", summary)
	}
	s.last, s.summary = picture, summary
}

// finish leaves the picture as it is now.
func (s *screen) finish() {
	if s.narrator.size == nil && s.last != "" {
		s.narrator.block("\n" + s.last)
	}
	s.narrator.printf("\n")
}

// redraw goes back to the first line of the last drawing and writes the new one over it, in one piece, so that no half of a
// picture is ever seen. Every line takes exactly one row: what is wider than the terminal is cut, and so is a picture that is
// higher, because a cursor cannot go back to a line that has left the screen.
func (s *screen) redraw(picture string) {
	columns, rows := s.narrator.size()
	if picture == s.last && columns == s.columns {
		return
	}
	lines := fit(strings.Split(picture, "\n"), columns-len(margin), rows-1)
	var drawing strings.Builder
	drawing.WriteString(beginUpdate)
	if s.rows > 0 && columns == s.columns {
		fmt.Fprintf(&drawing, "\x1b[%dA\r", min(s.rows, rows-1))
	}
	for _, line := range lines {
		fmt.Fprintf(&drawing, "%s\x1b[K\n", strings.TrimRight(margin+line, " "))
	}
	drawing.WriteString("\x1b[J" + endUpdate)
	s.narrator.printf("%s", drawing.String())
	s.rows, s.columns = len(lines), columns
}

// fit cuts lines to the columns of a terminal, and leaves out the last ones where its rows are too few.
func fit(lines []string, columns, rows int) []string {
	if len(lines) > rows {
		more := len(lines) - max(1, rows) + 1
		lines = append(lines[:max(0, rows-1):max(0, rows-1)], fmt.Sprintf("… and %d more lines; enlarge the window to see them", more))
	}
	cut := make([]string, 0, len(lines))
	for _, line := range lines {
		if text.StringWidthWithoutEscSequences(line) > columns {
			line = text.Trim(line, max(0, columns))
		}
		cut = append(cut, line)
	}
	return cut
}
