// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

func operatorKey() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
}

func trusted() guard.Trust {
	return guard.Trust{Key: operatorKey().Public().(ed25519.PublicKey), Node: "worker-1", NodeUID: "uid-1"}
}

// instructed is a host whose guard takes instructions.
func instructed(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	if err := w.guard().Pin(trusted(), nil); err != nil {
		t.Fatal(err)
	}
	return w
}

func enact(number int64, operations []operation.Operation) instruction.Instruction {
	return instruction.Instruction{
		Node: "worker-1", NodeUID: "uid-1", PlanHash: "17304b9f96e3000" + string('0'+byte(number)), Number: number, Action: instruction.Enact,
		Reboot: instruction.RebootAllowed, Attempt: instruction.FirstAttempt, DeadlineSeconds: 600, Operations: operations, Plan: []byte(`{}`),
	}
}

// removeThird comes after two other instructions.
func removeThird() instruction.Instruction {
	i := enact(3, nil)
	i.Action, i.PlanHash, i.Plan = instruction.Remove, "", nil
	return i
}

func signed(t *testing.T, i instruction.Instruction) []byte {
	t.Helper()
	data, err := instruction.Sign(operatorKey(), i)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// give hands data over and has the guard look, without a reboot.
func (w *world) give(data []byte) guard.Next {
	w.t.Helper()
	if err := w.guard().HandOver(data); err != nil {
		w.t.Fatal(err)
	}
	return w.take()
}

func (w *world) take() guard.Next {
	w.t.Helper()
	next, err := w.guard().Take(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	return next
}

// expect compares the report, without the boot and without sentences.
func (w *world) expect(want instruction.Report) {
	w.t.Helper()
	got, err := w.guard().Report()
	if err != nil {
		w.t.Fatal(err)
	}
	ignored := cmpopts.IgnoreFields(instruction.Report{}, "BootID", "Message", "Key")
	if diff := cmp.Diff(&want, got, ignored, cmpopts.IgnoreFields(instruction.Refusal{}, "Message")); diff != "" {
		w.t.Fatalf("report (-want +got):\n%s", diff)
	}
	if (want.Reason != "") != (got.Message != "") || got.BootID == "" {
		w.t.Fatalf("report %+v", got)
	}
}

// TestAnInstructionFromEnactToRemove follows the reports that the operator sees.
func TestAnInstructionFromEnactToRemove(t *testing.T) {
	w := newWorld(t)
	w.expect(instruction.Report{Phase: instruction.Removed})
	before := w.manifest()
	if err := w.guard().Pin(trusted(), nil); err != nil {
		t.Fatal(err)
	}
	w.expect(instruction.Report{Phase: instruction.Idle})

	one := enact(1, trading())
	if next := w.give(signed(t, one)); next != guard.Reboot {
		t.Fatalf("Take() = %v", next)
	}
	w.expect(instruction.Report{Phase: instruction.Armed, Number: 1, PlanHash: one.PlanHash})
	w.reboot(true)
	w.expect(instruction.Report{Phase: instruction.Verifying, Number: 1, PlanHash: one.PlanHash})
	next, err := w.guard().Boot(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	w.settle(next, false)
	w.expect(instruction.Report{Phase: instruction.InForce, Number: 1, PlanHash: one.PlanHash, InForce: one.PlanHash})
	if handled, err := w.guard().Handled(signed(t, one)); !handled || err != nil {
		t.Errorf("Handled() = %v, %v", handled, err)
	}

	// Another plan of the same operations: nothing is to be done, and it is in force.
	two := enact(2, trading())
	if next := w.give(signed(t, two)); next != guard.Nothing {
		t.Fatalf("Take() = %v", next)
	}
	w.expect(instruction.Report{Phase: instruction.InForce, Number: 2, PlanHash: two.PlanHash, InForce: two.PlanHash})

	w.settle(w.give(signed(t, removeThird())), false)
	if unused, err := w.guard().Unused(); !unused || err != nil {
		t.Fatalf("Unused() = %v, %v", unused, err)
	}
	if err := w.guard().Forget(); err != nil {
		t.Fatal(err)
	}
	w.expect(instruction.Report{Phase: instruction.Removed})
	if diff := cmp.Diff(before, w.manifest()); diff != "" {
		t.Errorf("the host before and after (-before +after):\n%s", diff)
	}
}

func TestInstructionsThatAreRefused(t *testing.T) {
	one := enact(5, trading())
	otherKey, err := instruction.Sign(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, ed25519.SeedSize)), enact(6, otherTrading()))
	if err != nil {
		t.Fatal(err)
	}
	otherNode := enact(6, otherTrading())
	otherNode.NodeUID = "uid-2"
	inForce := instruction.Report{Phase: instruction.InForce, Number: 5, PlanHash: one.PlanHash, InForce: one.PlanHash}
	cases := map[string]struct {
		data []byte
		want instruction.Refusal
	}{
		"another key":   {otherKey, instruction.Refusal{Reason: instruction.ReasonWrongKey}},
		"another node":  {signed(t, otherNode), instruction.Refusal{Reason: instruction.ReasonWrongNode, Number: 6}},
		"an old number": {signed(t, enact(4, otherTrading())), instruction.Refusal{Reason: instruction.ReasonReplayed, Number: 4}},
		"garbage":       {[]byte("x"), instruction.Refusal{Reason: instruction.ReasonMalformed}},
		"nothing":       {nil, instruction.Refusal{Reason: instruction.ReasonMalformed}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := instructed(t)
			w.settle(w.give(signed(t, one)), false)
			before := w.manifest()
			if next := w.give(tc.data); next != guard.Nothing {
				t.Fatalf("Take() = %v", next)
			}
			want := inForce
			want.Refused = &tc.want
			w.expect(want)
			if diff := cmp.Diff(before, w.manifest()); diff != "" {
				t.Errorf("the host before and after (-before +after):\n%s", diff)
			}
			// The next good one is taken all the same, and the refusal is history.
			w.settle(w.give(signed(t, enact(7, otherTrading()))), false)
			if report, err := w.guard().Report(); err != nil || report.Number != 7 || report.Phase != instruction.InForce || report.Refused != nil {
				t.Errorf("Report() = %+v, %v", report, err)
			}
		})
	}
}

