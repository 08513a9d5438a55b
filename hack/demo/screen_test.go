// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fatih/color"
	"github.com/google/go-cmp/cmp"
	"github.com/hinshun/vt10x"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// terminal is a recorded terminal with what the narrator writes into.
type terminal struct {
	vt10x.Terminal
	columns, rows int
	written       bytes.Buffer
}

// Write implements io.Writer. Like the driver of a terminal, it lets a new line begin in the first column.
func (r *terminal) Write(text []byte) (int, error) {
	r.written.Write(text)
	if _, err := r.Terminal.Write(bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// lines are those of the screen, without blanks at their ends.
func (r *terminal) lines() []string {
	lines := strings.Split(r.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

func newTerminal(columns, rows int) (*terminal, *narrator) {
	r := &terminal{Terminal: vt10x.New(vt10x.WithSize(columns, rows)), columns: columns, rows: rows}
	return r, &narrator{out: r, size: func() (int, int) { return r.columns, r.rows }, started: time.Now()}
}

// fleetAt is a fleet of which so many nodes are proven.
func fleetAt(proven int) view {
	v := view{third: "pool"}
	v.profile.Name = "trading"
	v.profile.Status.Nodes = &v1alpha1.NodeCounts{Matched: 8, Planned: 8, Applied: int32(proven)}
	for i := range 8 {
		row := nodeRow{name: fmt.Sprintf("xeon-%d", i+1), machine: "2 x EPYC, 8 NUMA nodes", third: "trading-ec742baf", platform: "rebooting"}
		if i < proven {
			row.platform = "up"
			row.node = &v1alpha1.LowLatencyNode{}
			row.node.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionTrue}}
		}
		v.rows = append(v.rows, row)
	}
	return v
}

// TestRedraw plays a rollout on terminals of usual sizes: a picture takes the place of the one before, its lines are whole, and
// what stood above it stays.
func TestRedraw(t *testing.T) {
	for _, size := range []struct{ columns, rows int }{{80, 24}, {120, 40}, {200, 50}} {
		t.Run(fmt.Sprintf("%dx%d", size.columns, size.rows), func(t *testing.T) {
			coloured(t)
			shown, n := newTerminal(size.columns, size.rows)
			n.heading("The rollout", strings.Repeat("words that are wrapped ", 12))
			screen := n.screen()
			for proven := range 9 {
				v := fleetAt(proven)
				screen.show(v.summary(), profileTable(v, n.columns()))
			}
			screen.finish()
			n.done("every node is de-jittered")

			color.NoColor = true
			var want []string
			for line := range strings.SplitSeq(profileTable(fleetAt(8), n.columns()), "\n") {
				want = append(want, strings.TrimRight(margin+line, " "))
			}
			if len(want) != 12 {
				t.Errorf("the table has %d lines", len(want))
			}
			lines := shown.lines()
			first := 0
			for first < len(lines) && lines[first] != want[0] {
				first++
			}
			if diff := cmp.Diff(want, lines[first:min(len(lines), first+len(want))]); diff != "" {
				t.Errorf("the picture (-want +got):\n%s", diff)
			}
			screenText := strings.Join(lines, "\n")
			if got := strings.Count(screenText, "PROFILE"); got != 1 {
				t.Errorf("%d tables are on the screen:\n%s", got, screenText)
			}
			if !strings.Contains(screenText, "1. The rollout") || !strings.Contains(screenText, "✓ every node is de-jittered") {
				t.Errorf("what stands above and below the picture is gone:\n%s", screenText)
			}
		})
	}
}

// coloured draws with colours, as on a real terminal.
func coloured(t *testing.T) {
	t.Helper()
	before := color.NoColor
	color.NoColor = false
	t.Cleanup(func() { color.NoColor = before })
}

// TestNothingIsWiderThanTheTerminal reads everything that is written as a terminal does: no line needs a second row.
func TestNothingIsWiderThanTheTerminal(t *testing.T) {
	for _, columns := range []int{43, 80, 120} {
		var out bytes.Buffer
		n := &narrator{out: &out, size: func() (int, int) { return columns, 24 }, started: time.Now()}
		n.heading("Half an upgrade", strings.Repeat("Somebody loads other modules ", 20))
		screen := n.screen()
		screen.show("", profileTable(fleetAt(3), n.columns()))
		screen.finish()
		n.say("modprobe onload    # on %s", "xeon-2")
		n.done("%s", strings.Repeat("every NIC can be asked for ", 8))
		for line := range strings.SplitSeq(out.String(), "\n") {
			line = strings.NewReplacer("\x1b[K", "", "\x1b[J", "", beginUpdate, "", endUpdate, "").Replace(line)
			if got := len([]rune(line)); got > columns {
				t.Errorf("%d columns, but a line has %d: %q", columns, got, line)
			}
		}
		if !strings.Contains(out.String(), "modprobe onload    # on xeon-2") {
			t.Error("a line that fits is not as it was")
		}
	}
}

// TestPictureHigherThanTheTerminal is cut, because a cursor cannot go back to what has left the screen.
func TestPictureHigherThanTheTerminal(t *testing.T) {
	shown, n := newTerminal(80, 10)
	screen := n.screen()
	for i := range 5 {
		screen.show("", strings.Repeat(fmt.Sprintf("line of picture %d\n", i), 20))
	}
	got := strings.Join(shown.lines(), "\n")
	if strings.Count(got, "picture 4") != 8 || strings.Contains(got, "picture 3") || !strings.Contains(got, "… and 13 more lines") {
		t.Errorf("the screen:\n%s", got)
	}
}

// TestResizedTerminal draws anew: where the lines of the old picture are now, nobody knows.
func TestResizedTerminal(t *testing.T) {
	shown, n := newTerminal(80, 24)
	n.say("above")
	screen := n.screen()
	screen.show("", "before")
	shown.columns = 60
	screen.show("", "after")
	screen.show("", "at last")
	if diff := cmp.Diff([]string{"   above", "   before", "   at last", ""}, shown.lines()[:4]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWithoutTerminal prints a line for each change and the picture once.
func TestWithoutTerminal(t *testing.T) {
	var out bytes.Buffer
	n := &narrator{out: &out, started: time.Now()}
	screen := n.screen()
	screen.show("1 of 2", "picture 1")
	screen.show("1 of 2", "picture 1 again")
	screen.show("2 of 2", "picture 2")
	screen.finish()
	if diff := cmp.Diff("   1 of 2\n   2 of 2\n\n   picture 2\n\n", out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
