// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bootloader

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
)

const (
	blsFolder  = "/boot/loader/entries"
	blsGRUB    = "/boot/grub2"
	blsEnding  = ".conf"
	blsOptions = "options"
	// kernelOptions is the variable of GRUB's environment that entries of RHEL 8 take their arguments from.
	kernelOptions = "$kernelopts"
	// blsNewKernels is where kernel-install takes the arguments of a new kernel's entry from.
	blsNewKernels = "/etc/kernel/cmdline"
)

// grubBLS is GRUB as RHEL, its rebuilds and Fedora set it up: an entry for each kernel in a file of its own (the Boot Loader
// Specification), read by GRUB's command blscfg.
func grubBLS() row {
	return row{
		name: "GRUB with entries in " + blsFolder,
		found: func(h Host) (bool, error) {
			names, err := h.Names(blsFolder)
			if err != nil || len(names) == 0 {
				return false, err
			}
			config, err := h.Read(blsGRUB + "/grub.cfg")
			return strings.Contains(string(config.Content), "blscfg"), err
		},
		loader: func(h Host) Loader { return bls{memory{h, blsGRUB + "/grubenv"}, h} },
	}
}

type bls struct {
	memory
	host Host
}

func (b bls) Name() string { return "GRUB" }

// Leftover is nothing: the entries are written by the guard alone.
func (b bls) Leftover() string { return "" }

// Trial is a copy of the default entry with other arguments.
func (b bls) Trial(change Arguments) ([]Write, error) {
	if err := writable(b.host, blsGRUB); err != nil {
		return nil, err
	}
	config, err := b.host.Read(blsGRUB + "/grub.cfg")
	if err != nil {
		return nil, err
	}
	if !strings.Contains(string(config.Content), nextEntry) {
		return nil, errors.New("grub.cfg does not read next_entry, so nothing can be tried once: make it with grub2-mkconfig")
	}
	e, _, err := b.environment()
	if err != nil {
		return nil, err
	}
	// GRUB sorts the entries by their names, so that a new one could become the first: what it starts must be named.
	name := path.Join(blsFolder, e.get("saved_entry")+blsEnding)
	start, err := b.host.Read(name)
	if err != nil {
		return nil, err
	}
	if e.get("saved_entry") == "" || start.Type != hostfile.Regular {
		return nil, fmt.Errorf("saved_entry in %s does not name an entry in %s, so that the trial could become what is started by default: "+
			"name one with grub2-set-default", b.path, blsFolder)
	}
	text, err := withOptions(string(start.Content), e, change)
	if err != nil {
		return nil, err
	}
	start.Content = []byte(titled(text))
	return []Write{{Path: path.Join(blsFolder, trialEntry+blsEnding), State: start}}, nil
}

// titled names the trial for people.
func titled(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "title ") {
			line = "title Low latency: trial\n"
		}
		b.WriteString(line)
	}
	return b.String()
}

// withOptions changes the arguments of an entry.
func withOptions(text string, e environment, change Arguments) (string, error) {
	var b strings.Builder
	found := false
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		if key != blsOptions || found {
			b.WriteString(line)
			continue
		}
		found = true
		options, err := changeOptions(strings.Fields(value), e, change)
		if err != nil {
			return "", err
		}
		b.WriteString(blsOptions + " " + strings.Join(options, " ") + "\n")
	}
	if !found {
		return "", errors.New("an entry has no line options, so that its kernel would be started without arguments")
	}
	return b.String(), nil
}

// changeOptions changes arguments, and looks for those of others in what a variable stands for, too.
func changeOptions(options []string, e environment, change Arguments) ([]string, error) {
	expanded := slices.Clone(options)
	if slices.Contains(options, kernelOptions) {
		expanded = append(expanded, strings.Fields(e.get(strings.TrimPrefix(kernelOptions, "$")))...)
	}
	if _, err := change.change(expanded); err != nil {
		return nil, err
	}
	return change.change(options)
}

// Permanent is nothing: the entries are what people and tools write to.
func (b bls) Permanent([]string) ([]Write, error) { return nil, nil }

// Generate changes the arguments of each entry but those for rescue, and of the kernels that will be installed. What is
// changed already stays as it is.
func (b bls) Generate(_ context.Context, change Arguments) ([]Write, error) {
	e, _, err := b.environment()
	if err != nil {
		return nil, err
	}
	names, err := b.host.Names(blsFolder)
	if err != nil {
		return nil, err
	}
	var writes []Write
	for _, name := range names {
		if !strings.HasSuffix(name, blsEnding) || strings.Contains(name, "rescue") || name == trialEntry+blsEnding {
			continue
		}
		text := func(content string) (string, error) { return withOptions(content, e, change.afresh()) }
		if writes, err = b.rewrite(writes, path.Join(blsFolder, name), text); err != nil {
			return nil, err
		}
	}
	if len(writes) == 0 {
		return nil, fmt.Errorf("%s has no entry of a kernel", blsFolder)
	}
	return b.rewrite(writes, blsNewKernels, func(content string) (string, error) {
		line, err := change.afresh().change(strings.Fields(content))
		return strings.Join(line, " ") + "\n", err
	})
}

// afresh takes away what is to be added, too, so that a change that was made already is the same when it is made again.
func (a Arguments) afresh() Arguments {
	return Arguments{Remove: slices.Concat(a.Remove, a.Add), Add: a.Add}
}

// rewrite adds a file with another content, where there is one.
func (b bls) rewrite(writes []Write, name string, change func(string) (string, error)) ([]Write, error) {
	file, err := b.host.Read(name)
	if err != nil || file.Type != hostfile.Regular {
		return writes, err
	}
	content, err := change(string(file.Content))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	file.Content = []byte(content)
	return append(writes, Write{Path: name, Role: journal.Derived, State: file}), nil
}
