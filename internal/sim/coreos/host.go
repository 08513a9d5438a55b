// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package coreos lets a host tree live as a node of OpenShift does: it boots with the configuration that the
// machine-config operator renders of MachineConfigs and KubeletConfigs, runs what the units start, takes TuneD
// profiles and starts a kubelet. It talks to no API server.
package coreos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/coreos/go-systemd/v22/unit"
	"github.com/coreos/ignition/v2/config/v3_5/types"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

// unitFolder is where Ignition puts units and their drop-ins.
const unitFolder = "/etc/systemd/system"

// Host is a simulated host: a tree of /proc, /sys and /etc that changes as a real one would when it
// boots with a rendered configuration.
type Host struct {
	// Name of the node.
	Name string
	// Dir holds the tree.
	Dir string
	// BaseCommandLine are the arguments that the platform's own boot entry has.
	BaseCommandLine string
	// Offline are CPUs that somebody takes offline by hand as soon as the host is up, in kernel list format.
	Offline string
	written []string
}

// Boot lets the host come up with a rendered configuration: files and units are written, the kernel
// leaves the traces that its arguments leave, and the units that run at boot are executed for real
// against the tree. It fails, as a node would stay away, when a unit that the kubelet requires fails.
func (h *Host) Boot(ctx context.Context, rendered *mcfgv1.MachineConfig) error {
	ignition, err := parseIgnition(rendered)
	if err != nil {
		return err
	}
	if err := h.writeConfiguration(ignition); err != nil {
		return fmt.Errorf("writing the configuration of host %s: %w", h.Name, err)
	}
	arguments := append([]string{h.BaseCommandLine}, rendered.Spec.KernelArguments...)
	offline, err := offlineCPUs(ignition)
	if err != nil {
		return fmt.Errorf("booting host %s: %w", h.Name, err)
	}
	if h.Offline != "" {
		offline = strings.Trim(offline+","+h.Offline, ",")
	}
	options := hosttree.BootOptions{CommandLine: strings.Join(arguments, " "), Offline: offline}
	switch rendered.Spec.KernelType {
	case "realtime":
		options.KernelType = v1alpha1.KernelRealTime
	case "64k-pages":
		options.PageSize = v1alpha1.PageSize64Ki
	}
	if err := hosttree.Boot(h.Dir, options); err != nil {
		return fmt.Errorf("booting host %s: %w", h.Name, err)
	}
	for i := range ignition.Systemd.Units {
		if err := h.runUnit(ctx, &ignition.Systemd.Units[i]); err != nil {
			return err
		}
	}
	return h.startKubelet()
}

// Clone makes a second host that has come as far as this one and goes its own way from here. The folder must not exist
// yet.
func (h *Host) Clone(dir string) (*Host, error) {
	clone := *h
	clone.Dir = dir
	return &clone, hosttree.Clone(h.Dir, dir)
}

// writeConfiguration puts files, units and drop-ins into the tree and removes those of the
// configuration before, as the machine-config daemon does.
func (h *Host) writeConfiguration(ignition types.Config) error {
	root, err := os.OpenRoot(h.Dir)
	if err != nil {
		return fmt.Errorf("opening the host tree: %w", err)
	}
	defer root.Close() //nolint:errcheck // A directory opened for access only; nothing is lost.
	files, err := configurationFiles(ignition)
	if err != nil {
		return err
	}
	for _, old := range h.written {
		if _, kept := files[old]; kept {
			continue
		}
		if err := root.Remove(relative(old)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing %s: %w", old, err)
		}
	}
	h.written = nil
	for name, file := range files {
		if err := file.write(root, relative(name)); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		h.written = append(h.written, name)
	}
	slices.Sort(h.written)
	return nil
}

// relative turns an absolute path of the host into one below its root.
func relative(name string) string { return strings.TrimPrefix(path.Clean(name), "/") }

// hostFile is a file of a host, or a link when linkTo says so.
type hostFile struct {
	content []byte
	mode    fs.FileMode
	linkTo  string
}

