// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build capture

package demo

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"github.com/hinshun/vt10x"

	"github.com/lowlatency-dev/lowlatency-operator/hack/pictures/terminal"
)

//nolint:gochecknoglobals // That is how flags of tests are made.
var (
	output   = flag.String("output", "", "the folder for the captured screens")
	platform = flag.String("platform", "openshift", "whose story is captured: openshift or kubernetes")
)

const (
	// patience is how long one run may take: far more than it needs on a busy machine.
	patience = 15 * time.Minute
	// mostLines is what the whole story may leave in the scrollback.
	mostLines = 280
	// picture is what was recorded for docs/images/demo.svg, in a terminal of pictureColumns.
	picture        = "../../hack/pictures/recorded/demo.txt"
	pictureColumns = 80
	interrupt      = "\x03"
	// What stands between these two is one update of the screen (DEC private mode 2026).
	beginUpdate, endUpdate = "\x1b[?2026h", "\x1b[?2026l"
)

// story is what is told about the nodes of a platform.
type story struct {
	// nodes are those of the tables, in their order, and tables how many of them the acts show at least.
	nodes  []string
	tables int
	// last is what is said at the end, after which a story that goesOn waits for Ctrl-C.
	last   string
	goesOn bool
	// hasPicture tells that the documents show it.
	hasPicture bool
}

// told is the story of the platform.
func told(t *testing.T) story {
	t.Helper()
	stories := map[string]story{
		"openshift": {
			nodes:  []string{"arm-1", "arm-2", "epyc-1", "epyc-2", "epyc-3", "xeon-1", "xeon-2", "xeon-3"},
			tables: 1, last: "Press Ctrl-C", goesOn: true, hasPicture: true,
		},
		"kubernetes": {nodes: []string{"arm-1", "epyc-1", "xeon-1"}, tables: 4, last: "nothing of the operator is left on any host."},
	}
	s, found := stories[*platform]
	if !found {
		t.Fatalf("there is no story of the platform %q", *platform)
	}
	return s
}

// TestCapture runs the demo to its end, and ends one that goes on with Ctrl-C.
func TestCapture(t *testing.T) {
	for _, size := range []pty.Winsize{{Cols: 80, Rows: 24}, {Cols: 120, Rows: 40}} {
		t.Run(fmt.Sprintf("%dx%d", size.Cols, size.Rows), func(t *testing.T) {
			run := start(t, &size)
			run.until(t, run.story.last)
			if run.story.goesOn {
				run.interrupt(t)
			} else {
				run.end(t)
			}
			run.judge(t)
		})
	}
}

// TestInterruptedStory ends the demo in the middle of the story.
func TestInterruptedStory(t *testing.T) {
	run := start(t, &pty.Winsize{Cols: 80, Rows: 24})
	run.until(t, "REBOOTS")
	run.interrupt(t)
}

// TestInterruptedCompilation ends it before the demo itself has begun.
func TestInterruptedCompilation(t *testing.T) {
	t.Setenv("GOCACHE", t.TempDir())
	run := start(t, &pty.Winsize{Cols: 80, Rows: 24})
	run.until(t, "compiling ")
	run.press(t, interrupt)
	run.end(t)
	if written := run.written.String(); !strings.HasSuffix(written, "\r\nStopped; the demo had not begun.\r\n") || strings.Contains(written, "make:") {
		t.Errorf("after Ctrl-C:\n%s", run.screen.String())
	}
}

// recording is a run of the demo in a terminal.
type recording struct {
	story   story
	command *exec.Cmd
	screen  vt10x.Terminal
	file    *os.File
	temp    string
	written bytes.Buffer
	screens strings.Builder
	seen    string
}

func start(t *testing.T, size *pty.Winsize) *recording {
	t.Helper()
	temp, err := os.MkdirTemp(os.Getenv("LOWLATENCY_DEMO_TMP"), "d") //nolint:usetesting // Names of sockets in it may not be long.
	if err != nil {
		t.Fatal(err)
	}
	r := &recording{
		story: told(t), command: exec.Command("make", "-C", "../..", "--no-print-directory", "demo", "PLATFORM="+*platform), temp: temp,
		screen: vt10x.New(vt10x.WithSize(int(size.Cols), int(size.Rows))),
	}
	r.command.Env = append(os.Environ(), "TERM=xterm-256color", "LOWLATENCY_DEMO_TMP="+r.temp)
	if r.file, err = pty.StartWithSize(r.command, size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.file.Close()
		_ = r.command.Process.Kill()
		_ = os.RemoveAll(temp)
		if *output != "" {
			test := strings.ToLower(strings.TrimPrefix(strings.Split(t.Name(), "/")[0], "Test"))
			name := fmt.Sprintf("demo-%s-%s-%dx%d.txt", *platform, test, size.Cols, size.Rows)
			if err := os.WriteFile(filepath.Join(*output, name), []byte(r.screens.String()), 0o600); err != nil {
				t.Error(err)
			}
		}
	})
	return r
}

// until reads until the text has been written, and looks at every screen on the way.
func (r *recording) until(t *testing.T, text string) {
	t.Helper()
	for limit := time.Now().Add(patience); !bytes.Contains(r.written.Bytes(), []byte(text)); {
		if time.Now().After(limit) || !r.read(t) {
			t.Fatalf("the demo did not say %q; the screen:\n%s", text, r.screen.String())
		}
	}
}

