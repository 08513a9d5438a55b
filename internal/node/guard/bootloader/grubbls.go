// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bootloader

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
)

const (
	blsFolder = "/boot/loader/entries"
	blsGRUB   = "/boot/grub2"
	// rescue is in the names of entries that are to start whatever has become of all others.
	rescue = "rescue"
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

// Leftovers are none: the entries are written by the guard alone.
func (b bls) Leftovers() []string { return nil }

// Marked looks at all entries, also at those for rescue: whoever makes one takes the arguments of new kernels for it.
func (b bls) Marked() ([]string, error) {
	names, err := within(b.host, blsFolder)
	if err != nil {
		return nil, err
	}
	return marked(b.host, append(names, b.path, newKernels)...)
}

// Trial is a copy of the default entry with other arguments.
func (b bls) Trial(change Arguments) ([]Write, error) {
	if err := b.checkFallback(change); err != nil {
		return nil, err
	}
	start, err := b.start()
	if err != nil {
		return nil, err
	}
	if err := b.checkAdding(string(start.Content), change); err != nil {
		return nil, err
	}
	expand, err := b.expanding()
	if err != nil {
		return nil, err
	}
	text, err := change.changeOptions(string(start.Content), expand)
	if err != nil {
		return nil, err
	}
	words, err := initialDiskReboots(b.host)
	if err != nil {
		return nil, err
	}
	start.Content = []byte(asTrial(appendOptions(text, words)))
	return []Write{{Path: path.Join(blsFolder, trialEntry+entryEnding), State: start}}, nil
}

// checkAdding refuses arguments for a host where their trial may start again after it has failed, or would stay. Arguments that are only taken away are
// never refused for that: their trial is started with those with which the host came up before.
func (b bls) checkAdding(start string, change Arguments) error {
	if len(change.Add) == 0 {
		return nil
	}
	if err := b.checkDefault(); err != nil {
		return err
	}
	return b.checkKernelsToCome(start, change)
}

// checkKernelsToCome wants the file with the arguments of new kernels, unless their entries take them from GRUB's environment, as those of RHEL 8 do.
func (b bls) checkKernelsToCome(start string, change Arguments) error {
	if kernelOptions.MatchString(start) {
		return nil
	}
	return checkNewKernels(b.host, change)
}

// start is the default entry, where it has a name and GRUB asks nobody.
func (b bls) start() (hostfile.State, error) {
	config, err := b.host.Read(blsGRUB + "/grub.cfg")
	if err != nil {
		return hostfile.State{}, err
	}
	if !strings.Contains(string(config.Content), nextEntry) {
		return hostfile.State{}, errors.New("grub.cfg does not read next_entry, so nothing can be tried once: make it with grub2-mkconfig")
	}
	e, _, err := b.environment()
	if err != nil {
		return hostfile.State{}, err
	}
	name := path.Join(blsFolder, e.get("saved_entry")+entryEnding)
	start, err := b.host.Read(name)
	if err != nil {
		return hostfile.State{}, err
	}
	if e.get("saved_entry") == "" || start.Type != hostfile.Regular {
		return hostfile.State{}, fmt.Errorf("saved_entry in %s does not name an entry in %s, so that the trial could become what is started by default: "+
			"name one with grub2-set-default", b.path, blsFolder)
	}
	return start, b.checkPassword(name, string(start.Content), string(config.Content))
}

// checkDefault refuses a host whose GRUB does not start what saved_entry names. Its command blscfg sorts the entries by their names, so that the trial
// may have any number: one that is started by default for its number would start again after it has failed, again and again. The script
// 08_fallback_counting of Fedora and RHEL has a line that names entry 1, which counts where there is a boot_counter alone.
func (b bls) checkDefault() error {
	e, _, err := b.environment()
	if err != nil {
		return err
	}
	var values []string
	for _, name := range []string{"/grub.cfg", "/custom.cfg"} {
		file, err := b.host.Read(blsGRUB + name)
		if err != nil {
			return err
		}
		values = append(values, defaultsIn(string(file.Content))...)
	}
	isNamed := false
	for _, value := range values {
		switch {
		case value == "${next_entry}" || value == "1" && e.get("boot_counter") == "":
		case value == "${saved_entry}":
			isNamed = true
		default:
			return startedByNumber("it sets default to " + value)
		}
	}
	if !isNamed {
		return startedByNumber("it never reads saved_entry")
	}
	return nil
}

func startedByNumber(why string) error {
	return fmt.Errorf("grub.cfg may start another entry by default than saved_entry names (%s), so that the trial could be started again and again: "+
		"write GRUB_DEFAULT=saved into /etc/default/grub, and make grub.cfg with grub2-mkconfig", why)
}

// checkPassword refuses a host whose GRUB asks for a password before it starts the default entry: no start of it ends by itself. The file
// user.cfg is what grub2-setpassword writes.
func (b bls) checkPassword(name, start, config string) error {
	users, err := b.host.Read(blsGRUB + "/user.cfg")
	if err != nil {
		return err
	}
	asks := userPassword.Match(users.Content) || superusers.MatchString(config) && !strings.Contains(config, "GRUB2_PASSWORD")
	if !asks || startsUnrestricted.MatchString(start) {
		return nil
	}
	return fmt.Errorf("GRUB has superusers and asks for a password before it starts the default entry, so that no start of this host ends by itself: "+
		"add the line \"grub_arg %s\" to %s", unrestricted, name)
}

// Untried takes the entry's file away: it is ours as a whole.
func (b bls) Untried(before, _ hostfile.State) hostfile.State { return before }

// Check changes all entries as Generate does.
func (b bls) Check(ctx context.Context, change Arguments) error {
	_, err := b.Generate(ctx, change)
	return err
}

var (
	userPassword       = regexp.MustCompile(`(?m)^\s*GRUB2_PASSWORD=\S`)
	startsUnrestricted = regexp.MustCompile(`(?m)^[ \t]*grub_arg[ \t].*` + unrestricted + `(?:\s|$)`)

	kernelOptions = regexp.MustCompile(`(?m)^[ \t]*options[ \t].*\$\{?kernelopts\b`)

	// usedVariable is how blscfg takes variables in options (its expand_val).
	usedVariable = regexp.MustCompile(`\$\{?([A-Za-z0-9_]+)\}?`)
	setVariable  = regexp.MustCompile(`(?m)^[ \t]*set[ \t]+([A-Za-z0-9_]+)="?([^"\n]*)"?[ \t]*$`)
)

// expanding adds what variables stand for: $kernelopts, from which entries of RHEL 8 take their arguments, $tuned_params of TuneD, any other.
// Those of GRUB's environment count; what grub.cfg sets does for the rest.
func (b bls) expanding() (func([]string) []string, error) {
	e, _, err := b.environment()
	if err != nil {
		return nil, err
	}
	config, err := b.host.Read(blsGRUB + "/grub.cfg")
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for _, set := range setVariable.FindAllStringSubmatch(string(config.Content), -1) {
		values[set[1]] = set[2]
	}
	for _, v := range e.variables {
		values[v.name] = v.value
	}
	return func(options []string) []string {
		expanded := slices.Clone(options)
		for _, option := range options {
			if !strings.HasPrefix(option, "$") {
				continue
			}
			for _, used := range usedVariable.FindAllStringSubmatch(option, -1) {
				expanded = append(expanded, strings.Fields(values[used[1]])...)
			}
		}
		return expanded
	}, nil
}

// Permanent is nothing: the entries are what people and tools write to.
func (b bls) Permanent([]string) ([]Write, error) { return nil, nil }

// Generate changes the arguments of each entry but those for rescue, and of the kernels that will be installed. What is
// changed already stays as it is.
func (b bls) Generate(_ context.Context, change Arguments) ([]Write, error) {
	expand, err := b.expanding()
	if err != nil {
		return nil, err
	}
	names, err := b.host.Names(blsFolder)
	if err != nil {
		return nil, err
	}
	var writes []Write
	for _, name := range names {
		if !strings.HasSuffix(name, entryEnding) || strings.Contains(name, rescue) || name == trialEntry+entryEnding {
			continue
		}
		text := func(content string) (string, error) { return change.changeOptions(content, expand) }
		if writes, err = rewrite(b.host, writes, path.Join(blsFolder, name), text); err != nil {
			return nil, err
		}
	}
	if len(writes) == 0 {
		return nil, fmt.Errorf("%s has no entry of a kernel", blsFolder)
	}
	return rewrite(b.host, writes, newKernels, change.changeText)
}

// rewrite adds a file with another content, where there is one.
func rewrite(h Host, writes []Write, name string, change func(string) (string, error)) ([]Write, error) {
	file, err := h.Read(name)
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
