// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
)

// Program is where the guard is on a host.
const Program = "/usr/local/bin/lowlatency-guard"

const systemdFolder = "/etc/systemd/system"

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
TimeoutStartSec=10min
[Install]
WantedBy=multi-user.target
`

// trialUnit also runs where the host has ended in a shell for its administrator: nobody else would end the trial there.
const trialUnit = `[Unit]
Description=Verify what the Low Latency Node Operator tries on this host, and take it back when it fails
Documentation=https://github.com/lowlatency-dev/lowlatency-operator/blob/main/docs/guard.md
DefaultDependencies=no
After=lowlatency-guard.service
IgnoreOnIsolate=yes
ConditionPathExists=` + journalFile + `
[Service]
ExecStart=` + Program + ` trial
[Install]
WantedBy=multi-user.target emergency.target rescue.target
`

// install are the guard's own files on a host: the program, the units, and the links by which systemd starts them.
func install(program []byte) []target {
	executable := hostfile.State{Type: hostfile.Regular, Mode: 0o755, Content: program}
	boot, trial := systemdFolder+"/lowlatency-guard.service", systemdFolder+"/lowlatency-guard-trial.service"
	wants := func(target, unit string) string {
		return path.Join(systemdFolder, target+".target.wants", path.Base(unit))
	}
	return []target{
		{path: Program, state: executable},
		{path: boot, state: hostfile.File(bootUnit, 0o644)},
		{path: trial, state: hostfile.File(trialUnit, 0o644)},
		{path: wants("multi-user", boot), state: hostfile.LinkTo(boot)},
		{path: wants("multi-user", trial), state: hostfile.LinkTo(trial)},
		{path: wants("emergency", trial), state: hostfile.LinkTo(trial)},
		{path: wants("rescue", trial), state: hostfile.LinkTo(trial)},
	}
}

// Install puts the guard on the host: without it nobody takes a trial back.
func (g *Guard) Install(ctx context.Context, program []byte) error {
	changed := false
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
		changed = true
	}
	if !changed {
		return nil
	}
	return g.machine.Tool(ctx, systemctl, "daemon-reload")
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
