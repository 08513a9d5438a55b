// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
)

// Program is where the guard is on a host.
const Program = "/usr/local/bin/lowlatency-guard"

const systemdFolder = "/etc/systemd/system"

// In the units, KillMode=mixed has systemd signal the guard alone, which ends in order: a systemctl that is signalled, too, leaves a kubelet
// stopped.

// bootUnit runs before everything that must not start with what may have to be taken back.
const bootUnit = `[Unit]
Description=Complete or take back what the Low Latency Node Operator changes on this host
Documentation=https://github.com/lowlatency-dev/lowlatency-operator/blob/main/docs/guard.md
After=local-fs.target systemd-modules-load.service
Before=kubelet.service k3s.service k3s-agent.service rke2-server.service rke2-agent.service containerd.service crio.service tuned.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=` + Program + ` boot
KillMode=mixed
TimeoutStartSec=10min
[Install]
WantedBy=multi-user.target
`

// trialUnit also runs where the host has ended in a shell for its administrator, and where its start hangs before anything that others wait
// for: nobody else would end the trial there.
const trialUnit = `[Unit]
Description=Verify what the Low Latency Node Operator tries on this host, and take it back when it fails
Documentation=https://github.com/lowlatency-dev/lowlatency-operator/blob/main/docs/guard.md
DefaultDependencies=no
After=local-fs.target
IgnoreOnIsolate=yes
ConditionPathExists=|` + journalFile + `
ConditionPathExists=|` + removalFile + `
[Service]
ExecStart=` + Program + ` trial
KillMode=mixed
Restart=on-failure
RestartSec=10
[Install]
WantedBy=multi-user.target emergency.target rescue.target
`

// inboxUnit looks into the inbox after each start, and whenever somebody has put something there. It goes on with what it was
// killed in.
const inboxUnit = `[Unit]
Description=Carry out what the Low Latency Node Operator tells this host
Documentation=https://github.com/lowlatency-dev/lowlatency-operator/blob/main/docs/guard.md
After=lowlatency-guard.service
StartLimitIntervalSec=0
ConditionPathExists=` + trustFile + `
[Service]
ExecStart=` + Program + ` take
KillMode=mixed
Restart=on-failure
RestartSec=10
[Install]
WantedBy=multi-user.target
`

const inboxPathUnit = `[Unit]
Description=Notice what the Low Latency Node Operator tells this host
Documentation=https://github.com/lowlatency-dev/lowlatency-operator/blob/main/docs/guard.md
[Path]
PathChanged=` + InboxFile + `
[Install]
WantedBy=multi-user.target
`

// inboxTimerUnit starts the same unit now and then: with nothing in the inbox, it looks at what others have changed.
const inboxTimerUnit = `[Unit]
Description=Look whether others have changed what the Low Latency Node Operator manages on this host
Documentation=https://github.com/lowlatency-dev/lowlatency-operator/blob/main/docs/guard.md
[Timer]
OnActiveSec=1h
OnUnitInactiveSec=1h
RandomizedDelaySec=5min
[Install]
WantedBy=timers.target
`

const (
	bootService  = "lowlatency-guard.service"
	trialService = "lowlatency-guard-trial.service"
	inboxService = "lowlatency-guard-inbox.service"
	inboxPath    = "lowlatency-guard-inbox.path"
	inboxTimer   = "lowlatency-guard-inbox.timer"
)

