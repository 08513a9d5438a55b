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
	"golang.org/x/term"
)

// narrator prints the story. On a terminal, progress is redrawn in place; elsewhere each change is a
// line of its own.
type narrator struct {
	out      io.Writer
	terminal bool
	started  time.Time
	act      int
}

func newNarrator(out *os.File) *narrator {
	return &narrator{out: out, terminal: term.IsTerminal(int(out.Fd())), started: time.Now()}
}

// printf writes to the terminal. When that is gone, nobody reads the story, and there is nobody to tell.
func (n *narrator) printf(format string, arguments ...any) {
	_, _ = fmt.Fprintf(n.out, format, arguments...)
}

// heading begins an act of the story.
func (n *narrator) heading(title, text string) {
	n.act++
	n.printf("\n%s\n", color.New(color.Bold, color.FgCyan).Sprintf("── %d. %s %s", n.act, title, strings.Repeat("─", max(0, 90-len(title)))))
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		n.printf("   %s\n", strings.TrimSpace(line))
	}
	n.printf("\n")
}

// say prints one line of the story.
func (n *narrator) say(format string, arguments ...any) {
	n.printf("   "+format+"\n", arguments...)
}

// done prints what was reached and when.
func (n *narrator) done(format string, arguments ...any) {
	text := fmt.Sprintf(format, arguments...)
	n.printf("   %s %s %s\n", color.GreenString("✓"), text, color.HiBlackString("(%.1f s)", time.Since(n.started).Seconds()))
}

// block prints indented text as it is.
func (n *narrator) block(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		n.printf("   %s\n", line)
	}
}

// screen shows a changing text: redrawn in place on a terminal, printed anew elsewhere.
type screen struct {
	narrator *narrator
	shown    string
}

func (n *narrator) screen() *screen { return &screen{narrator: n} }

// show replaces what the screen shows. The same text again prints nothing.
func (s *screen) show(text string) {
	if text == s.shown {
		return
	}
	if s.narrator.terminal && s.shown != "" {
		s.narrator.printf("\033[%dA\033[J", strings.Count(s.shown, "\n")+1)
	} else if s.shown != "" {
		s.narrator.printf("\n")
	}
	s.shown = text
	s.narrator.block(text)
}

// epilogue says what to try next.
func (n *narrator) epilogue(s *stage) {
	n.printf("\n%s\n", color.New(color.Bold).Sprint("What to try next"))
	for _, line := range []string{
		"export KUBECONFIG=" + s.kubeconfig,
		"kubectl get lowlatency",
		"kubectl describe llnp trading",
		"kubectl explain llnp.spec.cpus",
		"kubectl describe bnp x2",
		"go run ./cmd/kubectl-lowlatency pool x2                    # its NICs, their versions, and what fits next",
		"kubectl patch llnp trading --type merge -p '{\"spec\":{\"cpus\":{\"tick\":\"Periodic\"}}}'   # one more reboot per node",
		"go run ./cmd/kubectl-lowlatency topology --root /          # this machine, without any cluster",
	} {
		n.say("%s", line)
	}
	n.printf("\n")
}
