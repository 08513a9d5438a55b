// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/grub"
)

// trading are operations of each sort: a new file, one that replaces another's, one in a new folder, an enabled unit, a
// value of the kernel, arguments.
func trading() []operation.Operation {
	return []operation.Operation{
		operation.PutFile("/etc/sysctl.d/99-lowlatency-rps.conf", 0o644, "net.core.rps_default_mask = 3\n"),
		operation.PutFile("/etc/modprobe.d/lowlatency-trading.conf", 0o644, "new"),
		operation.PutFile("/etc/lowlatency/irqbalance.env", 0o644, "x"),
		operation.PutUnit("lowlatency-hugepages.service", "[Install]\nWantedBy=multi-user.target\n", operation.Enabled),
		operation.SetSysctl("vm.stat_interval", "10"),
		operation.AddKernelArguments("nohz=on", "isolcpus=2-7"),
	}
}

// otherTrading differs in each of them.
func otherTrading() []operation.Operation {
	return []operation.Operation{
		operation.PutFile("/etc/modprobe.d/lowlatency-trading.conf", 0o644, "newer"),
		operation.PutUnit("lowlatency-hugepages.service", "[Install]\nWantedBy=basic.target\n", operation.Enabled),
		operation.PutDropIn("irqbalance.service", "90-lowlatency.conf", "[Service]\n"),
		operation.AddKernelArguments("nohz=on", "isolcpus=4-7"),
	}
}

func wanted(operations []operation.Operation) guard.Wanted {
	return guard.Wanted{Operations: operations, Plan: []byte(`{}`), DeadlineSeconds: 600}
}

// settle goes on as a host does after a power cut, until nothing is left to do. It fails when the host boots again and again.
func (w *world) settle(next guard.Next, cut bool) {
	w.t.Helper()
	for range 6 {
		if cut || next == guard.Reboot {
			w.reboot(!cut)
			var err error
			cut, err = w.until(func() error { next, err = w.guard().Boot(context.Background()); return err })
			if err != nil {
				w.t.Fatalf("after boot %d: %v", w.boots, err)
			}
			continue
		}
		if next != guard.Verify {
			return
		}
		var err error
		cut, err = w.until(func() error { return w.guard().Keep(context.Background()) })
		if err != nil {
			w.t.Fatalf("keeping: %v", err)
		}
		next = guard.Nothing
	}
	w.t.Fatalf("the host boots again and again: %d times", w.boots)
}

// enact applies operations without a power cut.
func (w *world) enact(operations []operation.Operation) {
	w.t.Helper()
	boots := w.boots
	next, err := w.guard().Apply(context.Background(), wanted(operations))
	if err != nil {
		w.t.Fatal(err)
	}
	w.settle(next, false)
	if w.kubelet != nil && w.boots > boots {
		w.kubelet.Start()
	}
}

func TestApplyAndRemove(t *testing.T) {
	w := newWorld(t)
	before := w.manifest()
	w.enact(trading())
	if got := grub.LineOf(string(w.seen["/boot/grub/grub.cfg"].Content)); !strings.HasSuffix(got, strings.Join(operation.Arguments(trading()), " ")) {
		t.Errorf("the permanent line is %q", got)
	}
	if w.boots != 2 || w.live["/proc/sys/vm/stat_interval"] != "10" {
		t.Errorf("%d boots, values %v", w.boots, w.live)
	}
	w.enact(otherTrading())
	if w.boots != 3 {
		t.Errorf("%d boots", w.boots)
	}
	w.enact(nil)
	if diff := cmp.Diff(before, w.manifest()); diff != "" {
		t.Errorf("the host before and after (-before +after):\n%s", diff)
	}
	if w.boots != 4 || w.seen[guard.StateFolder+"/in-force"].Type != "" || w.seen[guard.StateFolder+"/journal"].Type != "" {
		t.Errorf("%d boots; the guard remembers %v", w.boots, w.seen[guard.StateFolder+"/in-force"])
	}
}

