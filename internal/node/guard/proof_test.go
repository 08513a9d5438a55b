// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard_test

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/grub"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/systemdboot"
)

const (
	replacedFile = "/etc/modprobe.d/lowlatency-trading.conf"
	newFile      = "/etc/sysctl.d/99-lowlatency-rps.conf"
	grubConfig   = "/boot/grub/grub.cfg"
	grubFile     = "/etc/default/grub.d/zz-lowlatency.cfg"

	otherContent = replacedFile + " has another content than the guard has written"
)

// others change a file, which is on the disk at once.
func (w *world) others(name string, change func(s *hostfile.State)) {
	s := w.seen[name]
	change(&s)
	for _, files := range []map[string]hostfile.State{w.seen, w.kept} {
		files[name] = s
		if s.Type == hostfile.Absent {
			delete(files, name)
		}
	}
}

func written(content string) func(*hostfile.State) {
	return func(s *hostfile.State) { *s = hostfile.File(content, 0o644) }
}

func added(content string) func(*hostfile.State) {
	return func(s *hostfile.State) { s.Content = append(slices.Clone(s.Content), content...) }
}

func removed(s *hostfile.State) { *s = hostfile.State{} }

// listed fails the test unless the report has exactly so many differences, each with a text.
func (w *world) listed(t *testing.T, when string, want ...string) {
	t.Helper()
	report, err := w.guard().Report()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(report.Differences, want, strings.Contains) {
		t.Errorf("%s, the report lists %q, want %q", when, report.Differences, want)
	}
}

// boot starts the guard's unit where nothing is to be done.
func (w *world) boot(t *testing.T) {
	t.Helper()
	if next, err := w.guard().Boot(t.Context()); next != guard.Nothing || err != nil {
		t.Fatalf("Boot() = %v, %v", next, err)
	}
}

// returned is a host of which others change something before it is given back.
type returned struct {
	newHost func(*testing.T) *world
	change  func(w *world)
	// early is what is known before the host is changed, and late what is found at the end besides.
	early, late []string
}

// returnedFiles are hosts with other files.
func returnedFiles() map[string]returned {
	return map[string]returned{
		"nothing": {},
		"a content": {
			change: func(w *world) { w.others(replacedFile, added("!")) }, early: []string{otherContent},
		},
		"a mode": {
			change: func(w *world) { w.others(newFile, func(s *hostfile.State) { s.Mode = 0o600 }) },
			early:  []string{newFile + " is a file of 30 bytes with mode 0600, owner 0:0, and the guard has made it a file of 30 bytes with mode 0644, owner 0:0"},
		},
		"an owner": {
			change: func(w *world) { w.others(newFile, func(s *hostfile.State) { s.UID = 7 }) }, early: []string{newFile + " is a file of 30 bytes with mode 0644, owner 7:0, and"},
		},
		"a link in the place of a file": {
			change: func(w *world) { w.others(newFile, func(s *hostfile.State) { *s = hostfile.LinkTo("/etc/other") }) }, early: []string{newFile + " is a link to /etc/other, and"},
		},
		"a unit": {
			change: func(w *world) { w.others("/etc/systemd/system/lowlatency-hugepages.service", written("[Unit]\n")) },
			early:  []string{"/etc/systemd/system/lowlatency-hugepages.service has another content"},
		},
		"a file that was removed, as it was before": {change: func(w *world) { w.others(newFile, removed) }},
		"a link of a unit that was removed": {
			change: func(w *world) {
				w.others("/etc/systemd/system/multi-user.target.wants/lowlatency-hugepages.service", removed)
			},
		},
		"a file that is as it was before already": {
			change: func(w *world) {
				w.others(replacedFile, func(s *hostfile.State) { *s = newWorld(w.t).seen[replacedFile] })
			},
		},
		"a file beside ours": {
			change: func(w *world) { w.others("/etc/lowlatency/theirs", written("x")) }, late: []string{"/etc/lowlatency holds files of others, so the folder stays"},
		},
	}
}

