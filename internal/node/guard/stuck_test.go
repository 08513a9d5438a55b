// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/grub"
)

// newStuckWorld is a host whose GRUB reads its environment and cannot write to it: it is on btrfs.
func newStuckWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.loader = startStuckGRUB
	for _, files := range []map[string]hostfile.State{w.seen, w.kept} {
		files["/proc/1/mounts"] = hostfile.File("/dev/vda1 / btrfs rw 0 0\n", 0o444)
	}
	return w
}

func startStuckGRUB(w *world) (line, trial string) {
	read := func(name string) string { return string(w.seen[name].Content) }
	line, trial, _ = grub.Start(read(grub.ConfigFile), read(grub.CustomFile), read(grub.EnvironmentFile))
	return line, trial
}

// byHand accepts that somebody has to choose the entry before at the console.
func byHand(operations []operation.Operation) []operation.Operation {
	operations = slices.Clone(operations)
	for i := range operations {
		if operations[i].Kind == operation.KernelArguments {
			operations[i].Fallback = operation.ByHandAccepted
		}
	}
	return operations
}

func TestATrialThatWouldStayIsRefused(t *testing.T) {
	w := newStuckWorld(t)
	before := w.manifest()
	_, err := w.guard().Apply(t.Context(), wanted(trading()))
	if err == nil || !strings.Contains(err.Error(), "/boot/grub is on btrfs, to which GRUB cannot write") || !strings.Contains(err.Error(), "spec.rollout.bootFallback") {
		t.Errorf("Apply() = %v", err)
	}
	if err == nil || !strings.Contains(err.Error(), "(the arguments are: nohz=on isolcpus=2-7 panic=10 lowlatency.boot=") {
		t.Errorf("Apply() = %v, and nobody is told which arguments", err)
	}
	if diff := cmp.Diff(before, w.manifest()); diff != "" {
		t.Errorf("something was written (-before +after):\n%s", diff)
	}
}

// TestArgumentsOfAHostWithoutTrials: a boot loader that knows no trial is told what to add, and what to take away.
func TestArgumentsOfAHostWithoutTrials(t *testing.T) {
	w := newWorld(t)
	w.enact(trading())
	w.seen["/boot/firmware"], w.seen["/boot/firmware/cmdline.txt"] = hostfile.NewFolder(), hostfile.File(baseLine, 0o644)
	for want, operations := range map[string][]operation.Operation{
		"(the arguments are: ": append(otherTrading()[:3:3], operation.AddKernelArguments("nohz=off")), "(the arguments to take away are: nohz=on isolcpus=2-7 ": otherTrading()[:3],
	} {
		_, err := w.guard().Apply(t.Context(), wanted(operations))
		if err == nil || !strings.Contains(err.Error(), "kernel arguments are not supported here") || !strings.Contains(err.Error(), want) {
			t.Errorf("Apply() = %v, want %q", err, want)
		}
	}
}

func TestATrialThatWouldStayIsAccepted(t *testing.T) {
	w := newStuckWorld(t)
	before := w.manifest()
	lines, err := w.guard().Describe(t.Context(), byHand(trading()))
	if err != nil || !strings.Contains(strings.Join(lines, "\n"), "beware a kernel that does not come up is started again and again") {
		t.Errorf("Describe() = %q, %v", lines, err)
	}
	w.enact(byHand(trading()))
	if status, err := w.guard().Status(); err != nil || status.InForce != operation.Hash(byHand(trading())) || len(status.Missing) > 0 {
		t.Errorf("Status() = %+v, %v", status, err)
	}
	// It came here by that way, and goes back by it.
	w.enact(nil)
	w.asBefore(t, before, 3)
}