// TestPowerCuts cuts the power at every step, with each part of a record and each survival of what was not synced, of a
// first plan, of a changed one and of the removal: the host ends as it was or as it is to be, in every file.
func TestPowerCuts(t *testing.T) {
	t.Run("GRUB", func(t *testing.T) { cutEverywhere(t, newWorld, trading(), otherTrading()) })
	t.Run("GRUB with an entry for each kernel", func(t *testing.T) { cutEverywhere(t, newEntriesWorld, trading(), otherTrading()) })
	t.Run("systemd-boot", func(t *testing.T) { cutEverywhere(t, newSystemdBootWorld, trading(), otherTrading()) })
	t.Run("GRUB that clears nothing", func(t *testing.T) {
		cutEverywhere(t, newStuckWorld, byHand(trading()), byHand(otherTrading()))
	})
}

func cutEverywhere(t *testing.T, newHost func(*testing.T) *world, first, other []operation.Operation) {
	t.Helper()
	type change struct {
		name     string
		from, to []operation.Operation
	}
	for _, c := range []change{{"first", nil, first}, {"changed", first, other}, {"removed", first, nil}} {
		t.Run(c.name, func(t *testing.T) {
			before := newHost(t).with(c.from)
			after := newHost(t).with(c.from)
			steps := after.steps
			after.enact(c.to)
			want := map[string]string{fmt.Sprint(before.manifest()): "reverted", fmt.Sprint(after.manifest()): "enacted"}
			counts := map[string]int{}
			for cut := steps + 1; cut <= after.steps; cut++ {
				for _, part := range after.parts(cut) {
					for _, survives := range []survival{nothingUnsynced, everything, firstHalf} {
						w := before.again(t)
						w.cut, w.part, w.survival = cut, part, survives
						w.attempt(c.to)
						got := want[fmt.Sprint(w.manifest())]
						if got == "" {
							t.Fatalf("cut at step %d of %d, part %d, survival %d: the host is neither as before nor as planned\n%s", cut, after.steps, part, survives,
								cmp.Diff(before.manifest(), w.manifest()))
						}
						w.checkRunning(got, c.from, c.to)
						w.checkMemory(got, c.from, c.to)
						counts[got]++
					}
				}
			}
			t.Log(counts)
			if counts["reverted"] == 0 || counts["enacted"] == 0 {
				t.Errorf("outcomes %v: some cuts must end in each", counts)
			}
		})
	}
}

// prepared is a host on which operations are in force.
func prepared(t *testing.T, operations []operation.Operation) *world {
	t.Helper()
	return newWorld(t).with(operations)
}

// with is the host once operations are in force on it.
func (w *world) with(operations []operation.Operation) *world {
	w.t.Helper()
	if operations != nil {
		w.enact(operations)
	}
	return w
}

// parts are how many bytes of what is appended at a step a power cut may leave; one where nothing is appended.
func (w *world) parts(step int) []int {
	length := w.appended[step]
	if length == 0 {
		return []int{0}
	}
	return []int{0, 1, length / 2, length - 1, length}
}

// again is the same host once more.
func (w *world) again(t *testing.T) *world {
	t.Helper()
	other := *w
	other.t, other.seen, other.kept, other.live = t, maps.Clone(w.seen), maps.Clone(w.kept), maps.Clone(w.live)
	other.unsynced, other.appended = slices.Clone(w.unsynced), map[int]int{}
	return &other
}

