// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package progress

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestTerminal: each progress takes the place of the one before, lines that stay are above it, and none is broken by the terminal.
func TestTerminal(t *testing.T) {
	var out strings.Builder
	w := &Writer{out: &out, columns: 8, now: time.Now}
	w.Show("one", "two")
	w.Show("longer than eight")
	w.Say("stays %d", 1)
	w.Show("µµµµµµµ")
	w.End()
	w.End()
	want := "\r\x1b[Jone\ntwo\n" + "\x1b[2A\r\x1b[Jlonger…\n" + "\x1b[1A\r\x1b[J" + "stays 1\n" + "\r\x1b[Jµµµµµµµ\n" + "\x1b[1A\r\x1b[J"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// TestLog: what is no terminal gets lines, no sequence, and fewer the longer it takes.
func TestLog(t *testing.T) {
	var out strings.Builder
	at := time.Unix(0, 0)
	w := &Writer{out: &out, now: func() time.Time { return at }, begun: at}
	const day = 24 * 60 * 60
	for second := range day {
		at = time.Unix(int64(second), 0)
		w.Show(at.UTC().Format(time.TimeOnly))
	}
	w.End()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) < 100 || len(lines) > 500 {
		t.Errorf("a day has %d lines", len(lines))
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("a log has sequences of a terminal")
	}
	if diff := cmp.Diff([]string{"00:00:00", "00:00:02", "00:00:04"}, lines[:3]); diff != "" {
		t.Error(diff)
	}
	at = at.Add(time.Hour)
	w.Show("the same")
	at = at.Add(time.Hour)
	w.Show("the same")
	if strings.Count(out.String(), "the same") != 1 {
		t.Error("what has not changed is said again")
	}
}

func TestNilShowsNothing(*testing.T) {
	var w *Writer
	w.Show("x")
	w.Say("x")
	w.End()
}