// TestWhatAHostCannotHave is signed as it must be, and refused before anything is written.
func TestWhatAHostCannotHave(t *testing.T) {
	noReboot := enact(1, trading())
	noReboot.Reboot = instruction.RebootForbidden
	w := instructed(t)
	before := w.manifest()
	w.give(signed(t, noReboot))
	w.expect(instruction.Report{Phase: instruction.Refused, Number: 1, PlanHash: noReboot.PlanHash, Reason: instruction.ReasonRebootForbidden})
	if diff := cmp.Diff(before, w.manifest()); diff != "" {
		t.Errorf("the host before and after (-before +after):\n%s", diff)
	}

	w.settle(w.give(signed(t, enact(2, trading()))), false)
	w.seen["/etc/lowlatency/irqbalance.env"] = hostfile.File("somebody's", 0o644)
	w.give(signed(t, enact(3, otherTrading())))
	want := instruction.Report{Phase: instruction.Refused, Number: 3, PlanHash: enact(3, nil).PlanHash, Reason: instruction.ReasonForeignChange, InForce: enact(2, nil).PlanHash}
	want.Differences = []string{"/etc/lowlatency/irqbalance.env has another content than the guard has written"}
	w.expect(want)
}

// TestATrialThatFailsIsReported, and the same operations are tried again when the instruction says so.
func TestATrialThatFailsIsReported(t *testing.T) {
	w := instructed(t)
	w.hangs = true
	w.settle(w.give(signed(t, enact(1, trading()))), false)
	w.hangs = false
	w.expect(instruction.Report{Phase: instruction.TakenBack, Number: 1, PlanHash: enact(1, nil).PlanHash, Reason: instruction.ReasonNotStarted})
	w.give(signed(t, enact(2, trading())))
	w.expect(instruction.Report{Phase: instruction.Refused, Number: 2, PlanHash: enact(2, nil).PlanHash, Reason: instruction.ReasonTriedBefore})
	again := enact(3, trading())
	again.Attempt = instruction.FurtherAttempt
	w.settle(w.give(signed(t, again)), false)
	w.expect(instruction.Report{Phase: instruction.InForce, Number: 3, PlanHash: again.PlanHash, InForce: again.PlanHash})
}

// TestInstructionsDuringATrial: another plan waits for its end, a removal ends it.
func TestInstructionsDuringATrial(t *testing.T) {
	w := instructed(t)
	before := w.manifest()
	w.give(signed(t, enact(1, trading())))
	w.reboot(true)
	if next := w.give(signed(t, enact(2, otherTrading()))); next != guard.Nothing {
		t.Fatalf("Take() = %v", next)
	}
	w.expect(instruction.Report{Phase: instruction.Received, Number: 2, PlanHash: enact(2, nil).PlanHash})
	if next := w.give(signed(t, removeThird())); next != guard.Reboot {
		t.Fatalf("Take() = %v", next)
	}
	w.reboot(true)
	if next, err := w.guard().Boot(context.Background()); next != guard.Nothing || err != nil {
		t.Fatalf("Boot() = %v, %v", next, err)
	}
	if next := w.take(); next != guard.Nothing {
		t.Fatalf("Take() = %v", next)
	}
	if unused, err := w.guard().Unused(); !unused || err != nil {
		t.Fatalf("Unused() = %v, %v", unused, err)
	}
	if diff := cmp.Diff(before, w.manifest()); diff != "" {
		t.Errorf("the host before and after (-before +after):\n%s", diff)
	}
}