// TestACrashOfAStuckTrial: once the guard has run in the trial, another start brings the old line, as where GRUB clears its environment.
func TestACrashOfAStuckTrial(t *testing.T) {
	w := newStuckWorld(t)
	before := w.manifest()
	if next, err := w.guard().Apply(t.Context(), wanted(byHand(trading()))); next != guard.Reboot || err != nil {
		t.Fatalf("Apply() = %v, %v", next, err)
	}
	w.reboot(true)
	if next, err := w.guard().Boot(t.Context()); next != guard.Verify || err != nil {
		t.Fatalf("Boot() = %v, %v", next, err)
	}
	w.settle(guard.Nothing, true)
	w.asBefore(t, before, 3)
}

// TestAStuckTrialThatDoesNotComeUp is started again until somebody chooses the entry before: then it is taken back.
func TestAStuckTrialThatDoesNotComeUp(t *testing.T) {
	w := newStuckWorld(t)
	before := w.manifest()
	if next, err := w.guard().Apply(t.Context(), wanted(byHand(trading()))); next != guard.Reboot || err != nil {
		t.Fatalf("Apply() = %v, %v", next, err)
	}
	for range 3 {
		w.reboot(false)
		if line := string(w.seen["/proc/cmdline"].Content); !strings.Contains(line, "isolcpus=2-7") {
			t.Fatalf("the machine came back by itself, with %q", line)
		}
	}
	w.loader = func(w *world) (line, trial string) {
		line, _ = startStuckGRUB(w)
		return line, ""
	}
	w.reboot(false)
	w.loader = startStuckGRUB
	if next, err := w.guard().Boot(t.Context()); next != guard.Nothing || err != nil {
		t.Fatalf("Boot() = %v, %v", next, err)
	}
	w.reboot(false)
	if diff := cmp.Diff(before, w.manifest()); diff != "" || strings.Contains(string(w.seen["/proc/cmdline"].Content), "lowlatency") {
		t.Errorf("the host before and after (-before +after):\n%s", diff)
	}
	report, err := w.guard().Report()
	if err != nil {
		t.Fatal(err)
	}
	want := instruction.Report{Phase: instruction.TakenBack, Reason: instruction.ReasonNotStarted}
	if got := (instruction.Report{Phase: report.Phase, Reason: report.Reason}); !cmp.Equal(want, got) {
		t.Errorf("Report() = %+v", report)
	}
}

// newSealedWorld is a host with something in the place of crypttab(5), and with more files.
func newSealedWorld(t *testing.T, crypttab hostfile.State, more map[string]string) *world {
	t.Helper()
	w := newWorld(t)
	for _, files := range []map[string]hostfile.State{w.seen, w.kept} {
		files["/etc/crypttab"] = crypttab
		for name, content := range more {
			files[name] = hostfile.File(content, 0o600)
		}
	}
	return w
}

// isRefused compares an error with a part of its sentence; "" wants none.
func isRefused(err error, want string) bool {
	if want == "" || err == nil {
		return want == "" && err == nil
	}
	return strings.Contains(err.Error(), want) && strings.Contains(err.Error(), "spec.rollout.bootFallback")
}

