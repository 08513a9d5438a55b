// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package bootloader knows how kernel arguments get to the kernel, and how it comes back without them: for each boot loader,
// an entry that is started once, and what makes the arguments permanent afterwards.
package bootloader

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

// Host is what a boot loader needs of the host.
type Host interface {
	// Read returns what is at a path, and follows no link.
	Read(name string) (hostfile.State, error)
	// Names are the names in a folder, ascending; none where it is absent.
	Names(folder string) ([]string, error)
	// Discard removes a file that a tool has left; it is no error where there is none.
	Discard(name string) error
	// Tool runs one of the boot loader's own programs.
	Tool(ctx context.Context, program string, arguments ...string) error
}

// Write is a file that is to be written, and who else writes it.
type Write struct {
	Path  string
	Role  journal.Role
	State hostfile.State
}

// Arguments are a change of the kernel's command line: those that we added before and take away, and those that we add.
type Arguments struct {
	Remove, Add []string
	// Fallback says which way back is enough while they are tried.
	Fallback operation.Fallback
	// Back tells that a trial is taken back: what others have made of the line meanwhile keeps nothing from being put back.
	Back bool
}

// Loader is one boot loader on one host.
type Loader interface {
	// Name of the boot loader, for people.
	Name() string
	// Stuck says why a trial whose kernel does not come up would be started again and again; "" where it is started once.
	Stuck() (string, error)
	// Trial are the files of an entry with the changed arguments. The default entry stays as it is.
	Trial(change Arguments) ([]Write, error)
	// Check says why the changed arguments could not be made permanent as they are to be tried, such as words that others have put where
	// Generate would take them from. It makes what Generate makes, and leaves nothing of it.
	Check(ctx context.Context, change Arguments) error
	// Arm is the boot loader's memory, in which the next start is the trial, once. The files of the trial are on the disk, and what the boot
	// loader's own tools find wrong with them is an error.
	Arm(ctx context.Context) (Write, error)
	// Untried is what a file of the trial becomes that others have changed since: what is theirs, without our entry. Before is what was there
	// before the trial.
	Untried(before, now hostfile.State) hostfile.State
	// Disarmed is the boot loader's memory without the trial. Before is what it was before it was armed.
	Disarmed(before hostfile.State) (Write, error)
	// Permanent are the files of which Generate makes what the boot loader reads; none where there are no such files.
	Permanent(add []string) ([]Write, error)
	// Generate makes what the boot loader reads of what is on the disk now, checks it, and returns it. The arguments must be
	// in the line of the default entry, and no others of ours. Where any are added, that line must be the one that was tried.
	Generate(ctx context.Context, change Arguments) ([]Write, error)
	// Marked are the files with arguments of ours: those that the boot loader reads, and those of which others make them.
	Marked() ([]string, error)
	// Leftovers are files that are there while Generate runs, and afterwards only when it was interrupted.
	Leftovers() []string
}

// row is a boot loader: how it is found on a host.
type row struct {
	// found tells that the host starts with it.
	found func(h Host) (bool, error)
	// loader makes one; nil where arguments have no way back with it, and advice says what to do instead.
	loader func(h Host) Loader
	name   string
	advice string
}

// rows are the boot loaders, the more particular ones first.
func rows() []row {
	return []row{rpmOSTree(), raspberryPi(), unifiedKernelImage(), systemdBoot(), grubBLS(), grubDebian(), extlinux()}
}

// Find returns the boot loader of a host. It is an error, with what to do instead, when the host has one with which
// arguments have no way back.
func Find(h Host) (Loader, error) {
	for _, r := range rows() {
		found, err := r.found(h)
		if err != nil {
			return nil, fmt.Errorf("looking for the boot loader %s: %w", r.name, err)
		}
		if !found {
			continue
		}
		if r.loader == nil {
			return nil, fmt.Errorf("kernel arguments are not supported here: the host starts with %s. %s", r.name, r.advice)
		}
		return r.loader(h), nil
	}
	return nil, fmt.Errorf("kernel arguments are not supported here: neither GRUB nor another known boot loader was found in /boot. %s",
		"Add the arguments to the kernel's command line where this host has it.")
}