// attempt applies operations until the power is cut, and lets the host settle.
func (w *world) attempt(operations []operation.Operation) {
	w.t.Helper()
	var next guard.Next
	cut, err := w.until(func() (err error) {
		next, err = w.guard().Apply(context.Background(), wanted(operations))
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.settle(next, cut)
}

// checkRunning compares the kernel that runs with the files.
func (w *world) checkRunning(outcome string, from, to []operation.Operation) {
	w.t.Helper()
	operations := from
	if outcome == "enacted" {
		operations = to
	}
	line := strings.Fields(string(w.seen["/proc/cmdline"].Content))
	if got := operation.MarkerOf(line); got != operation.MarkerOf(operation.Arguments(operations)) {
		w.t.Fatalf("cut at %d: the host is %s, and the kernel's line is %q", w.cut, outcome, line)
	}
	if next, err := w.guard().Boot(context.Background()); err != nil || next != guard.Nothing {
		w.t.Fatalf("the host is %s, and something is left to do: %v, %v", outcome, next, err)
	}
	for name := range w.seen {
		if strings.Contains(name, "lowlatency-next") {
			w.t.Fatalf("the host is %s, and %s is left", outcome, name)
		}
	}
}

// checkMemory compares what the guard remembers to be in force with what is.
func (w *world) checkMemory(outcome string, from, to []operation.Operation) {
	w.t.Helper()
	isInForce := outcome == "enacted" && to != nil || outcome == "reverted" && from != nil
	if remembers := w.seen[guard.StateFolder+"/in-force"].Type != hostfile.Absent; remembers != isInForce {
		w.t.Fatalf("cut at %d: the host is %s, and that the guard remembers what is in force is %v", w.cut, outcome, remembers)
	}
	if outcome == "enacted" && w.seen[guard.StateFolder+"/journal"].Type != hostfile.Absent {
		w.t.Fatalf("cut at %d: the host is enacted, and the guard still has a journal", w.cut)
	}
}

// TestWhatAnOlderGuardHasLeft: nothing is in force, and a file says so.
func TestWhatAnOlderGuardHasLeft(t *testing.T) {
	w := newWorld(t)
	left := []byte(nil)
	for _, record := range []journal.Record{{Begin: &journal.Begin{Number: 2, Hash: operation.Hash(nil), BootID: "boot-1"}}, {Stage: &journal.Reached{Stage: journal.InForce, BootID: "boot-1"}}} {
		line, err := journal.Encode(record)
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, line...)
	}
	for _, folder := range []string{"/var/lib/lowlatency", guard.StateFolder} {
		w.seen[folder] = hostfile.NewFolder()
	}
	w.seen[guard.StateFolder+"/in-force"] = hostfile.File(string(left), 0o600)
	if unused, err := w.guard().Unused(); !unused || err != nil {
		t.Errorf("Unused() = %v, %v", unused, err)
	}
	if err := w.guard().Forget(); err != nil || w.seen[guard.StateFolder].Type != hostfile.Absent {
		t.Errorf("Forget() = %v, and %s is %v", err, guard.StateFolder, w.seen[guard.StateFolder])
	}
}

// TestSecondPowerCut cuts the power again while the host recovers from the first cut.
func TestSecondPowerCut(t *testing.T) {
	before := prepared(t, trading())
	after := prepared(t, trading())
	steps := after.steps
	after.enact(otherTrading())
	ends := []string{fmt.Sprint(before.manifest()), fmt.Sprint(after.manifest())}
	for first := steps + 1; first <= after.steps; first += 3 {
		for second := 1; second <= 40; second += 2 {
			w := before.again(t)
			w.cut, w.survival = first, firstHalf
			w.attemptWithSecondCut(otherTrading(), second)
			if !slices.Contains(ends, fmt.Sprint(w.manifest())) {
				t.Fatalf("cuts at step %d and %d steps later: the host is neither as before nor as planned\n%s", first, second,
					cmp.Diff(before.manifest(), w.manifest()))
			}
		}
	}
}

func (w *world) attemptWithSecondCut(operations []operation.Operation, second int) {
	w.t.Helper()
	var next guard.Next
	cut, err := w.until(func() (err error) {
		next, err = w.guard().Apply(context.Background(), wanted(operations))
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if cut {
		w.reboot(false)
		w.cut = w.steps + second
		cut, err = w.until(func() (err error) { next, err = w.guard().Boot(context.Background()); return err })
		if err != nil {
			w.t.Fatal(err)
		}
	}
	w.settle(next, cut)
}

func TestTrialThatDoesNotComeUp(t *testing.T) {
	w := newWorld(t)
	before := w.manifest()
	w.hangs = true
	w.enact(trading())
	if diff := cmp.Diff(before, w.manifest()); diff != "" {
		t.Errorf("the host before and after (-before +after):\n%s", diff)
	}
	if w.boots != 2 {
		t.Errorf("%d boots", w.boots)
	}
}

// TestReplacedFilesKeepTheirLabels: who may read a file by its label still may.
func TestReplacedFilesKeepTheirLabels(t *testing.T) {
	const replaced = "/etc/modprobe.d/lowlatency-trading.conf"
	w := prepared(t, trading())
	if file := w.seen[replaced]; file.Label != "etc_t" || string(file.Content) != "new" {
		t.Errorf("in force: %+v", file)
	}
	w.enact(nil)
	if file := w.seen[replaced]; file.Label != "etc_t" || string(file.Content) != "old" {
		t.Errorf("given back: %+v", file)
	}
}

func TestForeignChangesStay(t *testing.T) {
	const ours = "/etc/modprobe.d/lowlatency-trading.conf"
	w := prepared(t, trading())
	w.seen[ours] = hostfile.File("somebody else's", 0o644)
	w.kept[ours] = w.seen[ours]
	before := w.manifest()
	_, err := w.guard().Apply(context.Background(), wanted(otherTrading()))
	var foreign *guard.ForeignError
	if !errors.As(err, &foreign) || !strings.Contains(err.Error(), ours+" has another content than the guard has written") {
		t.Errorf("Apply() = %v", err)
	}
	if diff := cmp.Diff(before, w.manifest()); diff != "" {
		t.Errorf("something was written (-before +after):\n%s", diff)
	}
	if next, err := w.guard().Apply(context.Background(), wanted(nil)); next != guard.Reboot || err != nil {
		t.Fatalf("Apply() = %v, %v", next, err)
	}
	w.listed(t, "during the removal", ours+" has another content than the guard has written")
	w.settle(guard.Reboot, false)
	if got := string(w.seen[ours].Content); got != "somebody else's" {
		t.Errorf("the removal has left %q", got)
	}
	if file := w.seen["/etc/sysctl.d/99-lowlatency-rps.conf"]; file.Type != hostfile.Absent {
		t.Error("the removal has left our own file")
	}
}

// undone is a host on which a plan is in force, and somebody has made a path what it was before.
func undone(t *testing.T, name string) *world {
	t.Helper()
	w := prepared(t, trading())
	state, had := newWorld(t).seen[name]
	for _, files := range []map[string]hostfile.State{w.seen, w.kept} {
		delete(files, name)
		if had {
			files[name] = state
		}
	}
	return w
}

// TestWhatOthersHaveUndone: a file that somebody has removed, or set back to what was there before us, is somebody's change as any other.
func TestWhatOthersHaveUndone(t *testing.T) {
	const link = "/etc/systemd/system/multi-user.target.wants/lowlatency-hugepages.service"
	cases := map[string]struct {
		undone string
		next   []operation.Operation
		want   string
	}{
		"set back, and in the next plan":      {replacedFile, otherTrading(), replacedFile + " is a file of 3 bytes with mode 0640, owner 3:4, and the guard has made it"},
		"removed, and the same plan":          {newFile, trading(), newFile + " is absent, and the guard has made it a file of"},
		"a link removed, and the same plan":   {link, trading(), link + " is absent, and the guard has made it a link to"},
		"the file with the arguments removed": {grub.ArgumentsFile, otherTrading(), grub.ArgumentsFile + " is absent"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := undone(t, tc.undone)
			before := w.manifest()
			next, err := w.guard().Apply(t.Context(), wanted(tc.next))
			var foreign *guard.ForeignError
			if !errors.As(err, &foreign) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Apply() = %v, %v, want %q", next, err, tc.want)
			}
			w.asBefore(t, before, 2)
		})
	}
}

// TestWhatOthersHaveUndoneAlready: a path to which nothing is to be written any more is as it is to be.
func TestWhatOthersHaveUndoneAlready(t *testing.T) {
	cases := map[string]struct {
		undone string
		next   []operation.Operation
	}{
		"removed, and in no next plan":     {newFile, otherTrading()},
		"the arguments' file, and no next": {grub.ArgumentsFile, trading()[:2]},
		"removed, and given back":          {newFile, nil},
		"set back, and given back":         {replacedFile, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := undone(t, tc.undone)
			next, err := w.guard().Apply(t.Context(), wanted(tc.next))
			if err != nil {
				t.Fatal(err)
			}
			if status, err := w.guard().Status(); err != nil || len(status.Differences) > 0 {
				t.Errorf("Status() = %+v, %v", status, err)
			}
			w.settle(next, false)
			w.enact(nil)
			if diff := cmp.Diff(newWorld(t).manifest(), w.manifest()); diff != "" {
				t.Errorf("given back (-before +after):\n%s", diff)
			}
		})
	}
}

func TestWhatWasTakenBackIsNotTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.hangs = true
	w.enact(trading())
	if _, err := w.guard().Apply(context.Background(), wanted(trading())); !errors.Is(err, guard.ErrTried) {
		t.Errorf("Apply() = %v", err)
	}
	w.hangs = false
	again := wanted(trading())
	again.Again = true
	next, err := w.guard().Apply(context.Background(), again)
	if err != nil {
		t.Fatal(err)
	}
	w.settle(next, false)
	if status, err := w.guard().Status(); err != nil || status.InForce != operation.Hash(trading()) || len(status.Missing) > 0 {
		t.Errorf("Status() = %+v, %v", status, err)
	}
}

func TestLiveChangesNeedNoReboot(t *testing.T) {
	w := prepared(t, trading())
	live := trading()
	live[4] = operation.SetSysctl("vm.stat_interval", "20")
	live[1] = operation.PutFile("/etc/modprobe.d/lowlatency-trading.conf", 0o644, "newer")
	boots := w.boots
	w.enact(live)
	if w.boots != boots || w.live["/proc/sys/vm/stat_interval"] != "20" {
		t.Errorf("%d boots, values %v", w.boots-boots, w.live)
	}
}

// TestAValueThatCannotBeSetBack keeps no file from being put back, and is named.
func TestAValueThatCannotBeSetBack(t *testing.T) {
	w := newWorld(t)
	before := w.manifest()
	live := []operation.Operation{trading()[1], operation.SetSysctl("vm.stat_interval", "10")}
	if next, err := w.guard().Apply(context.Background(), wanted(live)); next != guard.Verify || err != nil {
		t.Fatalf("Apply() = %v, %v", next, err)
	}
	w.stuck = true
	if next, err := w.guard().TakeBack(context.Background(), instruction.ReasonNotVerified, "cpu.isolated has failed"); next != guard.Nothing || err != nil {
		t.Fatalf("TakeBack() = %v, %v", next, err)
	}
	if diff := cmp.Diff(before, w.manifest()); diff != "" {
		t.Errorf("the host before and after (-before +after):\n%s", diff)
	}
	want := []string{`/proc/sys/vm/stat_interval could not be set back to "1": input/output error`}
	if status, err := w.guard().Status(); err != nil || !cmp.Equal(want, status.Differences) {
		t.Errorf("Status() = %+v, %v", status, err)
	}
}

