// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package enact

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

// takenBack asserts that everything was taken back and that the machine runs with its old line.
func (h *host) takenBack(what, before, line, reason string, status guard.Status) {
	h.t.Helper()
	manifest := h.manifest()
	if status.InForce != "" || status.Stage != journal.Reverted || !strings.Contains(status.Reason, reason) {
		h.t.Errorf("%s: %+v, want it taken back because %q", what, status, reason)
	}
	if !sameFiles(before, manifest) {
		h.t.Errorf("%s: the host before and after (-before +after):\n%s", what, cmp.Diff(withoutGuard(before), withoutGuard(manifest)))
	}
	if now := h.run("cat /proc/cmdline"); now != line {
		h.t.Errorf("%s: the kernel runs with %q, and %q was before", what, now, line)
	}
	h.row(what, "taken back: stage "+stageOf(status.Stage), status.Reason)
}

// TestTrialsThatFail: kernels and hosts that do not become what they are to be go back by themselves.
func TestTrialsThatFail(t *testing.T) {
	h := start(t)
	defer h.table()
	before, line := h.manifest(), h.run("cat /proc/cmdline")
	h.save("before")

	// A root that is somebody else's argument is refused before anything is written.
	refused := h.write("root", []operation.Operation{operation.AddKernelArguments("root=/dev/nowhere", "panic=5")})
	result, err := h.machine.Execute(h.ctx(), guardProgram+" apply --yes "+refused)
	if err != nil || result.ExitCode == 0 || !strings.Contains(result.Stderr, "root=") {
		t.Errorf("another root: %+v, %v", result, err)
	}
	h.row("a root= beside that of the host", "refused", strings.TrimSpace(result.Stderr))

	h.fullDisk(before)
	h.back()

	// Without a program in the initial memory disk the kernel mounts the root itself, for which it has no driver, and panics.
	panics := h.write("panics", []operation.Operation{
		operation.PutFile("/etc/lowlatency/lab.env", 0o600, "VALUE=1\n"),
		operation.AddKernelArguments("nohz_full=1", "rdinit=/nowhere", "panic=5"),
	})
	status := h.apply(panics)
	if console := h.machine.Console(4000); !strings.Contains(console, "Kernel panic") {
		t.Error("the kernel did not panic")
	}
	h.takenBack("a kernel that panics at boot", before, line, "did not come up", status)

	h.back()
	h.lostRoot(before, line)

	h.back()
	h.hangingStart(line)

	// The kernel takes no such value, so the host is not as planned when its time is over.
	h.back()
	unverified := h.write("unverified", []operation.Operation{
		operation.SetSysctl("vm.swappiness", "9999"),
		operation.AddKernelArguments("nohz_full=1", "panic=5"),
	})
	boot, _ := h.machine.BootID(h.ctx())
	h.runUntilReboot(guardProgram + " apply --yes --deadline 1m " + unverified)
	h.rebooted(boot)
	h.takenBack("a host that is not verified before its deadline", before, line, "vm/swappiness", h.settled())
}

// lostRoot tries a kernel that comes up and whose initial memory disk cannot mount the root: it waits in a shell for ever, where nothing has
// it reboot.
func (h *host) lostRoot(before, line string) {
	h.t.Helper()
	file := h.write("lost", []operation.Operation{operation.AddKernelArguments("nohz_full=1", "rootfstype=nosuchfs", "panic=5")})
	status := h.apply(file)
	if console := h.machine.Console(20000); !strings.Contains(console, "as root file system") {
		h.t.Error("the initial memory disk did not say that it cannot mount the root")
	}
	h.takenBack("a root that cannot be mounted", before, line, "did not come up", status)
}

// hangingStart tries arguments with which a service of somebody else waits for ever, before what all others are ordered after: nobody reaches
// the host, and its guard alone counts.
func (h *host) hangingStart(line string) {
	h.t.Helper()
	h.run(`cat > /etc/systemd/system/hang.service <<'END'
[Unit]
DefaultDependencies=no
Before=sysinit.target
ConditionKernelCommandLine=nohz_full
[Service]
Type=oneshot
TimeoutStartSec=infinity
ExecStart=/bin/sleep infinity
[Install]
WantedBy=sysinit.target
END
systemctl enable hang.service; sync`)
	before := h.manifest()
	file := h.write("hanging", []operation.Operation{operation.AddKernelArguments("nohz_full=1", "panic=5")})
	boot, _ := h.machine.BootID(h.ctx())
	h.runUntilReboot(guardProgram + " apply --yes --deadline 1m " + file)
	h.rebooted(boot)
	h.takenBack("a start that hangs before sysinit.target", before, line, "has not started up to multi-user.target", h.settled())
}

// back goes back to the state before the first attempt.
func (h *host) back() {
	h.t.Helper()
	h.load("before")
}

// fullDisk has no room for what the guard writes: everything is as before, and the error says why.
func (h *host) fullDisk(before string) {
	h.t.Helper()
	file := h.write("full", tuned("10"))
	h.run("fallocate -l $(df --output=avail -B1 / | tail -1) /filler; dd if=/dev/zero of=/filler2 bs=1k 2>/dev/null; sync; true")
	result, err := h.machine.Execute(h.ctx(), guardProgram+" apply --yes "+file)
	if err != nil || result.ExitCode == 0 || !strings.Contains(result.Stderr, "no space left") {
		h.t.Errorf("on a full disk: %+v, %v", result, err)
	}
	h.run("rm -f /filler /filler2 /root/full.json; sync")
	status := h.status()
	if manifest := h.manifest(); !sameFiles(before, manifest) || status.InForce != "" {
		h.t.Errorf("on a full disk: %+v; (-before +after):\n%s", status, cmp.Diff(withoutGuard(before), withoutGuard(manifest)))
	}
	h.row("a full disk", "as before", strings.TrimSpace(result.Stderr))
}

// TestKilled kills the guard while it verifies: the machine comes to rest by itself. Kills while it writes are simulated (internal/node/guard, kill_test.go).
func TestKilled(t *testing.T) {
	h := start(t)
	defer h.table()
	wanted := operation.Hash(tuned("10"))
	file := h.write("first", tuned("10"))
	boot, _ := h.machine.BootID(h.ctx())
	h.runUntilReboot(guardProgram + " apply --yes " + file)
	h.rebooted(boot)
	// The trial's unit is killed as soon as it runs.
	killed := h.run(`for i in $(seq 600); do p=$(systemctl show -P MainPID lowlatency-guard-trial.service); if [ "$p" != 0 ]; then kill -9 $p && echo "killed $p" && break; fi; sleep 0.2; done`)
	if killed == "" {
		t.Error("the guard did not verify for two minutes, so that it was not killed")
	}
	h.expect("the guard is killed while it verifies", h.settled(), wanted, killed+", restarts: "+h.run("systemctl show -P NRestarts lowlatency-guard-trial.service"))
}
