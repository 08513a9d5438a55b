// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard_test

import (
	"maps"
	"path"
	"strings"
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/grub"
)

// newEntriesWorld is a host as RHEL 9 and its rebuilds set it up, with labels of SELinux.
func newEntriesWorld(t *testing.T) *world {
	t.Helper()
	files := map[string]hostfile.State{}
	for name, content := range grub.EntriesFiles(baseLine) {
		files[name] = hostfile.State{Type: hostfile.Regular, Mode: 0o600, Label: "boot_t", Content: []byte(content)}
	}
	files["/dev/vda2"] = hostfile.State{Type: hostfile.Other}
	return newWorldWith(t, startEntries, files)
}

func startEntries(w *world) (line, trial string) {
	entries := map[string]string{}
	for name, state := range w.seen {
		if id, found := strings.CutSuffix(path.Base(name), ".conf"); found && path.Dir(name) == grub.EntriesFolder {
			entries[id] = string(state.Content)
		}
	}
	environment := w.seen[grub.EntriesEnvironmentFile]
	line, trial, left := grub.StartEntries(entries, string(environment.Content))
	if left != string(environment.Content) {
		environment.Content = []byte(left)
		w.seen[grub.EntriesEnvironmentFile] = environment
	}
	return line, trial
}

// TestApplyAndRemoveWithEntries: each kernel gets the arguments but the one for rescue, and no byte of any file differs afterwards.
func TestApplyAndRemoveWithEntries(t *testing.T) {
	w := newEntriesWorld(t)
	before := w.manifest()
	w.enact(trading())
	for name, state := range maps.Clone(w.seen) {
		if path.Dir(name) != grub.EntriesFolder {
			continue
		}
		if has := strings.Contains(string(state.Content), "isolcpus=2-7"); has == strings.Contains(name, "rescue") {
			t.Errorf("%s has the arguments: %t", name, has)
		}
	}
	w.enact(otherTrading())
	w.enact(nil)
	w.asBefore(t, before, 4)
}

// TestTrialWithEntriesThatDoesNotComeUp, and then a kernel that is installed while another plan is in force and becomes the default.
func TestTrialWithEntriesThatDoesNotComeUp(t *testing.T) {
	w := newEntriesWorld(t)
	w.fails(t, trading(), otherTrading())
	installed := strings.ReplaceAll(grub.EntriesFiles(strings.TrimSpace(string(w.seen["/etc/kernel/cmdline"].Content)))[grub.EntriesFolder+"/"+grub.DefaultID+".conf"], "503", "570")
	id := strings.ReplaceAll(grub.DefaultID, "503", "570")
	environment := w.seen[grub.EntriesEnvironmentFile]
	environment.Content = []byte(strings.ReplaceAll(string(environment.Content), grub.DefaultID, id))
	for _, files := range []map[string]hostfile.State{w.seen, w.kept} {
		files[grub.EntriesFolder+"/"+id+".conf"] = hostfile.File(installed, 0o600)
		files[grub.EntriesEnvironmentFile] = environment
	}
	w.reboot(true)
	if next, err := w.guard().Boot(t.Context()); next != guard.Nothing || err != nil {
		t.Fatalf("Boot() = %v, %v", next, err)
	}
	if status, err := w.guard().Status(); err != nil || status.InForce != operation.Hash(otherTrading()) || len(status.Missing) > 0 {
		t.Errorf("Status() = %+v, %v", status, err)
	}
	w.enact(nil)
	if line := string(w.seen["/proc/cmdline"].Content); strings.Contains(line, "lowlatency") {
		t.Errorf("the line is %q", line)
	}
}

// TestAnEnvironmentElsewhere: a link into the EFI partition is not followed.
func TestAnEnvironmentElsewhere(t *testing.T) {
	w := newEntriesWorld(t)
	w.seen[grub.EntriesEnvironmentFile] = hostfile.LinkTo("../efi/EFI/redhat/grubenv")
	if _, err := w.guard().Apply(t.Context(), wanted(trading())); err == nil || !strings.Contains(err.Error(), "is a link to ../efi/EFI/redhat/grubenv, and no link is followed") {
		t.Errorf("Apply() = %v", err)
	}
}