func TestATrialThatIsNotVerified(t *testing.T) {
	w := newWorld(t)
	before := w.manifest()
	if next, err := w.guard().Apply(context.Background(), wanted(trading())); next != guard.Reboot || err != nil {
		t.Fatalf("Apply() = %v, %v", next, err)
	}
	w.reboot(true)
	if next, err := w.guard().Boot(context.Background()); next != guard.Verify || err != nil {
		t.Fatalf("Boot() = %v, %v", next, err)
	}
	next, err := w.guard().TakeBack(context.Background(), instruction.ReasonNotVerified, "cpu.isolated has failed")
	if next != guard.Reboot || err != nil {
		t.Fatalf("TakeBack() = %v, %v", next, err)
	}
	w.settle(next, false)
	if diff := cmp.Diff(before, w.manifest()); diff != "" {
		t.Errorf("the host before and after (-before +after):\n%s", diff)
	}
	if status, err := w.guard().Status(); err != nil || status.Reason != "cpu.isolated has failed" || status.InForce != "" {
		t.Errorf("Status() = %+v, %v", status, err)
	}
}

// TestBrokenTools: the boot loader's tool fails while the verified arguments are made permanent.
func TestBrokenTools(t *testing.T) {
	w := newWorld(t)
	before := w.manifest()
	if _, err := w.guard().Apply(context.Background(), wanted(trading())); err != nil {
		t.Fatal(err)
	}
	w.reboot(true)
	w.broken = errors.New("no space left")
	if err := w.guard().Keep(context.Background()); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Fatalf("Keep() = %v", err)
	}
	w.settle(guard.Reboot, false)
	if diff := cmp.Diff(before, w.manifest()); diff != "" {
		t.Errorf("the host before and after (-before +after):\n%s", diff)
	}
}

