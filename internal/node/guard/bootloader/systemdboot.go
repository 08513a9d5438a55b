// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bootloader

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
)

// systemdBootName is what systemd-boot calls itself, in front of its version.
const systemdBootName = "systemd-boot "

// What systemd-boot says that it can do (LoaderFeatures): start an entry once, and order entries by their sort-key.
const (
	featureOneShot = 1 << 3
	featureSortKey = 1 << 8
)

// bootPartitions are where the partitions are mounted that systemd-boot reads: that of the firmware, and the one for more kernels.
func bootPartitions() []string { return []string{"/efi", "/boot/efi", "/boot"} }

// systemdBoot keeps what starts once in a variable of the firmware.
func systemdBoot() row {
	return row{
		name:   "systemd-boot",
		found:  findSystemdBoot,
		loader: func(h Host) Loader { return entries{oneShot{variables{h}}, h} },
	}
}

// findSystemdBoot believes what the loader has said when it started this kernel, and looks for its files where none has said anything.
func findSystemdBoot(h Host) (bool, error) {
	info, err := variables{h}.text(loaderInfo)
	if err != nil || info != "" {
		return strings.HasPrefix(info, systemdBootName), err
	}
	for _, partition := range bootPartitions() {
		if found, err := exists(h, partition+"/loader/loader.conf"); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// oneShot is the variable that names what systemd-boot starts next. It removes it before it starts anything.
type oneShot struct{ variables }

// Stuck is never so: the firmware keeps the variable, and systemd-boot has said that it removes it.
func (o oneShot) Stuck() (string, error) { return "", nil }

// Arm names the trial as what is started next.
func (o oneShot) Arm(context.Context) (Write, error) {
	next, err := o.text(loaderOneShot)
	if err != nil {
		return Write{}, err
	}
	if next != "" && next != trialEntry+entryEnding {
		return Write{}, fmt.Errorf("somebody else has set what systemd-boot starts next: %q in the variable %s", next, loaderOneShot)
	}
	state := hostfile.File(string(encodeVariable(trialEntry+entryEnding)), 0o644)
	return Write{Path: variableFile(loaderOneShot), Role: journal.Environment, State: state}, nil
}

// Disarmed has no such variable, unless somebody else has set it.
func (o oneShot) Disarmed(hostfile.State) (Write, error) {
	write := Write{Path: variableFile(loaderOneShot), Role: journal.Environment}
	next, err := o.text(loaderOneShot)
	if err != nil || next == "" || next == trialEntry+entryEnding {
		return write, err
	}
	write.State, err = o.host.Read(write.Path)
	return write, err
}

// entries are those that systemd-boot reads.
type entries struct {
	oneShot

	host Host
}

func (s entries) Name() string { return "systemd-boot" }

// Leftovers are none: the entries are written by the guard alone.
func (s entries) Leftovers() []string { return nil }

// Marked looks at the entries of this installation, also at those for rescue.
func (s entries) Marked() ([]string, error) {
	m, err := s.menu()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range m.entries {
		installed, err := s.isInstalled(e)
		if err != nil {
			return nil, err
		}
		if installed {
			names = append(names, e.path)
		}
	}
	return marked(s.host, append(names, newKernels)...)
}

// Permanent is nothing: the entries are what people and tools write to.
func (s entries) Permanent([]string) ([]Write, error) { return nil, nil }

// Trial is a copy of the default entry with other arguments, which is not the default itself.
func (s entries) Trial(change Arguments) ([]Write, error) {
	if err := s.checkFeatures(); err != nil {
		return nil, err
	}
	if err := checkNewKernels(s.host, change); err != nil {
		return nil, err
	}
	m, err := s.menu()
	if err != nil {
		return nil, err
	}
	start, err := m.start()
	if err != nil {
		return nil, err
	}
	if err := s.checkStart(start); err != nil {
		return nil, err
	}
	text, err := change.changeOptions(string(start.state.Content), asTheyAre)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", start.path, err)
	}
	words, err := initialDiskReboots(s.host)
	if err != nil {
		return nil, err
	}
	state := start.state
	state.Content, state.Label = []byte(asTrial(appendOptions(text, words))), ""
	trial := newMenuEntry(path.Join(path.Dir(start.path), trialEntry+entryEnding), state)
	with := menu{defaults: m.defaults, entries: append(slices.Clone(m.entries), trial)}
	if then, err := with.start(); err != nil || then.path != start.path {
		return nil, errors.Join(err, fmt.Errorf("with the entry of the trial, systemd-boot would no longer start %s by default: "+
			"name that one in a line default of loader.conf", start.id))
	}
	return []Write{{Path: trial.path, State: trial.state}}, nil
}

// Untried takes the entry's file away: it is ours as a whole.
func (s entries) Untried(before, _ hostfile.State) hostfile.State { return before }

// Check changes all entries as Generate does.
func (s entries) Check(ctx context.Context, change Arguments) error {
	_, err := s.Generate(ctx, change)
	return err
}

func asTheyAre(options []string) []string { return options }

// checkFeatures asks the loader that has started this kernel.
func (s entries) checkFeatures() error {
	info, err := s.text(loaderInfo)
	if err != nil {
		return err
	}
	if info == "" {
		return fmt.Errorf("no loader has said that it is systemd-boot (%s): start the host with it, and mount efivarfs", variableFile(loaderInfo))
	}
	content, err := s.get(loaderFeatures)
	if err != nil {
		return err
	}
	const needed = featureOneShot | featureSortKey
	if len(content) < 8 || binary.LittleEndian.Uint64(content)&needed != needed {
		return fmt.Errorf("%s says that it cannot start an entry once, or does not order entries by their sort-key: systemd-boot 251 or newer is needed", info)
	}
	return nil
}

// checkNewKernels: without the file, a new kernel would get the arguments that happen to run when it is installed, those that are a trial's alone
// among them, which run until the next start (kernel-install of systemd, and 20-grub.install of RHEL and Fedora). Arguments can be taken away without it.
func checkNewKernels(h Host, change Arguments) error {
	file, err := h.Read(newKernels)
	if err != nil {
		return err
	}
	if file.Type == hostfile.Absent && len(change.Add) == 0 {
		return nil
	}
	if file.Type != hostfile.Regular {
		return fmt.Errorf("%s is %s, so that a new kernel would be installed with the arguments that happen to run: "+
			"write a file with the options of the default entry", newKernels, file)
	}
	if _, err := change.changeText(string(file.Content)); err != nil {
		return fmt.Errorf("%s: %w", newKernels, err)
	}
	return nil
}

// checkStart refuses a default entry that is no way back, or that is not this host's to change.
func (s entries) checkStart(e menuEntry) error {
	own, err := s.isOwn(e)
	switch {
	case err != nil:
		return err
	case e.keys["linux"] == "":
		return fmt.Errorf("the default entry %s starts no kernel by its line linux, but a unified kernel image or another program, "+
			"whose arguments are not in the entry", e.id)
	case !own:
		return fmt.Errorf("the default entry %s is one for rescue, or that of another installation (machine-id)", e.id)
	case e.left >= 0:
		return fmt.Errorf("the default entry %s is still counted, so that it is not known whether the host comes up with it: "+
			"let systemd-bless-boot.service take the counter off its name", e.id)
	default:
		return nil
	}
}

// isOwn reports whether an entry starts this installation, and is none for rescue.
func (s entries) isOwn(e menuEntry) (bool, error) {
	installed, err := s.isInstalled(e)
	return installed && !strings.Contains(e.id, rescue), err
}

// isInstalled reports whether an entry belongs to this installation.
func (s entries) isInstalled(e menuEntry) (bool, error) {
	file, err := s.host.Read("/etc/machine-id")
	if err != nil {
		return false, err
	}
	id := e.keys["machine-id"]
	return id == "" || id == strings.TrimSpace(string(file.Content)), nil
}

// Generate changes the arguments of each entry of this installation, and of the kernels that will be installed. What is changed
// already stays as it is.
func (s entries) Generate(_ context.Context, change Arguments) ([]Write, error) {
	m, err := s.menu()
	if err != nil {
		return nil, err
	}
	var writes []Write
	for _, e := range m.entries {
		own, err := s.isOwn(e)
		if err != nil {
			return nil, err
		}
		if !own || e.keys["linux"] == "" || e.id == trialEntry+entryEnding {
			continue
		}
		text := func(content string) (string, error) { return change.changeOptions(content, asTheyAre) }
		if writes, err = rewrite(s.host, writes, e.path, text); err != nil {
			return nil, err
		}
	}
	if len(writes) == 0 {
		return nil, errors.New("systemd-boot has no entry of a kernel of this installation")
	}
	return rewrite(s.host, writes, newKernels, change.changeText)
}

// menu is what systemd-boot chooses from.
type menu struct {
	entries []menuEntry
	// defaults are patterns of the default, the one that counts first in front.
	defaults []string
}

// menu reads the entries of all partitions that systemd-boot reads.
func (s entries) menu() (menu, error) {
	var m menu
	for _, partition := range bootPartitions() {
		found, err := s.entriesOf(partition)
		if err != nil {
			return m, err
		}
		m.entries = append(m.entries, found...)
	}
	if len(m.entries) == 0 {
		return m, fmt.Errorf("none of %s has entries that systemd-boot reads: mount the boot partition", strings.Join(bootPartitions(), ", "))
	}
	var err error
	m.defaults, err = s.defaults()
	return m, err
}

// entriesOf are the entries of a partition whose kernels are there.
func (s entries) entriesOf(partition string) ([]menuEntry, error) {
	folder := path.Join(partition, "loader/entries")
	names, err := s.host.Names(folder)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return strings.HasPrefix(name, ".") || !strings.HasSuffix(strings.ToLower(name), entryEnding)
	})
	if len(names) == 0 {
		return nil, nil
	}
	// Only now, because a partition that is mounted when somebody looks at it was mounted just so.
	if err := s.checkPartition(partition); err != nil {
		return nil, err
	}
	var found []menuEntry
	for _, name := range names {
		state, err := s.host.Read(path.Join(folder, name))
		if err != nil {
			return nil, err
		}
		e := newMenuEntry(path.Join(folder, name), state)
		isSeen, err := s.isSeen(partition, e)
		if err != nil {
			return nil, err
		}
		if isSeen {
			found = append(found, e)
		}
	}
	return found, nil
}

