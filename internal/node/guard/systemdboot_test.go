// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard_test

import (
	"maps"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/systemdboot"
)

const (
	fatMode  = 0o700
	fatLabel = "dosfs_t"
	kernelID = systemdboot.MachineID + "-6.1.0-41-amd64"
)

// newSystemdBootWorld is a host that systemd-boot starts. Its variables of the firmware are files.
func newSystemdBootWorld(t *testing.T) *world {
	t.Helper()
	files := map[string]hostfile.State{"/proc/1/mounts": hostfile.File("/dev/vda2 / ext4 rw 0 0\n/dev/vda1 /efi vfat rw 0 0\n", 0o444)}
	for name, content := range systemdboot.Files(baseLine) {
		files[name] = hostfile.File(content, 0o644)
		if strings.HasPrefix(name, systemdboot.Partition+"/") {
			files[name] = hostfile.State{Type: hostfile.Regular, Mode: fatMode, Label: fatLabel, Content: []byte(content)}
		}
	}
	return newWorldWith(t, startSystemdBoot, files)
}

// startSystemdBoot plays systemd-boot, which removes its variable before it starts anything, and counts the starts of an entry.
func startSystemdBoot(w *world) (line, trial string) {
	entries := map[string]string{}
	for name, state := range w.seen {
		if path.Dir(name) == systemdboot.Entries && strings.HasSuffix(name, ".conf") {
			entries[path.Base(name)] = string(state.Content)
		}
	}
	line, trial = systemdboot.Start(entries, string(w.seen[systemdboot.OneShot].Content))
	delete(w.seen, systemdboot.OneShot)
	return line, trial
}

func (w *world) kernelLine(id string) string {
	return systemdboot.LineOf(string(w.seen[systemdboot.Entries+"/"+id+".conf"].Content))
}

func TestApplyAndRemoveWithSystemdBoot(t *testing.T) {
	w := newSystemdBootWorld(t)
	before := w.manifest()
	w.enact(trading())
	if got := w.kernelLine(kernelID); !strings.HasSuffix(got, " "+strings.Join(operation.Arguments(trading()), " ")) {
		t.Errorf("the permanent line is %q", got)
	}
	w.enact(otherTrading())
	w.enact(nil)
	w.asBefore(t, before, 4)
}

func TestTrialOfSystemdBootThatDoesNotComeUp(t *testing.T) {
	w := newSystemdBootWorld(t)
	w.fails(t, trading(), otherTrading())
	if status, err := w.guard().Status(); err != nil || status.InForce != operation.Hash(otherTrading()) || len(status.Missing) > 0 {
		t.Errorf("Status() = %+v, %v", status, err)
	}
}

// TestEntryRenamedMeanwhile: an entry that is counted is renamed by systemd-boot at each start, and again when it counts as good. What
// was written to it goes wherever it is.
func TestEntryRenamedMeanwhile(t *testing.T) {
	w := newSystemdBootWorld(t)
	counted, good := systemdboot.Entries+"/"+systemdboot.MachineID+"-6.1.0-9-amd64+3.conf", systemdboot.Entries+"/"+systemdboot.MachineID+"-6.1.0-9-amd64.conf"
	rename := func(from, to string) {
		for _, files := range []map[string]hostfile.State{w.seen, w.kept} {
			files[to] = files[from]
			delete(files, from)
		}
	}
	before := w.manifest()
	rename(good, counted)
	w.enact(trading())
	if got := systemdboot.LineOf(string(w.seen[counted].Content)); !strings.Contains(got, "isolcpus=2-7") {
		t.Errorf("the line of the counted entry is %q", got)
	}
	rename(counted, good)
	w.enact(nil)
	if diff := cmp.Diff(before, w.manifest()); diff != "" {
		t.Errorf("the host before and after (-before +after):\n%s", diff)
	}
}

// TestKernelInstalledWithSystemdBoot: a kernel that comes while a plan is in force has its arguments, and loses them with the others.
func TestKernelInstalledWithSystemdBoot(t *testing.T) {
	w := newSystemdBootWorld(t)
	w.enact(trading())
	files := map[string]string{}
	systemdboot.Install(files, "6.1.0-50-amd64", strings.TrimSpace(string(w.seen["/etc/kernel/cmdline"].Content)))
	for name, content := range files {
		for _, on := range []map[string]hostfile.State{w.seen, w.kept} {
			on[name] = hostfile.State{Type: hostfile.Regular, Mode: fatMode, Label: fatLabel, Content: []byte(content)}
		}
	}
	w.reboot(true)
	if next, err := w.guard().Boot(t.Context()); next != guard.Nothing || err != nil {
		t.Fatalf("Boot() = %v, %v", next, err)
	}
	if status, err := w.guard().Status(); err != nil || len(status.Missing) > 0 {
		t.Errorf("Status() = %+v, %v", status, err)
	}
	w.enact(nil)
	for name, state := range maps.Clone(w.seen) {
		if strings.HasPrefix(name, systemdboot.Partition) && strings.Contains(string(state.Content), "lowlatency") {
			t.Errorf("%s still has arguments of ours:\n%s", name, state.Content)
		}
	}
	if got := systemdboot.LineOf(string(w.seen[systemdboot.Entries+"/"+systemdboot.MachineID+"-6.1.0-50-amd64.conf"].Content)); got == "" {
		t.Error("the new kernel's entry is gone")
	}
}
