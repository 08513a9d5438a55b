// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guardedhost

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/kubelet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/grub"
)

// played is the machine: its files are those of the tree, and its programs are played.
type played struct {
	guard.Below

	host *Host
}

// Unit is what systemd says of a service.
func (p played) Unit(_ context.Context, name string) (*kubelet.Unit, error) {
	return p.host.kubelet.Unit(name), nil
}

// Health is what the kubelet says.
func (p played) Health(context.Context, string) error { return p.host.kubelet.Health() }

// Tool does what the tools of GRUB and systemd do; others do nothing to the tree.
func (p played) Tool(_ context.Context, program string, arguments ...string) error {
	if filepath.Base(program) == "grub-mkconfig" {
		made := grub.Made(p.host.tree.BaseCommandLine, p.host.read(grub.DefaultsFile), p.host.read(grub.ArgumentsFile))
		return p.host.write(arguments[1], made)
	}
	p.host.kubelet.Tool(arguments...)
	p.host.mutex.Lock()
	defer p.host.mutex.Unlock()
	switch {
	case slices.Equal(arguments, []string{"--no-block", "reboot"}):
		p.host.isRebooting = true
	case slices.Equal(arguments, []string{"--no-block", "start", "lowlatency-guard-inbox.service"}):
		p.host.isInboxStarted = true
	}
	return nil
}

// disk is that of the tree. All its files belong to root, whoever runs the program, and it is one that GRUB can write to.
type disk struct{ *hostfile.Root }

func openDisk(root string) (disk, error) {
	opened, err := hostfile.OpenRoot(root)
	return disk{opened}, err
}

// Create has a file belong to whoever runs the program.
func (d disk) Create(name string, s hostfile.State) error {
	s.UID, s.GID = os.Getuid(), os.Getgid()
	return d.Root.Create(name, s)
}

// Read says that it belongs to root.
func (d disk) Read(name string) (hostfile.State, error) {
	switch name {
	case "/proc/1/mounts":
		return hostfile.File("/dev/vda1 / ext4 rw 0 0\n", 0o444), nil
	case "/dev/vda1":
		return hostfile.State{Type: hostfile.Other}, nil
	}
	s, err := d.Root.Read(name)
	s.UID, s.GID = 0, 0
	return s, err
}