// TestADiskThatTheTPMOpens may stay closed with other arguments, and the start then waits for a passphrase that nobody types. What cannot be told of
// the disks is refused like that.
func TestADiskThatTheTPMOpens(t *testing.T) {
	const (
		refused = "the disk root is opened with a key that the TPM keeps (/etc/crypttab)"
		table   = "root UUID=1 none luks,tpm2-device=auto\n"
		untold  = "whether the TPM opens a disk of this host at its start cannot be told: "
	)
	file := func(content string) hostfile.State { return hostfile.File(content, 0o644) }
	sysctl := []operation.Operation{operation.SetSysctl("vm.stat_interval", "10")}
	for name, tc := range map[string]struct {
		crypttab   hostfile.State
		more       map[string]string
		operations []operation.Operation
		want       string
	}{
		"refused":                {file(table), nil, trading(), refused},
		"accepted by name":       {file(table), nil, byHand(trading()), ""},
		"not at the start":       {file("data UUID=1 none tpm2-device=auto,noauto\n"), nil, trading(), ""},
		"a passphrase":           {file("root UUID=1 none luks,discard\n"), nil, trading(), ""},
		"a comment":              {file("#root UUID=1 none tpm2-device=auto\n"), nil, trading(), ""},
		"no arguments change":    {file(table), nil, sysctl, ""},
		"a link, sealed":         {hostfile.LinkTo("luks.table"), map[string]string{"/etc/luks.table": table}, trading(), refused},
		"a link, from the root":  {hostfile.LinkTo("/etc/luks.table"), map[string]string{"/etc/luks.table": table}, trading(), refused},
		"a link, a passphrase":   {hostfile.LinkTo("../etc/luks.table"), map[string]string{"/etc/luks.table": "root UUID=1 none luks\n"}, trading(), ""},
		"a link to nothing":      {hostfile.LinkTo("/media/key/crypttab"), nil, trading(), untold + "/etc/crypttab is a link that leads to /media/key/crypttab, and that is not in"},
		"a link out of the host": {hostfile.LinkTo("../../etc/luks.table"), map[string]string{"/etc/luks.table": ""}, trading(), untold + "/etc/crypttab is a link that leads to ../../etc/luks.table, out of"},
		"a link to itself":       {hostfile.LinkTo("crypttab"), nil, trading(), untold + "/etc/crypttab is a link that leads over more than 40 others"},
		"a folder":               {hostfile.NewFolder(), nil, trading(), untold + "/etc/crypttab is no regular file"},
		"a link, accepted":       {hostfile.LinkTo("/media/key/crypttab"), nil, byHand(trading()), ""},
		"a link, no arguments":   {hostfile.LinkTo("/media/key/crypttab"), nil, sysctl, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSealedWorld(t, tc.crypttab, tc.more)
			before := w.manifest()
			if _, err := w.guard().Describe(t.Context(), tc.operations); !isRefused(err, tc.want) {
				t.Errorf("Describe() = %v, want %q", err, tc.want)
			}
			if _, err := w.guard().Apply(t.Context(), wanted(tc.operations)); !isRefused(err, tc.want) {
				t.Errorf("Apply() = %v, want %q", err, tc.want)
			}
			if diff := cmp.Diff(before, w.manifest()); tc.want != "" && diff != "" {
				t.Errorf("something was written (-before +after):\n%s", diff)
			}
		})
	}
}

// TestACrypttabThatCannotBeRead is refused with what the kernel said, unless that is accepted, and keeps nobody from giving a host back.
func TestACrypttabThatCannotBeRead(t *testing.T) {
	const unreadable = "/etc/crypttab"
	w := newWorld(t)
	w.unreadable = unreadable
	if _, err := w.guard().Apply(t.Context(), wanted(trading())); !isRefused(err, unreadable+" cannot be read: opening /etc/crypttab: input/output error") {
		t.Errorf("Apply() = %v", err)
	}
	lines, err := w.guard().Describe(t.Context(), byHand(trading()))
	if err != nil || !strings.Contains(strings.Join(lines, "\n"), unreadable+" cannot be read") {
		t.Errorf("Describe() = %q, %v", lines, err)
	}
	w.enact(byHand(trading()))
	w.enact(nil)
	if status, err := w.guard().Status(); err != nil || status.InForce != "" {
		t.Errorf("Status() = %+v, %v", status, err)
	}
}

// TestASealedHostComesBack: one that got its arguments before anybody sealed a disk is given back all the same, and who looks is told.
func TestASealedHostComesBack(t *testing.T) {
	w := newWorld(t)
	w.enact(trading())
	for _, files := range []map[string]hostfile.State{w.seen, w.kept} {
		files["/etc/crypttab"] = hostfile.File("root UUID=1 none luks,tpm2-device=auto\n", 0o644)
	}
	lines, err := w.guard().Describe(t.Context(), nil)
	if err != nil || !strings.Contains(strings.Join(lines, "\n"), "beware the start may wait for a passphrase") {
		t.Errorf("Describe() = %q, %v", lines, err)
	}
	w.enact(nil)
	if status, err := w.guard().Status(); err != nil || status.InForce != "" {
		t.Errorf("Status() = %+v, %v", status, err)
	}
}