// write puts the file below a root in place of what was there.
func (f hostFile) write(root *os.Root, name string) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return fmt.Errorf("creating its folder: %w", err)
	}
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replacing it: %w", err)
	}
	if f.linkTo != "" {
		return root.Symlink(f.linkTo, name)
	}
	return root.WriteFile(name, f.content, f.mode)
}

// configurationFiles are the files that a configuration puts on a host, by path.
func configurationFiles(ignition types.Config) (map[string]hostFile, error) {
	files := map[string]hostFile{}
	for _, file := range ignition.Storage.Files {
		content, err := decodeDataURL(file.Contents.Source)
		if err != nil {
			return nil, fmt.Errorf("file %s: %w", file.Path, err)
		}
		mode := fs.FileMode(0o644)
		if file.Mode != nil {
			mode = fs.FileMode(*file.Mode) & fs.ModePerm //nolint:gosec // Ignition has validated the mode.
		}
		files[file.Path] = hostFile{content: content, mode: mode}
	}
	for _, u := range ignition.Systemd.Units {
		switch {
		case u.Mask != nil && *u.Mask:
			files[path.Join(unitFolder, u.Name)] = hostFile{linkTo: "/dev/null"}
		case u.Contents != nil:
			files[path.Join(unitFolder, u.Name)] = hostFile{content: []byte(*u.Contents), mode: 0o644}
		}
		for _, dropIn := range u.Dropins {
			if dropIn.Contents != nil {
				files[path.Join(unitFolder, u.Name+".d", dropIn.Name)] = hostFile{content: []byte(*dropIn.Contents), mode: 0o644}
			}
		}
	}
	return files, nil
}

// execStarts are the command lines that an enabled unit runs to their end when it starts, and its environment. A
// program that keeps running, as those of units that are not of type oneshot do, is not among them.
func execStarts(u *types.Unit) (lines, environment []string, err error) {
	if u.Contents == nil || u.Enabled == nil || !*u.Enabled {
		return nil, nil, nil
	}
	options, err := unit.DeserializeOptions(strings.NewReader(*u.Contents))
	if err != nil {
		return nil, nil, fmt.Errorf("reading unit %s: %w", u.Name, err)
	}
	oneShot := slices.ContainsFunc(options, func(o *unit.UnitOption) bool { return o.Name == "Type" && o.Value == "oneshot" })
	for _, option := range options {
		switch {
		case option.Name == "Environment":
			environment = append(environment, strings.Trim(option.Value, `"`))
		case option.Name == "ExecStartPre", option.Name == "ExecStart" && oneShot:
			lines = append(lines, option.Value)
		}
	}
	return lines, environment, nil
}

// offlineScript is the rendered program that takes CPUs offline, each an argument.
const offlineScript = "lowlatency-offline-cpus"

// offlineCPUs are the CPUs that units of the configuration take offline. A tree does so as a part of
// booting, since more files change than the script writes.
func offlineCPUs(ignition types.Config) (string, error) {
	var offline []string
	for i := range ignition.Systemd.Units {
		lines, _, err := execStarts(&ignition.Systemd.Units[i])
		if err != nil {
			return "", err
		}
		for _, line := range lines {
			if words := strings.Fields(line); len(words) > 0 && path.Base(words[0]) == offlineScript {
				offline = append(offline, words[1:]...)
			}
		}
	}
	return strings.Join(offline, ","), nil
}