// install are the guard's own files on a host: the program, the units, and the links by which systemd starts them. Removed from the
// end, what goes on with the removal at the next start goes after everything else.
func install(program []byte) []target {
	executable := hostfile.State{Type: hostfile.Regular, Mode: 0o755, Content: program}
	boot, trial := path.Join(systemdFolder, bootService), path.Join(systemdFolder, trialService)
	inbox, watch, timer := path.Join(systemdFolder, inboxService), path.Join(systemdFolder, inboxPath), path.Join(systemdFolder, inboxTimer)
	wants := func(target, unit string) string {
		return path.Join(systemdFolder, target+".target.wants", path.Base(unit))
	}
	return []target{
		{path: Program, state: executable},
		{path: boot, state: hostfile.File(bootUnit, 0o644)},
		{path: wants("multi-user", boot), state: hostfile.LinkTo(boot)},
		{path: trial, state: hostfile.File(trialUnit, 0o644)},
		{path: inbox, state: hostfile.File(inboxUnit, 0o644)},
		{path: watch, state: hostfile.File(inboxPathUnit, 0o644)},
		{path: timer, state: hostfile.File(inboxTimerUnit, 0o644)},
		{path: wants("timers", timer), state: hostfile.LinkTo(timer)},
		{path: wants("multi-user", inbox), state: hostfile.LinkTo(inbox)},
		{path: wants("multi-user", watch), state: hostfile.LinkTo(watch)},
		{path: wants("multi-user", trial), state: hostfile.LinkTo(trial)},
		{path: wants("emergency", trial), state: hostfile.LinkTo(trial)},
		{path: wants("rescue", trial), state: hostfile.LinkTo(trial)},
	}
}

// Install puts the guard on the host: without it nobody takes a trial back. It takes over from any other one whose files it can read,
// older or newer.
func (g *Guard) Install(ctx context.Context, program []byte) error {
	if err := g.checkFormats(); err != nil {
		return fmt.Errorf("the guard on the host stays: %w", err)
	}
	var changed []target
	for _, t := range install(program) {
		now, err := g.disk.Read(t.path)
		if err != nil {
			return err
		}
		if now.Equal(t.state) {
			continue
		}
		if err := g.makeFolders(path.Dir(t.path)); err != nil {
			return err
		}
		if err := hostfile.Replace(g.disk, t.path, t.state); err != nil {
			return fmt.Errorf("installing the guard: %w", err)
		}
		changed = append(changed, t)
	}
	// Not for the program alone: it is replaced on nodes with pods, too, on which systemd would forget what they have changed of its units.
	return g.reload(ctx, changed)
}

// checkFormats refuses to work with what a newer guard has written.
func (g *Guard) checkFormats() error {
	for _, name := range []string{inForceFile, journalFile, foreignFile, removalFile, trustFile, takenFile} {
		file, err := g.disk.Read(name)
		if err != nil {
			return err
		}
		if err := journal.CheckFormat(name, file.Content); err != nil {
			return err
		}
	}
	return nil
}

// hasInstalled tells that this very guard is on the host, with all that belongs to it.
func (g *Guard) hasInstalled(program []byte) (bool, error) {
	for _, t := range install(program) {
		now, err := g.disk.Read(t.path)
		if err != nil || !now.Equal(t.state) {
			return false, err
		}
	}
	return true, nil
}

// Watch has systemd look at the inbox from now on, and once now.
func (g *Guard) Watch(ctx context.Context) error {
	if err := g.machine.Tool(ctx, systemctl, "start", inboxPath, inboxTimer); err != nil {
		return err
	}
	return g.machine.Tool(ctx, systemctl, "--no-block", "start", inboxService)
}

// IsChanging reports whether a change of the host is neither complete nor taken back.
func (g *Guard) IsChanging() (bool, error) {
	h, err := g.look()
	return err == nil && h.isChanging(), err
}

// Installed reports whether any of the guard's own files is on the host.
func (g *Guard) Installed() (bool, error) {
	for _, t := range install(nil) {
		now, err := g.disk.Read(t.path)
		if err != nil || now.Type != hostfile.Absent {
			return err == nil, err
		}
	}
	return false, nil
}

// Uninstall takes the guard away, with the folders that only it has needed.
func (g *Guard) Uninstall(ctx context.Context) error {
	// A path that is watched no longer is no reason to stay.
	_ = g.machine.Tool(ctx, systemctl, "--no-block", "stop", inboxPath, inboxTimer)
	for _, t := range slices.Backward(install(nil)) {
		if err := g.removeFile(t.path); err != nil {
			return err
		}
		folder := path.Dir(t.path)
		if path.Ext(folder) != ".wants" {
			continue
		}
		if names, err := g.machine.Names(folder); err != nil || len(names) > 0 {
			continue
		}
		if err := g.removeFile(folder); err != nil {
			return err
		}
	}
	return g.machine.Tool(ctx, systemctl, "daemon-reload")
}
