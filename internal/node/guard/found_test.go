// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

const (
	statInterval = "/proc/sys/vm/stat_interval"
	inForce      = guard.StateFolder + "/in-force"
)

// tunedDaemon sets the parameters of its active profile when it starts, and puts back what it has found when it stops.
type tunedDaemon struct{ found map[string]string }

func (d *tunedDaemon) start(w *world) {
	d.found = map[string]string{}
	profile := strings.TrimSpace(string(w.seen["/etc/tuned/active_profile"].Content))
	for line := range strings.Lines(string(w.seen["/etc/tuned/"+profile+"/tuned.conf"].Content)) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), "="); found {
			file := "/proc/sys/" + strings.ReplaceAll(name, ".", "/")
			d.found[file], w.live[file] = w.live[file], value
		}
	}
}

func (d *tunedDaemon) stop(w *world) { maps.Copy(w.live, d.found) }

// startsAgain starts the host as it is started every day: the guard before TuneD.
func (w *world) startsAgain(t *testing.T) {
	t.Helper()
	w.reboot(true)
	w.boot(t)
	if w.tuned != nil {
		w.tuned.start(w)
	}
}

// withInterval are operations of which one is about the setting that is taken out.
func withInterval(value string, more ...operation.Operation) []operation.Operation {
	return append([]operation.Operation{
		operation.PutFile("/etc/modprobe.d/lowlatency-trading.conf", 0o644, "new"), operation.SetSysctl("vm.stat_interval", value),
	}, more...)
}

func withoutInterval() []operation.Operation { return withInterval("")[:1] }

func tunedProfile(content string) operation.Operation {
	return operation.PutTuneDProfile("lowlatency-trading", "[sysctl]\n"+content)
}

// leavingCase is a host on which a setting is in force, and is then taken out.
type leavingCase struct {
	// firmware is what the kernel has before anybody sets anything, as the host's own files may have it.
	firmware string
	first    []operation.Operation
	// meanwhile is what happens until it is taken out.
	meanwhile func(t *testing.T, w *world)
	then      []operation.Operation
	// value is what the kernel has afterwards, boots how many starts that takes.
	value string
	boots int
}

func boot(t *testing.T, w *world) { w.startsAgain(t) }

func leavingCases() map[string]leavingCase {
	return map[string]leavingCase{
		"in the boot in which it came": {"1", withInterval("10"), nil, withoutInterval(), "1", 0},
		"after a boot":                 {"1", withInterval("10"), boot, withoutInterval(), "1", 0},
		"after many boots":             {"1", withInterval("10"), func(t *testing.T, w *world) { boot(t, w); boot(t, w); boot(t, w) }, withoutInterval(), "1", 0},
		"the host has another value since": {"1", withInterval("10"), func(t *testing.T, w *world) {
			w.firmware[statInterval] = "7"
			boot(t, w)
		}, withoutInterval(), "7", 0},
		"the host has the value itself":               {"10", withInterval("10"), nil, withoutInterval(), "10", 0},
		"the host has the value itself, after a boot": {"10", withInterval("10"), boot, withoutInterval(), "10", 0},
		"it was another value of ours":                {"1", withInterval("10"), func(t *testing.T, w *world) { boot(t, w); w.enact(withInterval("20")) }, withoutInterval(), "1", 0},
		"it came with a trial":                        {"1", trading(), nil, append(trading()[:4:4], trading()[5]), "1", 0},
		"it came with a trial, after a boot":          {"1", trading(), boot, append(trading()[:4:4], trading()[5]), "1", 0},
		"a trial of another plan":                     {"1", trading(), func(_ *testing.T, w *world) { w.enact(append(otherTrading(), trading()[4])) }, otherTrading(), "1", 0},
		"others have changed it since":                {"1", withInterval("10"), func(t *testing.T, w *world) { boot(t, w); w.live[statInterval] = "99" }, withoutInterval(), "99", 0},
		"the whole plan goes":                         {"1", withInterval("10"), boot, nil, "1", 0},
		"a file of ours sets it, too":                 {"1", withInterval("10", operation.PutFile("/etc/sysctl.d/99-lowlatency-a.conf", 0o644, "vm.stat_interval = 10\n")), ownFile, withoutInterval(), "1", 1},
		"and it comes from there alone at first":      {"1", ownFileOnly(), func(t *testing.T, w *world) { ownFile(t, w); w.enact(append(ownFileOnly(), withInterval("20")...)) }, withoutInterval(), "1", 1},
		"the guard was not told at the boot":          {"1", withInterval("10"), func(_ *testing.T, w *world) { w.reboot(true); w.live[statInterval] = "10" }, withoutInterval(), "1", 1},
		"an older guard has set it, and then another": {"1", withInterval("10"), func(_ *testing.T, w *world) { w.reboot(true); w.live[statInterval] = "10"; w.enact(withInterval("20")) }, withoutInterval(), "1", 1},
		"a kernel without it":                         {"", []operation.Operation{withoutInterval()[0], operation.SetSysfs("/sys/kernel/mm/ksm/run", "0")}, boot, withoutInterval(), "", 0},
		"no room to note it":                          {"1", withInterval("10"), noRoom, withoutInterval(), "1", 1},
	}
}

