// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
)

// keyOf is a key of the operator: 1 is the first, which operatorKey is.
func keyOf(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

// trustIn is trust in a key.
func trustIn(seed byte) guard.Trust {
	trust := trusted()
	trust.Key = keyOf(seed).Public().(ed25519.PublicKey)
	return trust
}

// chain leads through keys.
func chain(t *testing.T, seeds ...byte) instruction.Chain {
	t.Helper()
	var all instruction.Chain
	for i := 1; i < len(seeds); i++ {
		var err error
		if all, err = all.Extend(keyOf(seeds[i-1]), keyOf(seeds[i]).Public().(ed25519.PublicKey)); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func signedBy(t *testing.T, seed byte, i instruction.Instruction) []byte {
	t.Helper()
	data, err := instruction.Sign(keyOf(seed), i)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// trusts fails unless the guard reports a key.
func (w *world) trusts(seed byte, serial int64) {
	w.t.Helper()
	report, err := w.guard().Report()
	want := &instruction.TrustedKey{ID: instruction.KeyID(trustIn(seed).Key), Serial: serial}
	if diff := cmp.Diff(want, report.Key); diff != "" || err != nil {
		w.t.Errorf("%v; the key (-want +got):\n%s", err, diff)
	}
}

// refuses fails unless an instruction is refused because of its key, and nothing but that is written down.
func (w *world) refuses(data []byte) {
	w.t.Helper()
	before := w.manifest()
	if next := w.give(data); next != guard.Nothing {
		w.t.Errorf("Take() = %v", next)
	}
	report, err := w.guard().Report()
	if err != nil || report.Refused == nil || report.Refused.Reason != instruction.ReasonWrongKey {
		w.t.Errorf("Report() = %+v, %v", report, err)
	}
	if diff := cmp.Diff(before, w.manifest()); diff != "" {
		w.t.Errorf("the host before and after (-before +after):\n%s", diff)
	}
}

// TestKeysOneAfterTheOther: each takes the place of the one before, also of one two before, and never the other way round, whatever is
// offered and whichever boot it is.
func TestKeysOneAfterTheOther(t *testing.T) {
	w := instructed(t)
	w.settle(w.give(signed(t, enact(1, trading()))), false)
	w.trusts(1, 1)
	// The host was away for one key.
	if err := w.guard().Pin(trustIn(3), chain(t, 1, 2, 3)); err != nil {
		t.Fatal(err)
	}
	for _, reboots := range []bool{false, true} {
		if reboots {
			w.settle(guard.Reboot, false)
		}
		w.trusts(3, 3)
		w.refuses(signed(t, enact(2, otherTrading())))
		w.refuses(signedBy(t, 2, enact(3, otherTrading())))
		for name, offered := range map[string]struct {
			seed  byte
			chain instruction.Chain
		}{
			"the first key":       {1, nil},
			"the old chain":       {2, chain(t, 1, 2)},
			"a branch":            {7, chain(t, 1, 2, 7)},
			"a foreign chain":     {8, chain(t, 7, 8)},
			"another one's chain": {7, chain(t, 1, 2, 3)},
		} {
			if err := w.guard().Pin(trustIn(offered.seed), offered.chain); err == nil {
				t.Errorf("%s is taken", name)
			}
			w.trusts(3, 3)
		}
	}
	w.settle(w.give(signedBy(t, 3, enact(2, otherTrading()))), false)
	w.expect(instruction.Report{Phase: instruction.InForce, Number: 2, PlanHash: enact(2, nil).PlanHash, InForce: enact(2, nil).PlanHash})
}

// TestAKeyWithoutASerial was given to a guard that knew none. It is told with the next delivery.
func TestAKeyWithoutASerial(t *testing.T) {
	w := instructed(t)
	file := w.seen[guard.StateFolder+"/trust"]
	w.seen[guard.StateFolder+"/trust"] = hostfile.File(strings.Replace(string(file.Content), `,"serial":1`, "", 1), 0o600)
	w.trusts(1, 0)
	if err := w.guard().Pin(trusted(), nil); err != nil {
		t.Error(err)
	}
	w.trusts(1, 1)
}

// TestAnotherNode comes with a key to which the chain leads, or not at all.
func TestAnotherNode(t *testing.T) {
	w := instructed(t)
	anew := trustIn(2)
	anew.NodeUID = "uid-2"
	if err := w.guard().Pin(anew, chain(t, 7, 2)); err == nil {
		t.Error("a key that nobody has signed is taken")
	}
	w.trusts(1, 1)
	w.settle(w.give(signed(t, enact(1, trading()))), false)
	w.expect(instruction.Report{Phase: instruction.InForce, Number: 1, PlanHash: enact(1, nil).PlanHash, InForce: enact(1, nil).PlanHash})
	if err := w.guard().Pin(anew, chain(t, 1, 2)); err != nil {
		t.Error(err)
	}
	w.trusts(2, 2)
}

// TestTrust is root's word, where the operator has lost its key.
func TestTrust(t *testing.T) {
	bare := newWorld(t)
	if err := bare.guard().Trust(trustIn(9).Key); !errors.Is(err, guard.ErrNoOperator) {
		t.Errorf("Trust() of a host without an operator = %v", err)
	}
	w := instructed(t)
	w.settle(w.give(signed(t, enact(1, trading()))), false)
	before := w.manifest()
	if err := w.guard().Trust(trustIn(9).Key); err != nil {
		t.Fatal(err)
	}
	w.trusts(9, 0)
	if diff := cmp.Diff(before, w.manifest()); diff != "" {
		t.Errorf("the host before and after (-before +after):\n%s", diff)
	}
	w.refuses(signed(t, enact(2, otherTrading())))
	if err := w.guard().Pin(trustIn(9), nil); err != nil {
		t.Error(err)
	}
	w.settle(w.give(signedBy(t, 9, enact(2, otherTrading()))), false)
	w.expect(instruction.Report{Phase: instruction.InForce, Number: 2, PlanHash: enact(2, nil).PlanHash, InForce: enact(2, nil).PlanHash})
	if err := errors.Join(w.guard().Release()); err != nil {
		t.Fatal(err)
	}
	if err := w.guard().Trust(trustIn(3).Key); err == nil || !strings.Contains(err.Error(), "takes no instructions") {
		t.Errorf("Trust() of a released host = %v", err)
	}
}

// TestAKeyMovesDuringATrial: what the former key has begun goes on; what it has signed and nobody has begun is refused.
func TestAKeyMovesDuringATrial(t *testing.T) {
	w := instructed(t)
	w.give(signed(t, enact(1, trading())))
	w.reboot(true)
	w.give(signed(t, enact(2, otherTrading())))
	w.expect(instruction.Report{Phase: instruction.Received, Number: 2, PlanHash: enact(2, nil).PlanHash})
	if err := w.guard().Pin(trustIn(2), chain(t, 1, 2)); err != nil {
		t.Fatal(err)
	}
	w.expect(instruction.Report{Phase: instruction.Refused, Reason: instruction.ReasonWrongKey, Number: 2, PlanHash: enact(2, nil).PlanHash})
	next, err := w.guard().Boot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.settle(next, false)
	w.settle(w.take(), false)
	if report, err := w.guard().Report(); err != nil || report.InForce != enact(1, nil).PlanHash {
		t.Errorf("Report() = %+v, %v", report, err)
	}
	w.settle(w.give(signedBy(t, 2, enact(3, otherTrading()))), false)
	w.expect(instruction.Report{Phase: instruction.InForce, Number: 3, PlanHash: enact(3, nil).PlanHash, InForce: enact(3, nil).PlanHash})
}

// TestPowerCutsWhileAKeyMoves: at every step the guard trusts the one key or the other; with the new one nothing of the former is begun
// any more, and whoever has brought it brings it again.
func TestPowerCutsWhileAKeyMoves(t *testing.T) {
	begin := func() *world {
		w := instructed(t)
		w.give(signed(t, enact(1, trading())))
		w.reboot(true)
		w.give(signed(t, enact(2, otherTrading())))
		return w
	}
	after := begin()
	steps := after.steps
	if err := after.guard().Pin(trustIn(2), chain(t, 1, 2)); err != nil {
		t.Fatal(err)
	}
	keys := map[string]int{}
	for cut := steps + 1; cut <= after.steps; cut++ {
		for _, survives := range []survival{nothingUnsynced, everything, firstHalf} {
			w := begin()
			w.cut, w.survival = cut, survives
			wasCut, err := w.until(func() error { return w.guard().Pin(trustIn(2), chain(t, 1, 2)) })
			if err != nil || !wasCut {
				t.Fatalf("cut %v, %v", wasCut, err)
			}
			w.settle(guard.Nothing, true)
			w.settle(w.take(), false)
			report, err := w.guard().Report()
			if err != nil {
				t.Fatal(err)
			}
			keys[report.Key.ID]++
			if report.Key.ID == instruction.KeyID(trustIn(2).Key) && report.InForce == enact(2, nil).PlanHash {
				t.Errorf("step %d: the former key's instruction was begun: %+v", cut, report)
			}
			if err := w.guard().Pin(trustIn(2), chain(t, 1, 2)); err != nil {
				t.Fatal(err)
			}
			w.trusts(2, 2)
			w.refuses(signed(t, enact(4, otherTrading())))
		}
	}
	if len(keys) != 2 {
		t.Errorf("the cuts show not both keys: %v", keys)
	}
	t.Log(after.steps-steps, "steps;", keys)
}

// TestDeliverWithAnotherKey brings it with an instruction, and without one.
func TestDeliverWithAnotherKey(t *testing.T) {
	w := newWatched(t)
	w.delivers(t, "one", enact(1, trading()), instruction.Armed, "one")
	w.settle(w.next, false)
	g := guard.New(w, w, func(string) {})
	for _, d := range []guard.Delivery{
		{Program: []byte("two"), Trust: trustIn(2), Chain: chain(t, 1, 2)},
		{Program: []byte("two"), Trust: trustIn(3), Chain: chain(t, 1, 2, 3), Instruction: signedBy(t, 3, enact(2, trading()))},
	} {
		report, err := guard.DeliverTo(t.Context(), g, unlocked, d, func(string) {})
		if err != nil || report.Phase != instruction.InForce || report.Key.ID != instruction.KeyID(d.Trust.Key) {
			t.Fatalf("Deliver() = %+v, %v", report, err)
		}
	}
}
