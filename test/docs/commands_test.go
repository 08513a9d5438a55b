// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCommands runs every command of the documents that needs this machine only, in the order in which it is there, and compares
// what a document shows of its output.
func TestCommands(t *testing.T) {
	w := newWorld(t)
	for _, c := range allCommands(t) {
		if r, _ := ruleOf(&c); r.need == alone || r.need == recorded && os.Getenv("DOCS_HOSTS") != "" || r.need == builds && *all {
			w.runAndCompare(t, &c)
		}
	}
}

func (w *world) runAndCompare(t *testing.T, c *command) {
	t.Helper()
	out := w.run(t, c)
	r, _ := ruleOf(c)
	if !strings.Contains(out, r.prints) {
		t.Errorf("%s:%d: %s does not print %q:\n%s", c.file, c.line, c.text, r.prints, out)
	}
	if c.shown == nil || r.illustrates != "" {
		return
	}
	want := strings.TrimRight(strings.Join(c.shown, "\n"), "\n")
	got := trimLines(out)
	if shows(want, got) {
		return
	}
	if *update && !strings.Contains(want, "…") {
		replace(t, c, want, got)
		return
	}
	t.Errorf("%s:%d: %s prints something else (-want +got):\n%s", c.file, c.line, c.text, cmp.Diff(want, got))
}

// trimLines takes away blanks at the ends of lines, and empty lines at the end.
func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// shows reports whether an output is as a document shows it. A line "…" stands for any lines.
func shows(want, got string) bool {
	var pattern strings.Builder
	pattern.WriteString(`(?s)\A`)
	for i, part := range strings.Split("\n"+want+"\n", "\n…\n") {
		if i > 0 {
			pattern.WriteString(`\n(.*\n)?`)
		}
		pattern.WriteString(regexp.QuoteMeta(part))
	}
	return regexp.MustCompile(pattern.String() + `\z`).MatchString("\n" + got + "\n")
}

// replace puts an output into its document.
func replace(t *testing.T, c *command, want, got string) {
	t.Helper()
	text := read(t, c.file)
	old, renewed := "$ "+c.text+"\n"+want, "$ "+c.text+"\n"+got
	if !strings.Contains(text, old) {
		t.Fatalf("%s:%d: the output cannot be replaced", c.file, c.line)
	}
	if err := os.WriteFile(filepath.Join(repository, c.file), []byte(strings.Replace(text, old, renewed, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestShows(t *testing.T) {
	for _, test := range []struct {
		want, got string
		is        bool
	}{
		{"a\nb", "a\nb", true}, {"a\n…\nc", "a\nb\nx\nc", true}, {"a\n…\nc", "a\nc", true}, {"…\nc", "a\nc", true}, {"a\n…", "a\nb", true},
		{"a", "a\nb", false}, {"a\n…\nc", "a\nb", false}, {"a.", "ab", false},
	} {
		if is := shows(test.want, test.got); is != test.is {
			t.Errorf("%q as %q: %v", test.got, test.want, is)
		}
	}
}
