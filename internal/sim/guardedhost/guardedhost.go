// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package guardedhost lets the guard change a host tree: its own code takes signed instructions from the inbox, writes into the tree, tries
// kernel arguments, verifies them and takes them back. Played are what a machine does: GRUB, the kernel that comes up, systemd, the kubelet.
package guardedhost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/command"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/coreos"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/grub"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/kubeletservice"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/ordinaryhost"
)

// Host is an ordinary host with the guard. Its methods may be called concurrently.
type Host struct {
	// Dir holds the tree.
	Dir string
	// ComesUp tells whether a kernel comes up with a line; nil for any.
	ComesUp func(line string) bool

	tree    *ordinaryhost.Host
	kubelet *kubeletservice.Service
	mutex   sync.Mutex
	// What systemd was asked for and has not done yet.
	isRebooting, isInboxStarted bool
	boots                       int
	// said is what the guard has said.
	said bytes.Buffer
}

// Install puts Debian with kubeadm and GRUB on a machine in an empty folder, and boots it.
func Install(dir string, machine hosttree.Machine) (*Host, error) {
	tree, err := ordinaryhost.Install(dir, machine, ordinaryhost.Debian(), "", "")
	if err != nil {
		return nil, err
	}
	h := &Host{Dir: dir, tree: tree}
	for name, content := range map[string]string{
		grub.DefaultsFile: "GRUB_DEFAULT=0\n", grub.ConfigFile: grub.Config(tree.BaseCommandLine), grub.EnvironmentFile: grub.Environment(""),
		// Folders that every such host has.
		"/etc/systemd/system/dbus.service": "[Service]\n", "/usr/local/bin/other": "", "/run/utmp": "",
	} {
		if err := h.write(name, content); err != nil {
			return nil, err
		}
	}
	h.kubelet = kubeletservice.New("kubelet.service", kubeletservice.Healthy)
	return h, nil
}

func (h *Host) path(name string) string { return filepath.Join(h.Dir, name) }

func (h *Host) write(name, content string) error {
	if err := os.MkdirAll(filepath.Dir(h.path(name)), 0o755); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if err := os.WriteFile(h.path(name), []byte(content), 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// read is the content of a file; "" where there is none.
func (h *Host) read(name string) string {
	content, err := os.ReadFile(h.path(name))
	if err != nil {
		return ""
	}
	return string(content)
}

// Boots is how often the host has come up since it was installed.
func (h *Host) Boots() int {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.boots
}

// Said is what the guard has said so far.
func (h *Host) Said() string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.said.String()
}

// Deliver is what the pod of the operator does. It returns once the guard has read the instruction, which takes a call of Live.
func (h *Host) Deliver(ctx context.Context, d guard.Delivery) (report *instruction.Report, err error) {
	opened, err := openDisk(h.Dir)
	if err != nil {
		return nil, err
	}
	machine := played{guard.Below{Root: h.Dir}, h}
	report, err = guard.DeliverTo(ctx, guard.New(opened, machine, func(string) {}), machine.Lock, d, func(string) {})
	return report, errors.Join(err, opened.Close())
}

// IsRebooting tells that the host was asked to reboot, which the next call of Live lets it do.
func (h *Host) IsRebooting() bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.isRebooting
}

// Live does what systemd was asked for: it starts the host, or the unit of the inbox. What these ask for in their turn is done by the
// next call.
func (h *Host) Live(ctx context.Context) error {
	switch isRebooting, isInboxStarted := h.asked(); {
	case isRebooting:
		return h.boot(ctx)
	case isInboxStarted:
		h.run(ctx, "take")
	}
	return nil
}

// asked is what systemd was asked for since it was called last.
func (h *Host) asked() (isRebooting, isInboxStarted bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	isRebooting, isInboxStarted = h.isRebooting, h.isInboxStarted
	h.isRebooting, h.isInboxStarted = false, false
	return isRebooting, isInboxStarted
}

// startKernel is what GRUB does, and the kernel that it starts. It returns the line of the one that has come up.
func (h *Host) startKernel() (string, error) {
	line, trial, left := grub.Start(h.read(grub.ConfigFile), h.read(grub.CustomFile), h.read(grub.EnvironmentFile))
	if left != h.read(grub.EnvironmentFile) {
		if err := h.write(grub.EnvironmentFile, left); err != nil {
			return "", err
		}
	}
	if trial != "" && (h.ComesUp == nil || h.ComesUp(trial)) {
		return trial, nil
	}
	return line, nil
}

