// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/fatih/color"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

const (
	// margin stands before every line of the story.
	margin = "   "
	// widest is the longest line that is still read with ease, and what is printed where there is no terminal.
	widest = 120
	// narrowest is what a table needs at least; a terminal that is narrower still cuts its lines.
	narrowest = 40
)

// narrator prints the story, never wider than the terminal.
type narrator struct {
	out io.Writer
	// size returns the columns and rows of the terminal; nil where the output is none.
	size    func() (columns, rows int)
	started time.Time
	act     int
}

func newNarrator(out *os.File) *narrator {
	n := &narrator{out: out, started: time.Now()}
	if term.IsTerminal(int(out.Fd())) {
		n.size = func() (columns, rows int) {
			columns, rows, err := term.GetSize(int(out.Fd()))
			if err != nil || columns == 0 || rows == 0 {
				return 80, 24
			}
			return columns, rows
		}
	}
	return n
}

// columns is how wide a line of the story may be, without its margin.
func (n *narrator) columns() int {
	columns := widest
	if n.size != nil {
		terminal, _ := n.size()
		columns = min(columns, terminal)
	}
	return max(narrowest, columns-len(margin))
}

// printf writes to the terminal. When that is gone, nobody reads the story, and there is nobody to tell.
func (n *narrator) printf(format string, arguments ...any) {
	_, _ = fmt.Fprintf(n.out, format, arguments...)
}

// heading begins an act of the story.
func (n *narrator) heading(title, story string) {
	n.act++
	begin := fmt.Sprintf("── %d. %s ", n.act, title)
	rule := strings.Repeat("─", max(0, n.columns()-text.StringWidthWithoutEscSequences(begin)))
	n.printf("\n%s\n", color.New(color.Bold, color.FgCyan).Sprint(begin+rule))
	n.paragraph(strings.Join(strings.Fields(story), " "))
	n.printf("\n")
}

// paragraph prints a text. Lines that are too long are broken between words, the others stay as they are.
func (n *narrator) paragraph(words string) {
	for line := range strings.SplitSeq(words, "\n") {
		if text.StringWidthWithoutEscSequences(line) > n.columns() {
			line = text.WrapSoft(line, n.columns())
		}
		n.block(line)
	}
}

// say prints one line of the story, broken between words where it is too long.
func (n *narrator) say(format string, arguments ...any) {
	n.paragraph(fmt.Sprintf(format, arguments...))
}

// done prints what was reached and when.
func (n *narrator) done(format string, arguments ...any) {
	n.say("%s %s %s", color.GreenString("✓"), fmt.Sprintf(format, arguments...),
		color.HiBlackString("(%.0f s)", time.Since(n.started).Seconds()))
}

// block prints indented text as it is.
func (n *narrator) block(lines string) {
	for line := range strings.SplitSeq(lines, "\n") {
		n.printf("%s\n", strings.TrimRight(margin+line, " "))
	}
}

// epilogue says what to try next.
func (n *narrator) epilogue(s *stage) {
	n.printf("\n%s\n", color.New(color.Bold).Sprint("What to try next"))
	for _, line := range []string{
		"# with kubectl, which the demo itself does not need",
		"export KUBECONFIG=" + s.kubeconfig,
		"kubectl get lowlatency",
		"kubectl describe llnp trading",
		"kubectl explain llnp.spec.cpus",
		"kubectl describe bnp x2",
		"# without kubectl: its NICs, their versions, and what fits next",
		"go run ./cmd/kubectl-lowlatency pool x2",
		"# one more reboot per node",
		`kubectl patch llnp trading --type merge \`,
		`  -p '{"spec":{"cpus":{"tick":"Periodic"}}}'`,
		"# this machine, without any cluster",
		"go run ./cmd/kubectl-lowlatency topology --root /",
	} {
		n.block(line)
	}
	n.printf("\n")
}