func ownFileOnly() []operation.Operation {
	return []operation.Operation{operation.PutFile("/etc/sysctl.d/99-lowlatency-a.conf", 0o644, "vm.stat_interval = 10\n")}
}

// ownFile starts a host on which systemd-sysctl reads our file before the guard runs.
func ownFile(t *testing.T, w *world) {
	t.Helper()
	w.reboot(true)
	w.live[statInterval] = "10"
	w.boot(t)
}

// noRoom starts a host whose disk is full: values are set all the same.
func noRoom(t *testing.T, w *world) {
	t.Helper()
	w.reboot(true)
	w.noFiles = true
	w.boot(t)
	w.noFiles = false
	if w.live[statInterval] != "10" {
		t.Errorf("the value is %q", w.live[statInterval])
	}
}

// TestASettingGoes: what is taken out of a plan goes back at once to what this kernel had before, and only where nobody knows that the host
// starts again.
func TestASettingGoes(t *testing.T) {
	for name, tc := range leavingCases() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.firmware = map[string]string{}
			if tc.firmware != "" {
				w.firmware[statInterval] = tc.firmware
			}
			w.live = maps.Clone(w.firmware)
			w.enact(tc.first)
			if tc.meanwhile != nil {
				tc.meanwhile(t, w)
			}
			boots := w.boots
			w.enact(tc.then)
			if w.boots-boots != tc.boots || w.live[statInterval] != tc.value {
				t.Errorf("%d boots, want %d; the value is %q, want %q", w.boots-boots, tc.boots, w.live[statInterval], tc.value)
			}
			if again, err := w.guard().Describe(t.Context(), tc.then); err != nil || len(again) > 0 {
				t.Errorf("afterwards %q is left to do, %v", again, err)
			}
		})
	}
}

// tunedPlans are one with the setting, which TuneD sets, too, and one without it.
func tunedPlans() (with, without []operation.Operation) {
	with = withInterval("10", tunedProfile("vm.stat_interval=10\nvm.swappiness=10\n"))
	return with, []operation.Operation{with[0], tunedProfile("vm.swappiness=10\n")}
}

