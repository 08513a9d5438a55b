// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/grub"
)

// TestAnInterruptedRestartOfTheKubelet: whoever presses Ctrl-C, and a systemd that stops the guard, leaves no kubelet stopped, whichever program
// runs then. What was begun can be taken back afterwards, also by whoever was interrupted.
func TestAnInterruptedRestartOfTheKubelet(t *testing.T) {
	for _, at := range []string{"systemctl daemon-reload", "systemctl stop kubelet.service", "systemctl reset-failed kubelet.service", "systemctl --no-block start kubelet.service"} {
		t.Run(at, func(t *testing.T) {
			w := newWorld(t).withKubelet()
			before := w.manifest()
			ctx, interrupt := context.WithCancel(t.Context())
			w.ran = func(text string) {
				if text == at {
					interrupt()
				}
			}
			if next, err := w.guard().Apply(ctx, instructedTo(kubeletOnly("static"))); next != guard.Verify || err != nil {
				t.Fatalf("Apply() = %v, %v", next, err)
			}
			w.runsWith("static")
			if _, err := w.guard().TakeBack(ctx, instruction.ReasonInterrupted, "it was interrupted"); err != nil {
				t.Fatal(err)
			}
			w.runsWith("none")
			if diff := cmp.Diff(before, w.manifest()); diff != "" {
				t.Errorf("the host before and after (-before +after):\n%s", diff)
			}
		})
	}
}

// TestAnInterruptedArming: what is being written is written whole.
func TestAnInterruptedArming(t *testing.T) {
	w := newWorld(t)
	ctx, interrupt := context.WithCancel(t.Context())
	w.ran = func(text string) {
		if text == "systemctl daemon-reload" {
			interrupt()
		}
	}
	if next, err := w.guard().Apply(ctx, wanted(trading())); next != guard.Reboot || err != nil {
		t.Fatalf("Apply() = %v, %v", next, err)
	}
}

// TestAKubeletThatDoesNotStopInTime is started all the same.
func TestAKubeletThatDoesNotStopInTime(t *testing.T) {
	w := newWorld(t).withKubelet()
	w.stubborn = "systemctl stop kubelet.service"
	_, err := w.guard().Apply(t.Context(), instructedTo(kubeletOnly("static")))
	if err == nil || !strings.Contains(err.Error(), "stopping the kubelet: ") {
		t.Errorf("Apply() = %v", err)
	}
	if last := w.tools[len(w.tools)-1]; last != "systemctl --no-block start kubelet.service" {
		t.Errorf("the last program was %q", last)
	}
}

// TestATakeBackThatFailsAtTheStart is attempted again in the same boot, and the host says meanwhile what is the matter.
func TestATakeBackThatFailsAtTheStart(t *testing.T) {
	cases := map[string]struct {
		begin  func(w *world)
		reason instruction.Reason
	}{
		"a kernel that did not come up": {func(w *world) {
			w.hangs = true
			w.give(signed(w.t, enact(1, trading())))
		}, instruction.ReasonNotStarted},
		"what was not verified before the next start": {func(w *world) {
			w.give(signed(w.t, enact(1, append(trading()[:1], trading()[4]))))
		}, instruction.ReasonInterrupted},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := instructed(t)
			before := w.manifest()
			tc.begin(w)
			w.reboot(true)
			w.full = w.steps
			if next, err := w.guard().Boot(t.Context()); next != guard.Nothing || !errors.Is(err, unix.ENOSPC) {
				t.Fatalf("Boot() = %v, %v", next, err)
			}
			w.reports(instruction.TakingBack, tc.reason)
			if err := w.guard().Settle(t.Context()); !errors.Is(err, unix.ENOSPC) {
				t.Errorf("Settle() on a full disk = %v", err)
			}
			w.full = 0
			if err := w.guard().Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.reports(instruction.TakenBack, tc.reason)
			w.asBefore(t, before, 2)
		})
	}
}