func TestPin(t *testing.T) {
	w := instructed(t)
	if err := w.guard().Pin(trusted(), nil); err != nil {
		t.Errorf("pinning the same again: %v", err)
	}
	otherKey := trusted()
	otherKey.Key = bytes.Repeat([]byte{7}, ed25519.PublicKeySize)
	want := "and the operator has key " + instruction.KeyID(otherKey.Key)
	if err := w.guard().Pin(otherKey, nil); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "lowlatency-guard revert") {
		t.Errorf("Pin() = %v, want %q", err, want)
	}
	if err := w.guard().Release(); err != nil {
		t.Fatal(err)
	}
	if next := w.give(signed(t, enact(9, trading()))); next != guard.Nothing {
		t.Errorf("a guard that root has released takes an instruction: %v", next)
	}
	if err := w.guard().Pin(trusted(), nil); err == nil || !strings.Contains(err.Error(), "takes no instructions") {
		t.Errorf("Pin() of a released host = %v", err)
	}
}

// TestNodeMadeAnew: an operator that the guard follows says that the host is another node's. What was told to the node before is not begun any more, and
// nothing is taken for it.
func TestNodeMadeAnew(t *testing.T) {
	w := instructed(t)
	w.give(signed(t, enact(1, trading())))
	w.reboot(true)
	if next := w.give(signed(t, enact(2, otherTrading()))); next != guard.Nothing {
		t.Fatalf("Take() = %v", next)
	}
	w.expect(instruction.Report{Phase: instruction.Received, Number: 2, PlanHash: enact(2, nil).PlanHash})
	anew := trusted()
	anew.NodeUID = "uid-2"
	if err := w.guard().Pin(anew, nil); err != nil {
		t.Fatal(err)
	}
	reported := func() *instruction.Report {
		t.Helper()
		report, err := w.guard().Report()
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	if got := reported(); got.Phase != instruction.Refused || got.Reason != instruction.ReasonWrongNode {
		t.Errorf("the report is %+v", got)
	}
	w.give(signed(t, enact(3, otherTrading())))
	if got := reported(); got.Refused == nil || got.Refused.Reason != instruction.ReasonWrongNode {
		t.Errorf("an instruction for the node before: %+v", got)
	}
	forNew := enact(4, trading())
	forNew.NodeUID = anew.NodeUID
	w.give(signed(t, forNew))
	if got := reported(); got.Number != 4 || got.Refused != nil {
		t.Errorf("an instruction for the node: %+v", got)
	}
}

// TestPowerCutsWithInstructions cuts the power at every step from the handing over of an instruction until the host is at
// rest: each ends in force or taken back, and the report says which, with the number of the instruction.
func TestPowerCutsWithInstructions(t *testing.T) {
	data := signed(t, enact(1, trading()))
	after := instructed(t)
	first := after.steps
	after.settle(after.give(data), false)
	counts := map[instruction.Phase]int{}
	for cut := first + 1; cut <= after.steps; cut++ {
		for _, survives := range []survival{nothingUnsynced, everything, firstHalf} {
			w := instructed(t)
			w.cut, w.survival = cut, survives
			var next guard.Next
			wasCut, err := w.until(func() (err error) {
				if err := w.guard().HandOver(data); err != nil {
					return err
				}
				next, err = w.guard().Take(context.Background())
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			w.settle(next, wasCut)
			// The unit looks into the inbox after each start.
			w.settle(w.take(), false)
			counts[w.restingPhase()]++
		}
	}
	if counts[instruction.InForce] == 0 || counts[instruction.TakenBack] == 0 {
		t.Error("the cuts do not show both ends")
	}
	t.Log(counts)
}

// restingPhase is what is reported of the first instruction when nothing is left to do. Where the instruction itself was lost
// before it was taken, whoever has handed it over does it again.
func (w *world) restingPhase() instruction.Phase {
	w.t.Helper()
	report, err := w.guard().Report()
	if err != nil {
		w.t.Fatal(err)
	}
	isResting := report.Phase == instruction.InForce || report.Phase == instruction.TakenBack
	if report.Phase != instruction.Idle && (!isResting || report.Number != 1) {
		w.t.Errorf("after %d steps: %+v", w.steps, report)
	}
	return report.Phase
}

func TestReportOfAFailedWrite(t *testing.T) {
	w := instructed(t)
	w.give(signed(t, enact(1, trading())))
	w.reboot(true)
	w.broken = errors.New("no space left")
	if err := w.guard().Keep(context.Background()); err == nil {
		t.Fatal("Keep() has succeeded")
	}
	report, err := w.guard().Report()
	if err != nil || report.Phase != instruction.TakingBack || report.Reason != instruction.ReasonNotKept {
		t.Fatalf("Report() = %+v, %v: the kernel of the trial still runs", report, err)
	}
	w.mustLeave(true)
	w.settle(guard.Reboot, false)
	w.mustLeave(false)
	w.expect(instruction.Report{Phase: instruction.TakenBack, Number: 1, PlanHash: enact(1, nil).PlanHash, Reason: instruction.ReasonNotKept})
}

func (w *world) mustLeave(want bool) {
	w.t.Helper()
	if must, err := w.guard().MustLeave(); must != want || err != nil {
		w.t.Fatalf("MustLeave() = %v, %v, want %v", must, err, want)
	}
}

// TestArgumentsThatAnotherStartBringsAgain: somebody has put those of the trial on the default line. The host reboots for them
// once, and what comes then is carried out.
func TestArgumentsThatAnotherStartBringsAgain(t *testing.T) {
	w := instructed(t)
	w.give(signed(t, enact(1, trading())))
	w.reboot(true)
	line := w.seen["/proc/cmdline"]
	w.broken = errors.New("no space left")
	if err := w.guard().Keep(context.Background()); err == nil {
		t.Fatal("Keep() has succeeded")
	}
	w.mustLeave(true)
	w.reboot(true)
	w.seen["/proc/cmdline"] = line
	w.mustLeave(false)
	report, err := w.guard().Report()
	if err != nil || report.Phase != instruction.TakenBack || len(report.Differences) != 1 || !strings.Contains(report.Differences[0], operation.MarkerParameter) {
		t.Fatalf("Report() = %+v, %v", report, err)
	}
	if next := w.give(signed(t, removeThird())); next != guard.Nothing {
		t.Fatalf("Take() = %v: the host has rebooted for it already", next)
	}
	if unused, err := w.guard().Unused(); !unused || err != nil {
		t.Fatalf("Unused() = %v, %v", unused, err)
	}
}

// TestAWithdrawnTrialIsLeftByWhoeverHasWithdrawnIt: root may have asked for no reboot.
func TestAWithdrawnTrialIsLeftByWhoeverHasWithdrawnIt(t *testing.T) {
	w := newWorld(t)
	if _, err := w.guard().Apply(context.Background(), wanted(trading())); err != nil {
		t.Fatal(err)
	}
	w.reboot(true)
	if next, err := w.guard().Remove(context.Background()); next != guard.Reboot || err != nil {
		t.Fatalf("Remove() = %v, %v", next, err)
	}
	w.mustLeave(false)
}

// TestWhatRootHasArmed by hand, without a reboot, is not rebooted for an instruction: neither for an old one that is looked at again,
// nor for one that is refused, nor for one of the same operations, which is in force once root has had the host reboot.
func TestWhatRootHasArmed(t *testing.T) {
	w := instructed(t)
	w.settle(w.give(signed(t, enact(2, trading()))), false)
	if next, err := w.guard().Apply(context.Background(), wanted(otherTrading())); next != guard.Reboot || err != nil {
		t.Fatalf("Apply() = %v, %v", next, err)
	}
	for name, data := range map[string][]byte{"the same": signed(t, enact(2, trading())), "an old one": signed(t, enact(1, trading())), "garbage": []byte("x")} {
		if next := w.give(data); next != guard.Nothing {
			t.Errorf("%s: Take() = %v", name, next)
		}
	}
	same := enact(3, otherTrading())
	if next := w.give(signed(t, same)); next != guard.Nothing {
		t.Errorf("the same operations: Take() = %v", next)
	}
	w.settle(guard.Reboot, false)
	w.settle(w.take(), false)
	w.expect(instruction.Report{Phase: instruction.InForce, Number: 3, PlanHash: same.PlanHash, InForce: same.PlanHash})
}

// TestArmedAndThenForbidden: an instruction without the right to reboot does not have the host reboot for one before it.
func TestArmedAndThenForbidden(t *testing.T) {
	w := instructed(t)
	w.give(signed(t, enact(1, trading())))
	forbidden := enact(2, trading())
	forbidden.Reboot = instruction.RebootForbidden
	if next := w.give(signed(t, forbidden)); next != guard.Nothing {
		t.Errorf("Take() = %v", next)
	}
	w.expect(instruction.Report{Phase: instruction.Refused, Number: 2, PlanHash: forbidden.PlanHash, Reason: instruction.ReasonRebootForbidden})
}
