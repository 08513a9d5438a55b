// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
)

// watched is a world whose systemd starts the guard's unit when it is asked to.
type watched struct {
	*world
	next guard.Next
}

func (w *watched) Tool(ctx context.Context, program string, arguments ...string) error {
	err := w.world.Tool(ctx, program, arguments...)
	if err == nil && slices.Equal(arguments, []string{"--no-block", "start", "lowlatency-guard-inbox.service"}) {
		w.next, err = w.guard().Take(ctx)
	}
	return err
}

// deliver brings an instruction as a pod does.
func (w *watched) deliver(t *testing.T, program string, data []byte) (*instruction.Report, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	g := guard.New(w, w, func(string) {})
	return guard.DeliverTo(ctx, g, guard.Delivery{Program: []byte(program), Trust: trusted(), Instruction: data}, func(string) {})
}

func (w *watched) program() string { return string(w.seen[guard.Program].Content) }

func newWatched(t *testing.T) *watched {
	t.Helper()
	w := &watched{world: newWorld(t)}
	for _, folder := range []string{"/usr", "/usr/local", "/usr/local/bin"} {
		w.seen[folder], w.kept[folder] = hostfile.NewFolder(), hostfile.NewFolder()
	}
	return w
}

func TestDeliver(t *testing.T) {
	w := newWatched(t)
	before := w.manifest()
	report, err := w.deliver(t, "one", signed(t, enact(1, trading())))
	if err != nil || report.Phase != instruction.Armed || report.Number != 1 || w.next != guard.Reboot {
		t.Fatalf("Deliver() = %+v, %v, and %v is next", report, err, w.next)
	}
	if w.program() != "one" || !slices.Contains(w.tools, "systemctl start lowlatency-guard-inbox.path") {
		t.Errorf("the program is %q, and these were run: %q", w.program(), w.tools)
	}

	// While the host is being changed, its guard is not replaced.
	if _, err := w.deliver(t, "two", signed(t, enact(2, otherTrading()))); err != nil || w.program() != "one" {
		t.Errorf("the program is %q: %v", w.program(), err)
	}
	w.settle(guard.Reboot, false)
	w.settle(w.take(), false)
	report, err = w.deliver(t, "two", signed(t, enact(2, otherTrading())))
	if err != nil || w.program() != "two" || report.Phase != instruction.InForce || report.Number != 2 {
		t.Errorf("Deliver() = %+v, %v; the program is %q", report, err, w.program())
	}

	report, err = w.deliver(t, "two", signed(t, enact(1, trading())))
	if err != nil || report.Refused == nil || report.Refused.Reason != instruction.ReasonReplayed || report.Phase != instruction.InForce {
		t.Errorf("Deliver() of an old instruction = %+v, %v", report, err)
	}

	if _, err = w.deliver(t, "two", signed(t, remove(3))); err != nil {
		t.Fatal(err)
	}
	w.settle(w.next, false)
	g := w.guard()
	if err := g.Forget(); err != nil {
		t.Fatal(err)
	}
	if err := g.Uninstall(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, w.manifest()); diff != "" {
		t.Errorf("the host before and after (-before +after):\n%s", diff)
	}
	// A pod that starts once more for the same removal finds nothing to do, and brings no guard back.
	report, err = w.deliver(t, "two", signed(t, remove(3)))
	if err != nil || report.Phase != instruction.Removed {
		t.Errorf("Deliver() = %+v, %v", report, err)
	}
	if diff := cmp.Diff(before, w.manifest()); diff != "" {
		t.Errorf("the host before and after (-before +after):\n%s", diff)
	}
}

// TestDeliverToAHostThatDoesNotAnswer: systemd starts nothing.
func TestDeliverToAHostThatDoesNotAnswer(t *testing.T) {
	w := newWatched(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	d := guard.Delivery{Program: []byte("one"), Trust: trusted(), Instruction: signed(t, enact(1, trading()))}
	if _, err := guard.DeliverTo(ctx, w.guard(), d, func(string) {}); err == nil || !strings.Contains(err.Error(), "lowlatency-guard-inbox.service") {
		t.Errorf("Deliver() = %v", err)
	}
}

// TestDeliverToAHostOfAnotherOperator changes nothing.
func TestDeliverToAHostOfAnotherOperator(t *testing.T) {
	w := newWatched(t)
	other := trusted()
	other.Key = []byte(strings.Repeat("k", 32))
	if err := w.guard().Pin(other); err != nil {
		t.Fatal(err)
	}
	before := w.manifest()
	if _, err := w.deliver(t, "one", signed(t, enact(1, trading()))); err == nil || !strings.Contains(err.Error(), "lowlatency-guard revert") {
		t.Errorf("Deliver() = %v", err)
	}
	if diff := cmp.Diff(before, w.manifest()); diff != "" {
		t.Errorf("the host before and after (-before +after):\n%s", diff)
	}
}
