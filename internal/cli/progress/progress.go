// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package progress shows how far something is: drawn anew in place on a terminal, and elsewhere, as in the log of a pod, in lines that become rarer
// the longer it takes.
package progress

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

const (
	// leastApart is how far lines are apart that are no terminal's, at least, and share the part of the time since the begin that they are apart, so that
	// a log has a few hundred of them whatever is measured.
	leastApart, share = 2 * time.Second, 50
	// Sequences of a terminal: to the first of the lines that were drawn, and the erasure of all below.
	up, erase = "\x1b[%dA", "\r\x1b[J"
)

// Writer shows progress. Nil shows nothing.
type Writer struct {
	out io.Writer
	// columns of the terminal; 0 where there is none.
	columns int
	now     func() time.Time
	begun   time.Time
	// next is when a line is due, and drawn how many lines of the terminal show the progress now.
	next  time.Time
	drawn int
	last  []string
}

// New shows progress on a file that may be a terminal, or on what else can be written to.
func New(out io.Writer) *Writer {
	w := &Writer{out: out, now: time.Now, begun: time.Now()}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb" {
		if columns, _, err := term.GetSize(int(file.Fd())); err == nil {
			w.columns = columns
		}
	}
	return w
}

// Show shows lines instead of those that were shown before. They hold nothing that a terminal would obey.
func (w *Writer) Show(lines ...string) {
	if w == nil {
		return
	}
	if w.columns > 0 {
		w.draw(lines)
		return
	}
	if now := w.now(); !now.Before(w.next) && !slices.Equal(lines, w.last) {
		w.last = lines
		w.next = now.Add(max(leastApart, now.Sub(w.begun)/share))
		for _, line := range lines {
			_, _ = fmt.Fprintln(w.out, line)
		}
	}
}

// Say writes a line that stays, and shows the progress below it again when there is more of it.
func (w *Writer) Say(format string, values ...any) {
	if w == nil {
		return
	}
	w.End()
	_, _ = fmt.Fprintf(w.out, format+"\n", values...)
}

// End takes back what a terminal shows of the progress.
func (w *Writer) End() {
	if w != nil && w.drawn > 0 {
		w.draw(nil)
	}
}

func (w *Writer) draw(lines []string) {
	var b strings.Builder
	if w.drawn > 0 {
		fmt.Fprintf(&b, up, w.drawn)
	}
	if w.drawn > 0 || len(lines) > 0 {
		b.WriteString(erase)
	}
	for _, line := range lines {
		b.WriteString(cut(line, w.columns-1) + "\n")
	}
	w.drawn = len(lines)
	_, _ = io.WriteString(w.out, b.String())
}

// cut shortens a line to columns: one that a terminal breaks could not be taken back.
func cut(line string, columns int) string {
	if utf8.RuneCountInString(line) <= columns {
		return line
	}
	return string([]rune(line)[:max(0, columns-1)]) + "…"
}