// TestASettingGoesWithTuneD: TuneD puts back what it has found when it started, which was the guard's value. Whichever way, the host ends with
// what it had before.
func TestASettingGoesWithTuneD(t *testing.T) {
	with, without := tunedPlans()
	cases := map[string]struct {
		meanwhile func(t *testing.T, w *world)
		then      []operation.Operation
	}{
		"in the same boot":            {nil, without},
		"after a boot":                {boot, without},
		"its profile goes":            {boot, withoutInterval()},
		"everything goes":             {boot, nil},
		"everything in the same boot": {nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.tuned = &tunedDaemon{}
			w.enact(with)
			if tc.meanwhile != nil {
				tc.meanwhile(t, w)
			}
			boots := w.boots
			w.enact(tc.then)
			if _, held := w.tuned.found[statInterval]; held || w.boots != boots || w.live[statInterval] != "1" {
				t.Errorf("%d boots, the value is %q, and TuneD holds %v", w.boots-boots, w.live[statInterval], w.tuned.found)
			}
		})
	}
}

// TestTakenBackWithTuneD: the same when the change is taken back.
func TestTakenBackWithTuneD(t *testing.T) {
	with, without := tunedPlans()
	t.Run("it is taken back", func(t *testing.T) {
		w := newWorld(t)
		w.tuned = &tunedDaemon{}
		if next, err := w.guard().Apply(t.Context(), wanted(with)); next != guard.Verify || err != nil {
			t.Fatalf("Apply() = %v, %v", next, err)
		}
		if _, err := w.guard().TakeBack(t.Context(), instruction.ReasonNotVerified, "x"); err != nil || w.live[statInterval] != "1" {
			t.Errorf("TakeBack() = %v, the value is %q", err, w.live[statInterval])
		}
	})
	t.Run("that it goes is taken back", func(t *testing.T) {
		w := newWorld(t)
		w.tuned = &tunedDaemon{}
		w.enact(with)
		w.startsAgain(t)
		if next, err := w.guard().Apply(t.Context(), wanted(without)); next != guard.Verify || err != nil {
			t.Fatalf("Apply() = %v, %v", next, err)
		}
		if _, err := w.guard().TakeBack(t.Context(), instruction.ReasonNotVerified, "x"); err != nil || w.live[statInterval] != "10" {
			t.Errorf("TakeBack() = %v, the value is %q", err, w.live[statInterval])
		}
	})
}

// TestATrialThatFailsKeepsValues: a host that has started with its old line, because a trial did not come up, has the values of the plan that
// is in force still.
func TestATrialThatFailsKeepsValues(t *testing.T) {
	w := prepared(t, trading())
	w.hangs = true
	w.enact(otherTrading())
	if w.live[statInterval] != "10" {
		t.Errorf("the value is %q after the trial has failed", w.live[statInterval])
	}
	boots := w.boots
	w.enact(append(trading()[:4:4], trading()[5]))
	if w.boots != boots || w.live[statInterval] != "1" {
		t.Errorf("%d boots, the value is %q", w.boots-boots, w.live[statInterval])
	}
}

// TestNotesOfAGuardBefore: a file of what is in force without notes of this boot is read, and the next start of the host adds them.
func TestNotesOfAGuardBefore(t *testing.T) {
	w := newWorld(t)
	w.enact(withInterval("10"))
	w.reboot(true)
	w.live[statInterval] = "10"
	older := w.seen[inForce]
	records, _, err := journal.Decode(older.Content)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"boot-1 1 10"}
	if diff := cmp.Diff(want, notes(records)); diff != "" {
		t.Fatalf("notes before (-want +got):\n%s", diff)
	}
	w.startsAgain(t)
	if records, _, err = journal.Decode(w.seen[inForce].Content); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"boot-3 1 10"}, notes(records)); diff != "" {
		t.Errorf("notes after another boot (-want +got):\n%s", diff)
	}
	steps := w.steps
	w.boot(t)
	if w.steps != steps {
		t.Errorf("another look in the same boot has written again, in %d steps", w.steps-steps)
	}
	w.enact(withoutInterval())
	if records, _, err = journal.Decode(w.seen[inForce].Content); err != nil || len(notes(records)) > 0 {
		t.Errorf("notes of what has gone: %q, %v", notes(records), err)
	}
}

