// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard_test

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
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

// unlocked: nobody else changes the host.
func unlocked() (func(), error) { return func() {}, nil }

// deliver brings an instruction as a pod does.
func (w *watched) deliver(t *testing.T, program string, data []byte) (*instruction.Report, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	g := guard.New(w, w, func(string) {})
	return guard.DeliverTo(ctx, g, unlocked, guard.Delivery{Program: []byte(program), Trust: trusted(), Instruction: data}, func(string) {})
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

// delivers fails unless a delivery is answered with a phase, and leaves a program on the host.
func (w *watched) delivers(t *testing.T, program string, i instruction.Instruction, phase instruction.Phase, left string) *instruction.Report {
	t.Helper()
	report, err := w.deliver(t, program, signed(t, i))
	if err != nil || report.Phase != phase || w.program() != left {
		t.Fatalf("Deliver() = %+v, %v, want the phase %s; the program is %q, want %q", report, err, phase, w.program(), left)
	}
	return report
}

func TestDeliver(t *testing.T) {
	w := newWatched(t)
	w.delivers(t, "one", enact(1, trading()), instruction.Armed, "one")
	if w.next != guard.Reboot || !slices.Contains(w.tools, "systemctl start lowlatency-guard-inbox.path lowlatency-guard-inbox.timer") {
		t.Errorf("%v is next, and these were run: %q", w.next, w.tools)
	}
	// While the host is being changed, its guard is not replaced.
	w.delivers(t, "two", enact(2, otherTrading()), instruction.Received, "one")
	w.settle(guard.Reboot, false)
	w.settle(w.take(), false)
	w.delivers(t, "two", enact(2, otherTrading()), instruction.InForce, "two")
	report := w.delivers(t, "two", enact(1, trading()), instruction.InForce, "two")
	if report.Number != 2 || report.Refused == nil || report.Refused.Reason != instruction.ReasonReplayed {
		t.Errorf("Deliver() of an old instruction = %+v", report)
	}
}

// TestAnotherProgramReloadsNothing: on a node whose pods were not evicted, systemd must not read all its units again. It does so for units
// of the guard that have changed.
func TestAnotherProgramReloadsNothing(t *testing.T) {
	w := newWatched(t)
	const unit = "/etc/systemd/system/lowlatency-guard-trial.service"
	reloads := func(program string) int {
		t.Helper()
		w.tools = nil
		if err := w.guard().Install(t.Context(), []byte(program)); err != nil || w.program() != program {
			t.Fatalf("Install() = %v; the program is %q", err, w.program())
		}
		return strings.Count(strings.Join(w.tools, "\n")+"\n", "systemctl daemon-reload\n")
	}
	if first, same, program := reloads("one"), reloads("one"), reloads("two"); first != 1 || same != 0 || program != 0 {
		t.Errorf("reloaded %d times when the guard came, %d for the same one, %d for another program", first, same, program)
	}
	w.seen[unit] = hostfile.File("[Unit]\n", 0o644)
	if n := reloads("three"); n != 1 {
		t.Errorf("reloaded %d times for another unit", n)
	}
}

func TestDeliverARemoval(t *testing.T) {
	w := newWatched(t)
	before := w.manifest()
	w.delivers(t, "one", enact(1, trading()), instruction.Armed, "one")
	w.settle(w.next, false)
	w.delivers(t, "one", removeThird(), instruction.Armed, "one")
	w.settle(w.next, false)
	g := w.guard()
	if err := errors.Join(g.Forget(), g.Uninstall(t.Context())); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, w.manifest()); diff != "" {
		t.Errorf("the host before and after (-before +after):\n%s", diff)
	}
	// A pod that starts once more for the same removal finds nothing to do, and brings no guard back.
	w.delivers(t, "one", removeThird(), instruction.Removed, "")
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
	_, err := guard.DeliverTo(ctx, w.guard(), unlocked, d, func(string) {})
	if err == nil || !strings.Contains(err.Error(), "lowlatency-guard-inbox.service") {
		t.Errorf("Deliver() = %v", err)
	}
	if inVain := new(guard.NotHandedOverError); errors.As(err, &inVain) {
		t.Errorf("the instruction is in the inbox, and %v says that it is not", err)
	}
}