// reports asserts what the report says, and why.
func (w *world) reports(phase instruction.Phase, reason instruction.Reason) {
	w.t.Helper()
	report, err := w.guard().Report()
	if err != nil || report.Phase != phase || report.Reason != reason || report.Message == "" {
		w.t.Errorf("Report() = %+v, %v", report, err)
	}
}

// TestAStateFileThatCannotBeRemoved keeps nothing from being taken back at the start, and is refused where it is seen before.
func TestAStateFileThatCannotBeRemoved(t *testing.T) {
	w := newWorld(t).withKubelet()
	before := w.manifest()
	operations := append(trading(), kubeletOnly("static")[3])
	if next, err := w.guard().Apply(t.Context(), wanted(operations)); next != guard.Reboot || err != nil {
		t.Fatalf("Apply() = %v, %v", next, err)
	}
	w.hangs = true
	w.reboot(true)
	w.linked = "/var/lib/kubelet"
	if next, err := w.guard().Boot(t.Context()); next != guard.Nothing || !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("Boot() = %v, %v", next, err)
	}
	w.asBefore(t, before, 2)
	again := wanted(operations)
	again.Again = true
	if next, err := w.guard().Apply(t.Context(), again); next != guard.Nothing || err == nil || !strings.Contains(err.Error(), kubeletState+" cannot be removed at each start") {
		t.Errorf("Apply() = %v, %v", next, err)
	}
	w.asBefore(t, before, 2)
}

// TestEntriesOfOthersDuringATrial: what somebody writes into custom.cfg while something is tried stays, whatever becomes of the trial, and our
// entry goes.
func TestEntriesOfOthersDuringATrial(t *testing.T) {
	const theirs = "menuentry 'memtest' {\n\tlinux16 /boot/memtest86+\n}\n"
	for name, end := range map[string]func(w *world) error{
		"kept": func(w *world) error { return w.guard().Keep(t.Context()) },
		"taken back": func(w *world) error {
			_, err := w.guard().TakeBack(t.Context(), instruction.ReasonNotVerified, "no")
			return err
		},
		"kept not whole": func(w *world) error {
			w.broken = errors.New("no space left")
			return discard(w.guard().Keep(t.Context()))
		},
	} {
		for _, before := range []string{"", "set timeout=3\n"} {
			t.Run(name+" after "+before, func(t *testing.T) {
				w := newWorld(t)
				if before != "" {
					w.seen[grub.CustomFile] = hostfile.File(before, 0o644)
					w.kept[grub.CustomFile] = w.seen[grub.CustomFile]
				}
				if next, err := w.guard().Apply(t.Context(), wanted(trading())); next != guard.Reboot || err != nil {
					t.Fatalf("Apply() = %v, %v", next, err)
				}
				w.reboot(true)
				with := w.seen[grub.CustomFile]
				with.Content = append(append([]byte{}, with.Content...), theirs...)
				w.seen[grub.CustomFile] = with
				if err := end(w); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(before+theirs, string(w.seen[grub.CustomFile].Content)); diff != "" {
					t.Errorf("custom.cfg (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// discard has an error counted as expected.
func discard(err error) error {
	if err == nil {
		return errors.New("there is no error")
	}
	return nil
}

// TestAnEntryThatHasStayed, of an older guard, is not what is started by the name of the trial.
func TestAnEntryThatHasStayed(t *testing.T) {
	w := newWorld(t)
	stale := hostfile.File("menuentry 'Low latency: trial' --id lowlatency-trial {\n\tlinux /boot/vmlinuz-6.1 old=1\n}\n", 0o644)
	w.seen[grub.CustomFile], w.kept[grub.CustomFile] = stale, stale
	w.enact(trading())
	if !strings.Contains(string(w.seen["/proc/cmdline"].Content), " isolcpus=2-7 ") || w.boots != 2 {
		t.Errorf("%d boots, and the kernel runs with %q", w.boots, w.seen["/proc/cmdline"].Content)
	}
}