// returnedLines are hosts with something else that their boot loaders read.
func returnedLines() map[string]returned {
	entry := func(name string) string { return path.Join(grub.EntriesFolder, name) }
	arguments := strings.Join(operation.Arguments(trading()), " ")
	return map[string]returned{
		"the mode of what the boot loader reads": {
			change: func(w *world) { w.others(grubConfig, func(s *hostfile.State) { s.Mode = 0o600 }) }, late: []string{grubConfig + " is a file of"},
		},
		"a kernel that was installed": {
			change: func(w *world) {
				w.others(grubConfig, func(s *hostfile.State) { s.Content = []byte(strings.ReplaceAll(string(s.Content), "6.1", "6.2")) })
			},
		},
		"arguments of ours that somebody has copied": {
			change: func(w *world) { w.others("/etc/default/grub", added("GRUB_CMDLINE_LINUX_RECOVERY='"+arguments+"'\n")) },
			late:   []string{"/etc/default/grub has kernel arguments that the guard had added"},
		},
		"a line beside our arguments": {
			change: func(w *world) { w.others(grubFile, added("GRUB_TIMEOUT=1\n")) }, early: []string{grubFile + " has another content"},
			late: []string{path.Dir(grubFile) + " holds files of others, so the folder stays"},
		},
		"an entry for rescue that was made meanwhile": {
			newHost: newEntriesWorld, change: func(w *world) { w.others(entry("0-rescue-new.conf"), written("options "+arguments+"\n")) },
			late: []string{entry("0-rescue-new.conf") + " has kernel arguments that the guard had added"},
		},
		"an entry that a tool has made again": {
			newHost: newEntriesWorld, change: func(w *world) { w.others(entry(grub.DefaultID+".conf"), added("grub_class another\n")) },
		},
		"entries that are as before": {newHost: newEntriesWorld},
		"an entry for rescue of systemd-boot": {
			newHost: newSystemdBootWorld,
			change: func(w *world) {
				made := w.seen[systemdboot.Entries+"/"+kernelID+".conf"]
				w.others(systemdboot.Entries+"/rescue.conf", func(s *hostfile.State) { *s = made })
			},
			late: []string{systemdboot.Entries + "/rescue.conf has kernel arguments that the guard had added"},
		},
		"systemd-boot as before": {newHost: newSystemdBootWorld},
	}
}

// TestWhatIsNotAsBefore gives hosts back of which others have changed something: it stays, and exactly that is in the report, at first what
// was so before the removal, and before the guard forgets it all that was found.
func TestWhatIsNotAsBefore(t *testing.T) {
	cases := returnedFiles()
	maps.Copy(cases, returnedLines())
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.newHost == nil {
				tc.newHost = newWorld
			}
			w := tc.newHost(t)
			if err := w.guard().Pin(trusted(), nil); err != nil {
				t.Fatal(err)
			}
			w.settle(w.give(signed(t, enact(1, trading()))), false)
			if tc.change != nil {
				tc.change(w)
			}
			changed := w.manifest()
			w.givesBack(t, tc.early, slices.Concat(tc.early, tc.late))
			for _, difference := range slices.Concat(tc.early, tc.late) {
				name, _, _ := strings.Cut(difference, " ")
				w.keptWhole(t, name, changed[name])
			}
		})
	}
}

// keptWhole fails the test when what others have changed is not as they have left it: of what a tool makes, and of the file with our
// arguments, all but those.
func (w *world) keptWhole(t *testing.T, name string, want hostfile.State) {
	t.Helper()
	got := w.seen[name]
	switch name {
	case grubConfig:
		got.Content, want.Content = nil, nil
	case grubFile:
		want.Content = []byte("GRUB_TIMEOUT=1\n")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s is not as others have left it (-want +got):\n%s", name, diff)
	}
}