// TestFullDisk has room for fewer and fewer records: nothing of the change stays, and the host takes the next one when there is room.
func TestFullDisk(t *testing.T) {
	after := newWorld(t)
	if _, err := after.guard().Apply(context.Background(), wanted(trading())); err != nil {
		t.Fatal(err)
	}
	for full := 1; full <= after.steps; full++ {
		w := newWorld(t)
		before := w.manifest()
		w.full, w.part = full, 7
		next, err := w.guard().Apply(context.Background(), wanted(trading()))
		if err == nil {
			// The last record was written before.
			continue
		}
		if next != guard.Nothing || !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("full at step %d: %v, %v", full, next, err)
		}
		if diff := cmp.Diff(before, w.manifest()); diff != "" {
			t.Fatalf("full at step %d (-before +after):\n%s", full, diff)
		}
		w.full = 0
		again := wanted(trading())
		again.Again = true
		next, err = w.guard().Apply(context.Background(), again)
		if err != nil {
			t.Fatalf("full at step %d, and then with room: %v", full, err)
		}
		w.settle(next, false)
		if status, err := w.guard().Status(); err != nil || status.InForce != operation.Hash(trading()) {
			t.Fatalf("full at step %d, and then with room: %+v, %v", full, status, err)
		}
	}
}

// TestKernelInstalledMeanwhile: grub.cfg is made again by somebody else while a plan is in force.
func TestKernelInstalledMeanwhile(t *testing.T) {
	w := prepared(t, trading())
	config := w.seen["/boot/grub/grub.cfg"]
	config.Content = []byte(strings.ReplaceAll(string(config.Content), "6.1", "6.2"))
	w.seen["/boot/grub/grub.cfg"], w.kept["/boot/grub/grub.cfg"] = config, config
	w.enact(nil)
	if got := grub.LineOf(string(w.seen["/boot/grub/grub.cfg"].Content)); strings.Contains(got, "lowlatency") {
		t.Errorf("the permanent line is %q", got)
	}
}

// TestWordsOfOthers: where others have put what would become permanent together with ours, nothing is written, and no reboot happens.
func TestWordsOfOthers(t *testing.T) {
	const other = grub.EntriesFolder + "/5f1e2d3c4b5a69788796a5b4c3d2e1f0-5.14.0-427.42.1.el9_4.x86_64.conf"
	cases := map[string]struct {
		host             *world
		file, text, want string
	}{
		"GRUB, before update-grub":     {newWorld(t), grub.DefaultsFile, "GRUB_CMDLINE_LINUX_DEFAULT=\"isolcpus=4-7\"\n", "already has isolcpus=4-7"},
		"GRUB, any word":               {newWorld(t), grub.DefaultsFile, "GRUB_CMDLINE_LINUX_DEFAULT=\"nosmt\"\n", "with nosmt, and grub.cfg has it otherwise"},
		"entries, for kernels to come": {newEntriesWorld(t), "/etc/kernel/cmdline", baseLine + " isolcpus=4-7\n", "/etc/kernel/cmdline: the kernel's command line already has isolcpus=4-7"},
		"entries, another one":         {newEntriesWorld(t), other, "title a\nlinux /b\noptions isolcpus=4-7\n", other + ": the kernel's command line already has isolcpus=4-7"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := tc.host
			file := w.seen[tc.file]
			file.Content = []byte(tc.text)
			w.seen[tc.file], w.kept[tc.file] = file, file
			before := w.manifest()
			if next, err := w.guard().Apply(t.Context(), wanted(trading())); next != guard.Nothing || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Apply() = %v, %v, want %q", next, err, tc.want)
			}
			w.asBefore(t, before, 1)
		})
	}
}