// TestDeliverToAHostOfAnotherOperator changes nothing.
func TestDeliverToAHostOfAnotherOperator(t *testing.T) {
	w := newWatched(t)
	other := trusted()
	other.Key = []byte(strings.Repeat("k", 32))
	if err := w.guard().Pin(other, nil); err != nil {
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

// TestDeliverInVain: the error says whether the instruction may have got to the guard all the same.
func TestDeliverInVain(t *testing.T) {
	full := func(w *watched) { w.noFiles = true }
	another := func(w *watched) {
		was := trusted()
		was.Key = []byte(strings.Repeat("k", 32))
		if err := w.guard().Pin(was, nil); err != nil {
			t.Fatal(err)
		}
	}
	asked := func(w *watched, data []byte) {
		if err := errors.Join(w.guard().Pin(trusted(), nil), w.guard().HandOver(data)); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		host    func(w *watched, data []byte)
		isKnown bool
	}{
		"a host that cannot have the guard":  {func(w *watched, _ []byte) { full(w) }, true},
		"a host of another operator":         {func(w *watched, _ []byte) { another(w) }, true},
		"it was handed over before":          {func(w *watched, data []byte) { asked(w, data); full(w) }, false},
		"another one was handed over before": {func(w *watched, _ []byte) { asked(w, signed(t, enact(2, trading()))); full(w) }, true},
		"what the guard has taken cannot be read": {func(w *watched, _ []byte) {
			asked(w, signed(t, enact(2, trading())))
			w.seen[guard.StateFolder+"/instructions"] = hostfile.File("{", 0o600)
			full(w)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, data := newWatched(t), signed(t, enact(1, trading()))
			tc.host(w, data)
			_, err := w.deliver(t, "one", data)
			var inVain *guard.NotHandedOverError
			if err == nil || errors.As(err, &inVain) != tc.isKnown {
				t.Fatalf("Deliver() = %v", err)
			}
			if tc.isKnown && inVain.ExitCode() != instruction.ExitNotHandedOver {
				t.Errorf("exit code %d", inVain.ExitCode())
			}
		})
	}
}

// leaving is a host whose guard removes itself, with the inbox, when systemd is to start it.
type leaving struct{ *world }

func (l leaving) Tool(ctx context.Context, program string, arguments ...string) error {
	if slices.Equal(arguments, []string{"--no-block", "start", "lowlatency-guard-inbox.service"}) {
		g := l.guard()
		return errors.Join(g.Forget(), g.Uninstall(ctx))
	}
	return l.world.Tool(ctx, program, arguments...)
}

// TestDeliverToAGuardThatLeaves: that a guard has left says nothing of an instruction to enact.
func TestDeliverToAGuardThatLeaves(t *testing.T) {
	w := leaving{newWatched(t).world}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	d := guard.Delivery{Program: []byte("one"), Trust: trusted(), Instruction: signed(t, enact(1, trading()))}
	if report, err := guard.DeliverTo(ctx, guard.New(w, w, func(string) {}), unlocked, d, func(string) {}); err == nil {
		t.Errorf("Deliver() = %+v, and nobody has read the instruction", report)
	}
}

// TestDeliverToAnOlderGuard that has refused to read the same instruction: the new one reads it, and is not asked to once more.
func TestDeliverToAnOlderGuard(t *testing.T) {
	w := newWatched(t)
	w.delivers(t, "old", enact(1, trading()), instruction.Armed, "old")
	w.settle(w.next, false)
	data := signed(t, enact(2, otherTrading()))
	const name = guard.StateFolder + "/instructions"
	refusal := fmt.Sprintf(`,"refused":{"digest":%q,"reason":"UnknownField","message":"it has a field"}}`, instruction.Digest(data))
	w.seen[name] = hostfile.File(strings.TrimSuffix(string(w.seen[name].Content), "}")+refusal, w.seen[name].Mode)
	if report, err := w.deliver(t, "old", data); err != nil || report.Refused == nil {
		t.Fatalf("Deliver() = %+v, %v: nothing but another guard can read it", report, err)
	}
	w.delivers(t, "new", enact(2, otherTrading()), instruction.Armed, "new")
}

// TestNewerGuard: what a newer guard has written is misread by nobody, in whichever file it says so, and nothing is changed.
func TestNewerGuard(t *testing.T) {
	newer := map[string]func(string) string{
		"/in-force": func(text string) string { return reencoded(text, `{"begin":{`, `{"begin":{"format":2,`) },
		"/journal": func(string) string {
			return reencoded("", "", `{"begin":{"format":7,"number":9,"what":"nobody knows"}}`)
		},
		"/trust":        func(text string) string { return strings.Replace(text, "{", `{"format":2,`, 1) },
		"/instructions": func(text string) string { return strings.Replace(text, "{", `{"format":2,`, 1) },
	}
	for name, change := range newer {
		t.Run(name, func(t *testing.T) {
			w := newWatched(t)
			w.delivers(t, "new", enact(1, trading()), instruction.Armed, "new")
			w.settle(w.next, false)
			file := w.seen[guard.StateFolder+name]
			w.seen[guard.StateFolder+name] = hostfile.File(change(string(file.Content)), 0o600)
			before := w.manifest()
			g := w.guard()
			_, delivered := w.deliver(t, "old", signed(t, enact(2, otherTrading())))
			_, removed := w.deliver(t, "old", signed(t, removeThird()))
			installed := g.Install(t.Context(), []byte("old"))
			_, reported := g.Report()
			for what, err := range map[string]error{"delivered": delivered, "removed": removed, "installed": installed, "reported": reported} {
				if problem, is := errors.AsType[*journal.FormatError](err); !is || problem.Path != guard.StateFolder+name {
					t.Errorf("%s: %v", what, err)
				}
			}
			if diff := cmp.Diff(before, w.manifest()); diff != "" {
				t.Errorf("the host before and after (-before +after):\n%s", diff)
			}
		})
	}
	// One that says the format of today is read, and its program replaced by an older one.
	w := newWatched(t)
	w.delivers(t, "new", enact(1, trading()), instruction.Armed, "new")
	w.settle(w.next, false)
	file := w.seen[guard.StateFolder+"/in-force"]
	w.seen[guard.StateFolder+"/in-force"] = hostfile.File(reencoded(string(file.Content), `{"begin":{`, `{"begin":{"format":1,`), 0o600)
	w.delivers(t, "old", enact(2, otherTrading()), instruction.Armed, "old")
}

// reencoded replaces something in the first line of a journal, and gives it the checksum that it has then.
func reencoded(text, before, after string) string {
	first, rest, _ := strings.Cut(text, "\n")
	if len(first) > 9 {
		first = first[9:]
	}
	first = strings.Replace(first, before, after, 1)
	return fmt.Sprintf("%08x %s\n%s", crc32.Checksum([]byte(first), crc32.MakeTable(crc32.Castagnoli)), first, rest)
}