// TestDirtyPagesInOtherUnits: a host that has its limit in bytes has it again afterwards, whichever way.
func TestDirtyPagesInOtherUnits(t *testing.T) {
	const ratio, limit = "/proc/sys/vm/dirty_ratio", "/proc/sys/vm/dirty_bytes"
	host := func(t *testing.T) *world {
		w := newWorld(t)
		w.firmware = map[string]string{statInterval: "1", ratio: "0", limit: "123"}
		w.live = maps.Clone(w.firmware)
		return w
	}
	with := withInterval("10", operation.SetSysctl("vm.dirty_ratio", "10"))
	is := func(t *testing.T, w *world, when, wantRatio, wantLimit string) {
		t.Helper()
		if w.live[ratio] != wantRatio || w.live[limit] != wantLimit {
			t.Errorf("%s, the limits are %s %% and %s bytes, want %s and %s", when, w.live[ratio], w.live[limit], wantRatio, wantLimit)
		}
	}
	for name, meanwhile := range map[string]func(*testing.T, *world){"at once": nil, "after a boot": boot, "with another plan": func(t *testing.T, w *world) {
		boot(t, w)
		w.enact(append(with[:2:2], operation.SetSysctl("vm.dirty_ratio", "20")))
		w.enact(with)
	}} {
		t.Run(name, func(t *testing.T) {
			w := host(t)
			w.enact(with)
			if meanwhile != nil {
				meanwhile(t, w)
			}
			is(t, w, "in force", "10", "0")
			w.enact(withInterval("10"))
			is(t, w, "without the setting", "0", "123")
		})
	}
	for name, steps := range map[string][2][]operation.Operation{"coming": {nil, with}, "going": {with, withInterval("10")}} {
		t.Run(name+" is taken back", func(t *testing.T) {
			w := host(t)
			if len(steps[0]) > 0 {
				w.enact(steps[0])
				boot(t, w)
			}
			before := maps.Clone(w.live)
			if next, err := w.guard().Apply(t.Context(), wanted(steps[1])); next != guard.Verify || err != nil {
				t.Fatalf("Apply() = %v, %v", next, err)
			}
			if _, err := w.guard().TakeBack(t.Context(), instruction.ReasonNotVerified, "x"); err != nil {
				t.Fatal(err)
			}
			is(t, w, "taken back", before[ratio], before[limit])
		})
	}
}

// notes are what records say of values of kernels.
func notes(records []journal.Record) []string {
	var all []string
	for _, r := range records {
		if c := r.Change; c != nil && c.Role == journal.Live {
			all = append(all, strings.Join([]string{c.BootID, string(c.Before.Content), string(c.After.Content)}, " "))
		}
	}
	return all
}

// TestPowerCutsWhileValuesAreNoted cuts the power at each step of an ordinary start: the next one finds everything as it was, and the value
// goes back to the host's afterwards.
func TestPowerCutsWhileValuesAreNoted(t *testing.T) {
	for _, survives := range []survival{nothingUnsynced, everything, firstHalf} {
		for cut := 1; ; cut++ {
			w := newWorld(t)
			w.enact(withInterval("10"))
			before := w.manifest()
			w.survival = survives
			w.reboot(true)
			w.cut = w.steps + cut
			isCut, err := w.until(func() error { _, err := w.guard().Boot(t.Context()); return err })
			if err != nil {
				t.Fatal(err)
			}
			if !isCut {
				if cut == 1 {
					t.Fatal("nothing is written at a start")
				}
				break
			}
			w.reboot(false)
			w.boot(t)
			if diff := cmp.Diff(before, w.manifest()); diff != "" || w.live[statInterval] != "10" {
				t.Fatalf("cut at %d: the value is %q, files (-before +after):\n%s", cut, w.live[statInterval], diff)
			}
			boots := w.boots
			w.enact(withoutInterval())
			if w.boots != boots || w.live[statInterval] != "1" {
				t.Fatalf("cut at %d: %d boots, the value is %q", cut, w.boots-boots, w.live[statInterval])
			}
		}
	}
}