// exists reports whether something is at a path.
func exists(h Host, name string) (bool, error) {
	s, err := h.Read(name)
	return s.Type != hostfile.Absent, err
}

// initialDiskReboots are the words by which an initial memory disk of dracut reboots where it does not find the root: it would wait in a
// shell for ever, and panic= does not act there. They are for the entry of a trial alone, because a host that somebody repairs needs the
// shell. Of a word that is given twice, dracut takes the last one.
func initialDiskReboots(h Host) ([]string, error) {
	found, err := exists(h, "/usr/bin/dracut")
	if err != nil || !found {
		return nil, err
	}
	return []string{"rd.shell=0", "rd.emergency=reboot"}, nil
}

// repeatable parameters may be given twice: the last one counts, or each adds something.
func repeatable(parameter string) bool {
	return slices.Contains([]string{"console", "panic", operation.MarkerParameter}, parameter)
}

// Foreign are those of the arguments that we have added which a command line has although they were taken away. Others may have had those
// that can be given twice there before us.
func Foreign(line, added []string) []string {
	var foreign []string
	for _, argument := range added {
		if slices.Contains(line, argument) && (!repeatable(parameterOf(argument)) || argument == operation.MarkerOf(added)) {
			foreign = append(foreign, argument)
		}
	}
	return foreign
}

// HasMarker reports whether a text has a line of arguments of ours in it.
func HasMarker(text []byte) bool { return bytes.Contains(text, []byte(operation.MarkerParameter+"=")) }

// marked are those of the files that have a marker of ours.
func marked(h Host, names ...string) ([]string, error) {
	var found []string
	for _, name := range names {
		file, err := h.Read(name)
		if err != nil {
			return nil, err
		}
		if file.Type == hostfile.Regular && HasMarker(file.Content) {
			found = append(found, name)
		}
	}
	return found, nil
}

// within are the paths of all that is in a folder.
func within(h Host, folder string) ([]string, error) {
	names, err := h.Names(folder)
	paths := make([]string, 0, len(names))
	for _, name := range names {
		paths = append(paths, path.Join(folder, name))
	}
	return paths, err
}

// change returns a line of arguments with the change made. What others have put there stays, where it is. It is an error
// when others have put a parameter there that is to be added.
func (a Arguments) change(line []string) ([]string, error) {
	changed := slices.Clone(line)
	for _, ours := range slices.Backward(a.Remove) {
		// Ours stand behind those of others.
		for i, argument := range slices.Backward(changed) {
			if argument == ours {
				changed = slices.Delete(changed, i, i+1)
				break
			}
		}
	}
	var foreign []string
	for _, argument := range changed {
		name := parameterOf(argument)
		given := func(added string) bool { return parameterOf(added) == name }
		if !repeatable(name) && slices.ContainsFunc(a.Add, given) {
			foreign = append(foreign, argument)
		}
	}
	if len(foreign) > 0 {
		return nil, fmt.Errorf("the kernel's command line already has %s, which the plan sets, too: take it out where it was put, "+
			"and nothing of it is lost", strings.Join(foreign, " "))
	}
	return append(changed, a.Add...), nil
}

// compareLines returns the words that a line has and another lacks, and the other way round. Where the root is said to be is nobody's
// setting: tools spell it as they find it. The order of words counts for those of the same parameter only.
func compareLines(line, other []string) (more, less []string, isSame bool) {
	line, other = byParameter(line), byParameter(other)
	more, less = slices.Clone(line), slices.Clone(other)
	for _, word := range other {
		if i := slices.Index(more, word); i >= 0 {
			j := slices.Index(less, word)
			more, less = slices.Delete(more, i, i+1), slices.Delete(less, j, j+1)
		}
	}
	return more, less, slices.Equal(line, other)
}

func byParameter(line []string) []string {
	words := slices.DeleteFunc(slices.Clone(line), func(word string) bool { return parameterOf(word) == "root" })
	slices.SortStableFunc(words, func(a, b string) int { return strings.Compare(parameterOf(a), parameterOf(b)) })
	return words
}

func parameterOf(argument string) string {
	name, _, _ := strings.Cut(argument, "=")
	return strings.ReplaceAll(name, "-", "_")
}