// read takes what the demo writes next; false at the end.
func (r *recording) read(t *testing.T) bool {
	t.Helper()
	buffer := make([]byte, 64<<10)
	n, err := r.file.Read(buffer)
	r.written.Write(buffer[:n])
	if _, err := r.screen.Write(buffer[:n]); err != nil {
		t.Fatal(err)
	}
	r.look()
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	return err == nil
}

// look keeps a screen that differs from the one before. Of an update, a terminal shows nothing before its end.
func (r *recording) look() {
	shown, written := r.screen.String(), r.written.Bytes()
	if shown == r.seen || bytes.LastIndex(written, []byte(beginUpdate)) > bytes.LastIndex(written, []byte(endUpdate)) {
		return
	}
	r.seen = shown
	fmt.Fprintf(&r.screens, "%s\n%s\n", shown, strings.Repeat("=", 80))
}

// interrupt presses Ctrl-C, and sees that the demo ends and says so.
func (r *recording) interrupt(t *testing.T) {
	t.Helper()
	r.press(t, interrupt)
	r.end(t)
	if !strings.Contains(r.written.String(), "everything of the demo is removed") {
		t.Errorf("after Ctrl-C:\n%s", r.screen.String())
	}
}

// press types a key.
func (r *recording) press(t *testing.T, key string) {
	t.Helper()
	if _, err := r.file.WriteString(key); err != nil {
		t.Fatal(err)
	}
}

// end sees that make ends with 0, that no error is told, and that nothing is left.
func (r *recording) end(t *testing.T) {
	t.Helper()
	for r.read(t) {
	}
	if err := r.command.Wait(); err != nil {
		t.Errorf("make demo: %v; the screen:\n%s", err, r.screen.String())
	}
	if strings.Contains(r.written.String(), "error") {
		t.Errorf("an error at the end:\n%s", r.screen.String())
	}
	left, err := os.ReadDir(r.temp)
	if err != nil || len(left) > 0 {
		t.Errorf("the demo left %v, %v", left, err)
	}
}

// judge reads the whole story as it was written.
func (r *recording) judge(t *testing.T) {
	t.Helper()
	columns, _ := r.screen.Size()
	text := strings.ReplaceAll(r.written.String(), "\r", "")
	lines := r.judgeSize(t, text, columns)
	begin, _, _ := strings.Cut(text, "── 1. ")
	for _, command := range []string{"go build", "go run", "TMPDIR", "hack/"} {
		if strings.Contains(begin, command) {
			t.Errorf("the recipe is shown: %q", begin)
		}
	}
	if strings.Contains(text, "not reported") {
		t.Error("something is told to be not reported that the agents report")
	}
	if columns == pictureColumns && r.story.hasPicture {
		r.comparePicture(t)
	}
	tables := 0
	for shown := range strings.SplitSeq(r.screens.String(), strings.Repeat("=", 80)) {
		tables += wholeTables(t, shown, r.story.nodes)
	}
	if tables < r.story.tables {
		t.Errorf("%d tables of nodes are shown, and there are %d acts with one", tables, r.story.tables)
	}
	t.Logf("%d lines of story, %d whole tables on %d screens", lines, tables, strings.Count(r.screens.String(), strings.Repeat("=", 80)))
}

// judgeSize returns how many lines of the scrollback a text takes, which may be neither too many nor wider than the screen.
func (r *recording) judgeSize(t *testing.T, text string, columns int) int {
	t.Helper()
	lines := strings.Count(text, "\n")
	for _, back := range regexp.MustCompile(`\x1b\[(\d+)A`).FindAllStringSubmatch(text, -1) {
		rows, err := strconv.Atoi(back[1])
		if err != nil {
			t.Fatal(err)
		}
		lines -= rows
	}
	if lines > mostLines {
		t.Errorf("the story takes %d lines of the scrollback", lines)
	}
	for line := range strings.SplitSeq(regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`).ReplaceAllString(text, ""), "\n") {
		if width := len([]rune(line)); width > columns {
			t.Errorf("a line has %d columns: %q", width, line)
		}
	}
	return lines
}

// comparePicture fails when the picture of the documents shows something else than the demo does now, but for how long it took.
func (r *recording) comparePicture(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	told, err := terminal.Lines(bytes.NewReader(r.written.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	got := terminal.Cut(told, want[0], len(want))
	taken := regexp.MustCompile(`\(\d+ s\)`)
	if diff := cmp.Diff(taken.ReplaceAllString(strings.Join(want, "\n"), ""), taken.ReplaceAllString(strings.Join(got, "\n"), "")); diff != "" {
		t.Errorf("docs/images/demo.svg shows another demo than there is: make demo-picture (-shown +now):\n%s", diff)
	}
}

// wholeTables counts the tables of nodes on a screen. Below each head stand all nodes, or the screen ends.
func wholeTables(t *testing.T, shown string, nodes []string) int {
	t.Helper()
	lines := strings.Split(strings.TrimLeft(shown, "\n"), "\n")
	count := 0
	for i, line := range lines {
		if !strings.HasPrefix(line, "   NODE ") {
			continue
		}
		count++
		for k, node := range nodes {
			if i+1+k < len(lines) && strings.TrimSpace(lines[i+1+k]) != "" && !strings.HasPrefix(lines[i+1+k], "   "+node+" ") {
				t.Fatalf("a torn table:\n%s", shown)
			}
		}
	}
	return count
}