// givesBack carries a removal out, with what the report lists on the way.
func (w *world) givesBack(t *testing.T, early, late []string) {
	t.Helper()
	if next := w.give(signed(t, removeThird())); next != guard.Reboot {
		t.Fatalf("Take() = %v", next)
	}
	w.listed(t, "before the reboot", early...)
	w.reboot(true)
	if next, err := w.guard().Boot(t.Context()); next != guard.Verify || err != nil {
		t.Fatalf("Boot() = %v, %v", next, err)
	}
	w.listed(t, "while the host is verified", early...)
	if err := w.guard().MakePermanent(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.listed(t, "before it is forgotten", late...)
	w.isHeard(t, len(late) > 0)
	if err := w.guard().Complete(); err != nil {
		t.Fatal(err)
	}
	w.forgets(t)
}

func (w *world) isHeard(t *testing.T, want bool) {
	t.Helper()
	if got, err := w.guard().IsToBeHeard(); got != want || err != nil {
		t.Errorf("IsToBeHeard() = %v, %v, want %v", got, err, want)
	}
}

// forgets lets the guard forget a host that was given back.
func (w *world) forgets(t *testing.T) {
	t.Helper()
	w.isHeard(t, false)
	if err := w.guard().Forget(); err != nil || w.seen[guard.StateFolder].Type != hostfile.Absent {
		t.Errorf("Forget() = %v, and %s is %v", err, guard.StateFolder, w.seen[guard.StateFolder])
	}
}

// TestWhatIsNotAsBeforeWithoutAReboot: also values of the running kernel that others have set since.
func TestWhatIsNotAsBeforeWithoutAReboot(t *testing.T) {
	const value = "/proc/sys/vm/stat_interval"
	w := instructed(t)
	w.settle(w.give(signed(t, enact(1, []operation.Operation{trading()[1], operation.SetSysctl("vm.stat_interval", "10")}))), false)
	w.others(replacedFile, written("theirs"))
	if next := w.give(signed(t, removeThird())); next != guard.Verify {
		t.Fatalf("Take() = %v", next)
	}
	w.listed(t, "while the host is verified", otherContent)
	w.live[value] = "7"
	if err := w.guard().MakePermanent(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.listed(t, "before it is forgotten", otherContent, value+` is "7", and was "1" before`)
	// The guard is killed before it has completed that: its unit goes on.
	if next := w.take(); next != guard.Verify {
		t.Fatalf("Take() = %v", next)
	}
	if err := w.guard().Keep(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.forgets(t)
}

// TestRootIsToldAtOnce: a removal by hand waits for no agent.
func TestRootIsToldAtOnce(t *testing.T) {
	w := prepared(t, trading())
	w.others(replacedFile, written("theirs"))
	var said []string
	g := guard.New(w, w, func(sentence string) { said = append(said, sentence) })
	if next, err := g.Remove(t.Context()); next != guard.Reboot || err != nil {
		t.Fatalf("Remove() = %v, %v", next, err)
	}
	w.reboot(true)
	if next, err := g.Boot(t.Context()); next != guard.Verify || err != nil {
		t.Fatalf("Boot() = %v, %v", next, err)
	}
	if err := g.MakePermanent(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.isHeard(t, false)
	if diff := cmp.Diff([]string{"Left as it is: " + otherContent, "Not as before: " + otherContent}, said); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
}

// TestForeignChangesAtRest are in the report when the host has started, and when the guard has looked. They change nothing else.
func TestForeignChangesAtRest(t *testing.T) {
	lost := grubConfig + " has lost the kernel arguments that the guard has put there"
	withoutArguments := func(s *hostfile.State) { s.Content = []byte(grub.Config(baseLine)) }
	regenerated := func(s *hostfile.State) { s.Content = []byte(strings.ReplaceAll(string(s.Content), "6.1", "6.2")) }
	cases := map[string]struct {
		name   string
		change func(*hostfile.State)
		want   []string
	}{
		"a content":                 {replacedFile, written("theirs"), []string{otherContent}},
		"a file that was removed":   {newFile, removed, []string{newFile + " is absent, and the guard has made it a file of 30 bytes"}},
		"the arguments":             {grubConfig, withoutArguments, []string{lost}},
		"a kernel was installed":    {grubConfig, regenerated, nil},
		"a file that is nobody's":   {"/etc/sysctl.d/60-a.conf", written("b"), nil},
		"a file that was only read": {replacedFile, func(*hostfile.State) {}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := instructed(t)
			w.settle(w.give(signed(t, enact(1, trading()))), false)
			now := w.seen[tc.name]
			w.others(tc.name, tc.change)
			before, boots := w.manifest(), w.boots
			w.listed(t, "before anybody has looked")
			if next := w.take(); next != guard.Nothing {
				t.Fatalf("Take() = %v", next)
			}
			w.listed(t, "after a look", tc.want...)
			w.asBefore(t, before, boots)
			steps := w.steps
			w.boot(t)
			if w.steps != steps {
				t.Errorf("%d steps on the disk to note what is noted", w.steps-steps)
			}
			w.others(tc.name, func(s *hostfile.State) { *s = now })
			w.boot(t)
			w.listed(t, "when it is put back")
		})
	}
}

// TestForeignChangeDuringATrial: the plan before stays in force, and what others have written is there still.
func TestForeignChangeDuringATrial(t *testing.T) {
	w := prepared(t, trading())
	if next, err := w.guard().Apply(t.Context(), wanted(otherTrading())); next != guard.Reboot || err != nil {
		t.Fatalf("Apply() = %v, %v", next, err)
	}
	w.reboot(true)
	if next, err := w.guard().Boot(t.Context()); next != guard.Verify || err != nil {
		t.Fatalf("Boot() = %v, %v", next, err)
	}
	ours := w.seen[grubFile]
	w.others(grubFile, written("theirs"))
	theirs := w.seen[grubFile]
	err := w.guard().Keep(t.Context())
	if _, is := errors.AsType[*guard.ForeignError](err); !is {
		t.Errorf("Keep() = %v", err)
	}
	if got := w.seen[grubFile]; !got.Equal(theirs) {
		t.Errorf("%s is %q", grubFile, got.Content)
	}
	w.reboot(true)
	w.boot(t)
	w.listed(t, "after the trial", grubFile+" has another content than the guard has written")

	w.others(grubFile, func(s *hostfile.State) { *s = ours })
	w.boot(t)
	w.listed(t, "when it is put back")
}

// TestForeignChangesOfAPlanBefore say nothing of the next one.
func TestForeignChangesOfAPlanBefore(t *testing.T) {
	w := instructed(t)
	w.settle(w.give(signed(t, enact(1, trading()))), false)
	now := w.seen[replacedFile]
	w.others(replacedFile, written("theirs"))
	w.boot(t)
	w.listed(t, "at rest", otherContent)
	w.others(replacedFile, func(s *hostfile.State) { *s = now })
	w.settle(w.give(signed(t, enact(2, otherTrading()))), false)
	w.listed(t, "with another plan")
}

// TestPowerCutsWhileOthersChangesAreNoted: the next start notes them.
func TestPowerCutsWhileOthersChangesAreNoted(t *testing.T) {
	before := prepared(t, trading())
	ours := before.seen[replacedFile]
	before.others(replacedFile, written("theirs"))
	after := before.again(t)
	after.boot(t)
	if after.steps == before.steps {
		t.Fatal("nothing is written")
	}
	for cut := before.steps + 1; cut <= after.steps; cut++ {
		for _, survives := range []survival{nothingUnsynced, everything, firstHalf} {
			w := before.again(t)
			w.cut, w.survival = cut, survives
			wasCut, err := w.until(func() error { _, err := w.guard().Boot(context.Background()); return err })
			if !wasCut || err != nil {
				t.Fatalf("cut at step %d of %d: %v, %v", cut, after.steps, wasCut, err)
			}
			again := w.again(t)
			w.settle(guard.Nothing, true)
			w.listed(t, "after the cut", otherContent)
			w.checkRunning("enacted", nil, trading())
			again.others(replacedFile, func(s *hostfile.State) { *s = ours })
			again.settle(guard.Nothing, true)
			again.listed(t, "when it was put back at the cut")
			again.checkRunning("enacted", nil, trading())
			if diff := cmp.Diff(before.manifest(), w.manifest()); diff != "" {
				t.Fatalf("cut at step %d (-before +after):\n%s", cut, diff)
			}
		}
	}
}

// TestPowerCutsOfAHostThatIsNotAsBefore cuts the power at every step of its removal: what others have changed stays, and is reported as long
// as anything is in force.
func TestPowerCutsOfAHostThatIsNotAsBefore(t *testing.T) {
	before := prepared(t, trading())
	before.others(replacedFile, written("theirs"))
	before.others("/etc/lowlatency/theirs", written("x"))
	before.boot(t)
	after := before.again(t)
	after.enact(nil)
	ends := map[string]bool{}
	for cut := before.steps + 1; cut <= after.steps; cut++ {
		for _, survives := range []survival{nothingUnsynced, everything, firstHalf} {
			w := before.again(t)
			w.cut, w.survival = cut, survives
			w.attempt(nil)
			w.boot(t)
			report, err := w.guard().Report()
			if err != nil {
				t.Fatal(err)
			}
			isGone := cmp.Equal(after.manifest(), w.manifest())
			if !isGone && !cmp.Equal(before.manifest(), w.manifest()) {
				t.Fatalf("cut at step %d of %d: neither as before nor given back\n%s", cut, after.steps, cmp.Diff(after.manifest(), w.manifest()))
			}
			if isGone != (report.Phase != instruction.TakenBack && report.Phase != instruction.InForce) || !isGone && !slices.Equal(report.Differences, []string{otherContent}) {
				t.Fatalf("cut at step %d of %d: given back: %v, and the report is %+v", cut, after.steps, isGone, report)
			}
			ends[string(report.Phase)] = true
		}
	}
	if len(ends) < 2 {
		t.Errorf("the cuts do not show both ends: %v", ends)
	}
}