// runUnit executes what an enabled one-shot unit starts, if the program is in the tree. A program of
// the operating system itself, which the tree does not have, is passed over.
func (h *Host) runUnit(ctx context.Context, u *types.Unit) error {
	lines, environment, err := execStarts(u)
	if err != nil {
		return fmt.Errorf("host %s: %w", h.Name, err)
	}
	for _, line := range lines {
		if words := strings.Fields(line); len(words) == 5 && path.Base(words[0]) == bypassNICScript {
			if err := h.prepareNIC(words[1], words[2], words[3]); err != nil {
				return fmt.Errorf("unit %s of host %s failed: %w", u.Name, h.Name, err)
			}
			continue
		}
		before := h.hugepages()
		if err := h.execute(ctx, line, append(h.scriptEnvironment(), environment...)); err != nil {
			return fmt.Errorf("unit %s of host %s failed: %w", u.Name, h.Name, err)
		}
		if err := h.settleHugepages(before); err != nil {
			return fmt.Errorf("unit %s of host %s failed: %w", u.Name, h.Name, err)
		}
	}
	return nil
}

// bypassNICScript is the rendered program that makes the virtual functions of a NIC and binds them, or the NIC. More files
// of a tree change than it writes.
const bypassNICScript = "lowlatency-bypass-nic"

// prepareNIC does what the program does with these arguments; driver is kept where none is to be bound.
func (h *Host) prepareNIC(address, functions, driver string) error {
	count, err := strconv.Atoi(functions)
	if err != nil {
		return fmt.Errorf("preparing NIC %s: %w", address, err)
	}
	devices := []string{address}
	if count > 0 {
		if err := hosttree.CreateVirtualFunctions(h.Dir, address, count); err != nil {
			return fmt.Errorf("preparing NIC %s: %w", address, err)
		}
		if devices, err = hosttree.VirtualFunctions(h.Dir, address); err != nil {
			return fmt.Errorf("preparing NIC %s: %w", address, err)
		}
	}
	if driver == "kept" {
		return nil
	}
	for _, device := range devices {
		if err := hosttree.BindDriver(h.Dir, device, driver); err != nil {
			return fmt.Errorf("preparing NIC %s: %w", address, err)
		}
	}
	return nil
}

// hugepages are the hugepage sizes of all NUMA nodes, by file.
func (h *Host) hugepages() map[string]string {
	pools := map[string]string{}
	files, err := filepath.Glob(filepath.Join(h.Dir, "sys/devices/system/node/node*/hugepages/*/nr_hugepages"))
	if err != nil {
		return pools
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil {
			pools[file] = strings.TrimSpace(string(text))
		}
	}
	return pools
}

// settleHugepages lets the tree do what a kernel does when a script has written a number of hugepages: take the
// pages from the memory of the NUMA node, as far as it reaches, and count them for the whole host.
func (h *Host) settleHugepages(before map[string]string) error {
	for file, wanted := range h.hugepages() {
		if wanted == before[file] {
			continue
		}
		if err := os.WriteFile(file, []byte(before[file]+"\n"), 0o644); err != nil {
			return fmt.Errorf("reserving hugepages: %w", err)
		}
		if err := hosttree.WriteSetting(h.Dir, "/"+strings.TrimPrefix(file, h.Dir+"/"), wanted); err != nil {
			return fmt.Errorf("reserving hugepages: %w", err)
		}
		if got := h.hugepages()[file]; got != wanted {
			return fmt.Errorf("%s: only %s of %s hugepages could be reserved", file, got, wanted)
		}
	}
	return nil
}

// scriptEnvironment points the rendered scripts at the tree instead of the machine's own /sys and /proc.
func (h *Host) scriptEnvironment() []string {
	return []string{
		"PATH=/usr/bin:/bin",
		"LOWLATENCY_SYSFS=" + filepath.Join(h.Dir, "sys"),
		"LOWLATENCY_PROCFS=" + filepath.Join(h.Dir, "proc"),
	}
}

func (h *Host) execute(ctx context.Context, line string, environment []string) error {
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil
	}
	program := filepath.Join(h.Dir, relative(words[0]))
	if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	command := exec.CommandContext(ctx, "/bin/sh", append([]string{program}, words[1:]...)...)
	command.Env = environment
	// Ctrl-C is for who runs the host, and not for its scripts: the end of the context ends them.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", words[0], ctx.Err())
		}
		return fmt.Errorf("%s: %w: %s", words[0], err, strings.TrimSpace(output.String()))
	}
	return nil
}