// TestWordsThatComeDuringATrial are not kept with what was tried without them.
func TestWordsThatComeDuringATrial(t *testing.T) {
	w := newWorld(t)
	if next, err := w.guard().Apply(t.Context(), wanted(trading())); next != guard.Reboot || err != nil {
		t.Fatalf("Apply() = %v, %v", next, err)
	}
	w.reboot(true)
	w.seen[grub.DefaultsFile] = hostfile.File("GRUB_CMDLINE_LINUX_DEFAULT=\"isolcpus=4-7\"\n", 0o644)
	before := w.seen[grub.ConfigFile]
	if err := w.guard().Keep(t.Context()); err == nil || !strings.Contains(err.Error(), "with isolcpus=4-7, and grub.cfg has it otherwise") {
		t.Errorf("Keep() = %v", err)
	}
	if diff := cmp.Diff(before, w.seen[grub.ConfigFile]); diff != "" {
		t.Errorf("grub.cfg before and after (-before +after):\n%s", diff)
	}
}

// TestStateFilesOfTheKubelet: they are removed before the kubelet starts with the plan, and before it starts without.
func TestStateFilesOfTheKubelet(t *testing.T) {
	const state = "/var/lib/kubelet/cpu_manager_state"
	w := newWorld(t)
	kubeletWrites := func() {
		for _, files := range []map[string]hostfile.State{w.seen, w.kept} {
			files["/var/lib/kubelet"], files[state] = hostfile.NewFolder(), hostfile.File("{}", 0o600)
		}
	}
	kubeletWrites()
	before := w.manifest()
	w.enact([]operation.Operation{
		operation.PutKubeletDropIn("/var/lib/kubelet/kubelet.conf.d/90-lowlatency.conf", "cpuManagerPolicy: static\n"),
		operation.RemoveStateFile(state),
	})
	if w.boots != 2 || w.seen[state].Type != hostfile.Absent {
		t.Errorf("%d boots, and %s is %v", w.boots, state, w.seen[state])
	}
	kubeletWrites()
	w.enact(nil)
	if w.boots != 3 || w.seen[state].Type != hostfile.Absent {
		t.Errorf("%d boots, and %s is %v", w.boots, state, w.seen[state])
	}
	delete(before, state)
	if diff := cmp.Diff(before, w.manifest()); diff != "" {
		t.Errorf("the host before and after (-before +after):\n%s", diff)
	}
}

// TestPowerCutsWhileTheGuardLeaves: as long as anything but its program and the unit of its start is on the host, the next start
// goes on with the removal.
func TestPowerCutsWhileTheGuardLeaves(t *testing.T) {
	before := newWatched(t).world
	if err := before.guard().Install(t.Context(), []byte("program")); err != nil {
		t.Fatal(err)
	}
	before.reboot(true)
	after := before.again(t)
	if err := after.guard().Uninstall(t.Context()); err != nil {
		t.Fatal(err)
	}
	const units = "/etc/systemd/system/"
	for cut := before.steps + 1; cut <= after.steps; cut++ {
		w := before.again(t)
		w.cut = cut
		if wasCut, err := w.until(func() error { return w.guard().Uninstall(t.Context()) }); !wasCut || err != nil {
			t.Fatalf("cut at step %d of %d: %v, %v", cut, after.steps, wasCut, err)
		}
		w.reboot(false)
		left := slices.DeleteFunc(slices.Collect(maps.Keys(w.seen)), func(name string) bool {
			return !strings.Contains(name, "lowlatency-guard") || name == guard.Program || name == units+"lowlatency-guard.service"
		})
		if len(left) > 0 && w.seen[units+"multi-user.target.wants/lowlatency-guard.service"].Type == hostfile.Absent {
			t.Fatalf("cut at step %d of %d: nothing removes %q at the next start", cut, after.steps, left)
		}
	}
}

// TestTheFolderOfAnAgentStays: a pod of a cluster looks into it through a mount, also when the removal is gone through twice.
func TestTheFolderOfAnAgentStays(t *testing.T) {
	w := instructed(t)
	for _, files := range []map[string]hostfile.State{w.seen, w.kept} {
		files["/var/lib/kubelet"] = hostfile.NewFolder()
	}
	for range 2 {
		if err := w.guard().Forget(); err != nil {
			t.Fatal(err)
		}
	}
	if w.seen[guard.StateFolder].Type != hostfile.Absent || w.seen["/var/lib/lowlatency"].Type != hostfile.Folder {
		t.Errorf("%s is %v, and /var/lib/lowlatency %v", guard.StateFolder, w.seen[guard.StateFolder], w.seen["/var/lib/lowlatency"])
	}
}