// boot is a start of the machine, up to the end of the guard's units.
func (h *Host) boot(ctx context.Context) error {
	line, err := h.startKernel()
	if err != nil {
		return err
	}
	operations, err := h.operationsOf(line)
	if err != nil {
		return err
	}
	// What is on the disk is the guard's business: nothing of it goes because the tree boots with something else.
	h.tree.Host = coreos.Host{Name: h.tree.Name, Dir: h.Dir, BaseCommandLine: h.tree.BaseCommandLine}
	if err := h.tree.BootWith(ctx, operations); err != nil {
		return err
	}
	h.mutex.Lock()
	h.boots++
	h.mutex.Unlock()
	h.startUnit(ctx, "boot")
	// The guard has removed what the kubelet remembers, and then it starts.
	h.kubelet.Boot()
	if err := h.tree.StartKubelet(ctx); err != nil {
		return err
	}
	h.startUnit(ctx, "trial")
	h.startUnit(ctx, "take")
	return nil
}

// startUnit starts a unit of the guard, where it is installed and has something to do.
func (h *Host) startUnit(ctx context.Context, unit string) {
	if h.read(guard.Program) != "" && (unit != "trial" || h.read(guard.StateFolder+"/journal") != "") {
		h.run(ctx, unit)
	}
}

// operationsOf are those that the units on the disk of a host stand for whose kernel has come up with a line: of what is tried, or is
// in force.
func (h *Host) operationsOf(line string) ([]operation.Operation, error) {
	marker := operation.MarkerOf(strings.Fields(line))
	for _, name := range []string{"/journal", "/in-force"} {
		records, _, err := journal.Decode([]byte(h.read(guard.StateFolder + name)))
		if err != nil {
			return nil, err
		}
		if len(records) == 0 || records[0].Begin == nil || marker == "" {
			continue
		}
		if operations := records[0].Begin.Operations; operation.MarkerOf(operation.Arguments(operations)) == marker {
			return operations, nil
		}
	}
	return nil, nil
}

// run runs a unit of the guard. That something was taken back is no failure of the machine.
func (h *Host) run(ctx context.Context, unit string) {
	var out bytes.Buffer
	guarded := command.NewPlayed(command.Played{
		Out: &out, Machine: func(root string) command.Machine { return played{guard.Below{Root: root}, h} },
		Disk: func(root string) (command.Disk, error) { return openDisk(root) }, Now: h.kubelet.Now,
		Pause: func(_ context.Context, long time.Duration) error { h.kubelet.Pass(long); return nil },
	})
	guarded.SetArgs([]string{"--root", h.Dir, unit})
	guarded.SetOut(&out)
	err := guarded.ExecuteContext(ctx)
	h.mutex.Lock()
	defer h.mutex.Unlock()
	fmt.Fprintf(&h.said, "%s:\n%s", unit, out.String())
	if err != nil {
		fmt.Fprintf(&h.said, "error: %v\n", err)
	}
}

// Manifest is everything that is on the disk of the host, with modes and links, but what the guard and the kubelet remember.
func (h *Host) Manifest() (map[string]string, error) {
	found := map[string]string{}
	err := filepath.WalkDir(h.Dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative := strings.TrimPrefix(name, h.Dir)
		switch {
		case isMemory(relative) && entry.IsDir():
			return filepath.SkipDir
		case isMemory(relative):
			return nil
		}
		found[relative], err = describe(name, entry)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("looking at all files of the host: %w", err)
	}
	return found, nil
}

// describe is the mode of a file, and what is in it or where it leads.
func describe(name string, entry fs.DirEntry) (string, error) {
	info, err := entry.Info()
	if err != nil {
		return "", fmt.Errorf("looking at %s: %w", name, err)
	}
	var content []byte
	target := ""
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err = os.Readlink(name)
	case info.Mode().IsRegular():
		content, err = os.ReadFile(name)
	}
	if err != nil {
		return "", fmt.Errorf("looking at %s: %w", name, err)
	}
	return info.Mode().String() + " " + target + string(content), nil
}

// isMemory tells of what a running system has, and not its disk, and of what programs remember for themselves.
func isMemory(name string) bool {
	running := []string{"/proc", "/sys", "/dev", "/run", "/var/lib/lowlatency", "/.machine.json", "/lowlatency-snapshot.json"}
	return slices.Contains(running, name) || strings.HasPrefix(name, "/var/lib/kubelet/") && strings.HasSuffix(name, "_manager_state")
}