// checkPartition refuses what systemd-boot does not read, and what cannot be written to.
func (s entries) checkPartition(partition string) error {
	mounts, err := s.host.Read("/proc/1/mounts")
	if err != nil {
		return err
	}
	at := mountOf(string(mounts.Content), partition)
	switch {
	case at.point != partition:
		return fmt.Errorf("%s has entries, and no partition is mounted there, so that systemd-boot does not read them: mount it, or remove them", partition)
	case at.fileSystem != "vfat":
		return fmt.Errorf("%s is on %s, and it is not known whether systemd-boot reads that: only FAT is supported", partition, at.fileSystem)
	case !slices.Contains(at.options, "rw"):
		return fmt.Errorf("%s is mounted read-only, so that no entry can be written: mount it writable", partition)
	default:
		return nil
	}
}

// isSeen reports whether systemd-boot offers an entry: one for this processor, whose kernel is there.
func (s entries) isSeen(partition string, e menuEntry) (bool, error) {
	ours := map[string]string{"amd64": "x64", "arm64": "aa64"}[runtime.GOARCH]
	if architecture := e.keys["architecture"]; architecture != "" && !strings.EqualFold(architecture, ours) {
		return false, nil
	}
	kernel := e.keys["linux"]
	if kernel == "" {
		return e.keys["efi"] != "" || e.keys["uki"] != "", nil
	}
	kernel = path.Join(partition, path.Clean("/"+strings.ReplaceAll(kernel, `\`, "/")))
	names, err := s.host.Names(path.Dir(kernel))
	return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, path.Base(kernel)) }), err
}

// defaults are what people have said about the default: first by a variable, then in loader.conf.
func (s entries) defaults() ([]string, error) {
	configured, err := s.configured()
	if err != nil {
		return nil, err
	}
	said := map[string]string{}
	for _, name := range []string{loaderPreferred, loaderDefault, loaderLast} {
		if said[name], err = s.text(name); err != nil {
			return nil, err
		}
	}
	if said[loaderPreferred] != "" || configured["preferred"] != "" {
		return nil, errors.New("the default entry is chosen by \"preferred\", which is not supported here: choose it by \"default\" (bootctl set-default)")
	}
	patterns := make([]string, 0, 2)
	for _, pattern := range []string{said[loaderDefault], configured["default"]} {
		if pattern == "@saved" {
			pattern = said[loaderLast]
		}
		if pattern != "" {
			patterns = append(patterns, strings.ToLower(pattern))
		}
	}
	return patterns, nil
}

// configured is what loader.conf says.
func (s entries) configured() (map[string]string, error) {
	var found []string
	for _, partition := range bootPartitions() {
		file, err := s.host.Read(partition + "/loader/loader.conf")
		if err != nil {
			return nil, err
		}
		if file.Type == hostfile.Regular {
			found = append(found, string(file.Content))
		}
	}
	if len(found) > 1 {
		return nil, errors.New("there are two files loader.conf, and it is not known which one systemd-boot reads: remove the other")
	}
	return entryKeys(strings.Join(found, "")), nil
}

// start is the entry that is started by default.
func (m menu) start() (menuEntry, error) {
	ordered := slices.SortedStableFunc(slices.Values(m.entries), compareEntries)
	for _, pattern := range m.defaults {
		for _, e := range ordered {
			matches, err := path.Match(pattern, e.id)
			if err != nil {
				return menuEntry{}, fmt.Errorf("the default entry is named by %q: %w", pattern, err)
			}
			if matches {
				return e, nil
			}
		}
	}
	return ordered[0], nil
}
