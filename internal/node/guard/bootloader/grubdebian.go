// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bootloader

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

const (
	grubConfigFile  = "/boot/grub/grub.cfg"
	grubCustomFile  = "/boot/grub/custom.cfg"
	grubEnvironment = "/boot/grub/grubenv"
	// grubGenerated is where grub-mkconfig writes: it truncates what it writes to, and a power cut then leaves no grub.cfg.
	grubGenerated = "/boot/grub/lowlatency-grub.cfg"
	// grubLookedAt is where it writes what is only looked at: nobody has written down that it is there, and a power cut takes it away.
	grubLookedAt = "/run/lowlatency-grub.cfg"
	grubDefaults = "/etc/default/grub"
	// grubArguments is read last, so that it adds to what all other files have set.
	grubArguments = "/etc/default/grub.d/zz-lowlatency.cfg"
	// argumentsComment is its first line.
	argumentsComment = "# Written by the Low Latency Node Operator; lowlatency-guard revert removes it.\n"
	// trialEntry identifies our entry.
	trialEntry = "lowlatency-trial"
	// trialStart is what its first line begins with.
	trialStart = "menuentry 'Low latency: trial' --id " + trialEntry
)

// superusers is how a configuration of GRUB gives it users with passwords.
var superusers = regexp.MustCompile(`(?m)^\s*(?:set\s+)?superusers=`)

// grubDebian is GRUB as Debian and Ubuntu set it up: one grub.cfg, made by grub-mkconfig of files in /etc.
func grubDebian() row {
	return row{
		name: "GRUB",
		found: func(h Host) (bool, error) {
			config, err := exists(h, grubConfigFile)
			if err != nil || !config {
				return false, err
			}
			return exists(h, grubDefaults)
		},
		loader: func(h Host) Loader { return debian{memory{h, grubEnvironment}, h} },
	}
}

type debian struct {
	memory
	host Host
}

func (d debian) Name() string { return "GRUB" }

// Trial adds an entry to custom.cfg, which grub.cfg reads when GRUB starts (41_custom): grub.cfg stays as it is.
func (d debian) Trial(change Arguments) ([]Write, error) {
	if err := d.checkFallback(change); err != nil {
		return nil, err
	}
	custom, err := d.host.Read(grubCustomFile)
	if err != nil {
		return nil, err
	}
	others := withoutTrial(string(custom.Content))
	start, text, err := d.start(others, change)
	if err != nil {
		return nil, err
	}
	arguments, err := changed(start, change)
	if err != nil {
		return nil, err
	}
	words, err := initialDiskReboots(d.host)
	if err != nil {
		return nil, err
	}
	head, err := trialHead(start, text, string(custom.Content))
	if err != nil {
		return nil, err
	}
	lines := append([]string{head}, start.with(append(arguments, words...))...)
	state := hostfile.File(others+strings.Join(append(lines, "}"), "\n")+"\n", 0o644)
	if custom.Type == hostfile.Regular {
		state.Mode, state.UID, state.GID, state.Label = custom.Mode, custom.UID, custom.GID, custom.Label
	}
	return []Write{{Path: grubCustomFile, State: state}}, nil
}

// start is the default entry, and the text of grub.cfg, where a trial can be started once; where a change adds arguments, only where its entry cannot become
// the default one. Arguments that are only taken away are never refused for that.
func (d debian) start(others string, change Arguments) (*entry, string, error) {
	config, text, err := d.config()
	if err != nil {
		return nil, "", err
	}
	if !strings.Contains(text, "/custom.cfg") || !strings.Contains(text, "next_entry") {
		return nil, "", errors.New("grub.cfg reads neither custom.cfg nor next_entry, so nothing can be tried once: let grub-mkconfig make it, with 00_header and 41_custom")
	}
	if len(change.Add) > 0 {
		if err := checkDefaultBefore(config.defaultEntry, text, others); err != nil {
			return nil, "", err
		}
	}
	start, err := config.find(config.defaultEntry)
	return start, text, err
}

// checkDefaultBefore refuses a default that is, or could become, an entry of custom.cfg: one that others set or have there, which is not the one that grub.cfg
// tells of, or a number that entries of grub.cfg do not reach before it reads that file. With the entry of the trial there, the number could be the
// trial's, which would start again after it has failed, again and again.
func checkDefaultBefore(defaultEntry, config, others string) error {
	if len(defaultsIn(others)) > 0 {
		return fmt.Errorf("%s sets default, so that GRUB starts another entry than grub.cfg tells of: name it with GRUB_DEFAULT in /etc/default/grub and "+
			"update-grub, and take it out of there", grubCustomFile)
	}
	before, _, _ := strings.Cut(config, "/custom.cfg")
	entries := parseGRUBConfig(before).entries
	first, _, _ := strings.Cut(defaultEntry, ">")
	first = strings.TrimSpace(first)
	_, notANumber := strconv.Atoi(first)
	isThere := pick(entries, first) != nil
	if isThere || notANumber != nil && pick(parseGRUBConfig(others).entries, first) == nil {
		return nil
	}
	return fmt.Errorf("GRUB starts the entry %q by default, and grub.cfg has none before it reads custom.cfg, so that the entry of the trial could become "+
		"what is started: name another one with GRUB_DEFAULT in /etc/default/grub and update-grub, or with grub-set-default", defaultEntry)
}

// trialHead begins the entry of the trial, which is started without a password as the default entry is. Where GRUB has users and asks for
// one before that, no start of the host ends without somebody at its console: neither the trial nor the way back.
func trialHead(start *entry, texts ...string) (string, error) {
	head := trialStart
	if start.unrestricted {
		return head + " " + unrestricted + " {", nil
	}
	if slices.ContainsFunc(texts, superusers.MatchString) {
		return "", fmt.Errorf("GRUB has superusers and asks for a password before it starts the default entry %q, so that no start of this host ends by itself: "+
			"add %s to CLASS in /etc/grub.d/10_linux and run update-grub", start.title, unrestricted)
	}
	return head + " {", nil
}

// withoutTrial is a custom.cfg without entries of ours: one may stay behind when others have written the file while something was tried, and GRUB
// takes the first of a name. One whose end others have taken away stays: nobody knows where theirs begins.
func withoutTrial(content string) string {
	var kept, ours strings.Builder
	depth := 0
	for line := range strings.Lines(content) {
		if depth == 0 && !strings.HasPrefix(line, trialStart+" ") {
			kept.WriteString(line)
			continue
		}
		ours.WriteString(line)
		if depth += nesting(line); depth == 0 {
			ours.Reset()
		}
	}
	return kept.String() + ours.String()
}

// Untried cuts our entry out of custom.cfg, and leaves what others have made of the rest.
func (d debian) Untried(before, now hostfile.State) hostfile.State {
	others := withoutTrial(string(now.Content))
	if before.Type == hostfile.Absent && others == "" {
		return before
	}
	now.Content = []byte(others)
	return now
}

// Arm looks at custom.cfg first: the entry is read from the arguments of others, too.
func (d debian) Arm(ctx context.Context) (Write, error) {
	if err := d.checkScript(ctx, grubCustomFile); err != nil {
		return Write{}, err
	}
	return d.memory.Arm(ctx)
}

// checkScript is an error where GRUB could not read a file.
func (d debian) checkScript(ctx context.Context, name string) error {
	if err := d.host.Tool(ctx, "/usr/bin/grub-script-check", name); err != nil {
		return fmt.Errorf("GRUB cannot read %s: %w", name, err)
	}
	return nil
}

// Check has grub-mkconfig make a grub.cfg, and looks whether its default entry has the line that the one in use has. An edit of
// /etc/default/grub that nobody has made a grub.cfg of would become permanent together with our arguments, and was not tried with them.
// Where arguments only go, it keeps nothing from being given back.
func (d debian) Check(ctx context.Context, change Arguments) error {
	if len(change.Add) == 0 {
		return nil
	}
	_, text, err := d.config()
	if err != nil {
		return err
	}
	had, err := d.defaultLine([]byte(text))
	if err != nil {
		return err
	}
	made, err := d.made(ctx, grubLookedAt)
	if err != nil {
		return err
	}
	line, err := d.defaultLine(made.Content)
	if err != nil {
		return err
	}
	would, err := change.dueIn(line)
	if err != nil {
		more, _, _ := compareLines(line, had)
		return fmt.Errorf("%w (grub-mkconfig takes it from %s)", err, d.sources(more))
	}
	want, err := change.dueIn(had)
	if err != nil {
		return err
	}
	return d.sameLine(would, want)
}

// defaultLine are the arguments of the default entry of a grub.cfg.
func (d debian) defaultLine(content []byte) ([]string, error) {
	config, err := d.resolved(content)
	if err != nil {
		return nil, err
	}
	start, err := config.find(config.defaultEntry)
	if err != nil {
		return nil, err
	}
	return start.arguments()
}

// sameLine is an error where grub-mkconfig makes another line than it should.
func (d debian) sameLine(made, want []string) error {
	more, less, isSame := compareLines(made, want)
	if isSame {
		return nil
	}
	var how []string
	if len(more) > 0 {
		how = append(how, "with "+strings.Join(more, " "))
	}
	if len(less) > 0 {
		how = append(how, "without "+strings.Join(less, " "))
	}
	if len(how) == 0 {
		how = []string{"in another order"}
	}
	return fmt.Errorf("grub-mkconfig makes the line of the default entry %s, and grub.cfg has it otherwise: somebody has changed %s and has not run update-grub. "+
		"This would be kept together with the arguments of the plan, and is not tried with them: run update-grub, or take the change back",
		strings.Join(how, " and "), d.sources(more))
}

// sources are the files that words of a line are from, or all that they may be from.
func (d debian) sources(words []string) string {
	const all = grubDefaults + " or a file in /etc/default/grub.d"
	names, err := within(d.host, path.Dir(grubArguments))
	if err != nil {
		return all
	}
	var from []string
	for _, name := range append([]string{grubDefaults}, names...) {
		file, err := d.host.Read(name)
		has := func(word string) bool { return strings.Contains(string(file.Content), word) }
		if err == nil && name != grubArguments && slices.ContainsFunc(words, has) {
			from = append(from, name)
		}
	}
	return cmp.Or(strings.Join(from, ", "), all)
}

// changed are the arguments of an entry after a change.
func changed(e *entry, change Arguments) ([]string, error) {
	for _, argument := range change.Add {
		if strings.ContainsAny(argument, ";&") {
			return nil, fmt.Errorf("GRUB would end the command line within %q: it cannot be written here", argument)
		}
	}
	line, err := e.arguments()
	if err != nil {
		return nil, err
	}
	return change.change(line)
}

// config reads grub.cfg; its default is resolved.
func (d debian) config() (grubConfig, string, error) {
	file, err := d.host.Read(grubConfigFile)
	if err != nil {
		return grubConfig{}, "", err
	}
	config, err := d.resolved(file.Content)
	return config, string(file.Content), err
}

// resolved is what a grub.cfg says, with the default that the environment names where it leaves that to it.
func (d debian) resolved(content []byte) (grubConfig, error) {
	config := parseGRUBConfig(string(content))
	if config.defaultEntry != "${saved_entry}" {
		return config, nil
	}
	e, _, err := d.environment()
	if err != nil {
		return grubConfig{}, err
	}
	config.defaultEntry = e.get("saved_entry")
	return config, nil
}

// Permanent is the file that adds the arguments whenever grub.cfg is made.
func (d debian) Permanent(add []string) ([]Write, error) {
	if len(add) == 0 {
		return d.withoutArguments()
	}
	content := argumentsComment +
		`GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT ` + strings.Join(add, " ") + "\"\n"
	return []Write{{Path: grubArguments, State: hostfile.File(content, 0o644)}}, nil
}

// withoutArguments is that file without our lines: what others have added stays.
func (d debian) withoutArguments() ([]Write, error) {
	now, err := d.host.Read(grubArguments)
	if err != nil {
		return nil, err
	}
	var left strings.Builder
	for line := range strings.Lines(string(now.Content)) {
		if line != argumentsComment && !HasMarker([]byte(line)) {
			left.WriteString(line)
		}
	}
	if now.Type != hostfile.Regular || strings.TrimSpace(left.String()) == "" {
		return []Write{{Path: grubArguments}}, nil
	}
	now.Content = []byte(left.String())
	return []Write{{Path: grubArguments, State: now}}, nil
}

// Marked looks at what GRUB reads, and at what grub-mkconfig makes it of.
func (d debian) Marked() ([]string, error) {
	names, err := within(d.host, path.Dir(grubArguments))
	if err != nil {
		return nil, err
	}
	return marked(d.host, append([]string{grubConfigFile, grubCustomFile, grubDefaults}, names...)...)
}

// Leftovers are what grub-mkconfig was writing: it writes beside the file that it is told, and renames that (util/grub-mkconfig.in).
func (d debian) Leftovers() []string { return leftovers(grubGenerated) }

func leftovers(name string) []string { return []string{name + ".new", name} }

// Generate has grub-mkconfig make a grub.cfg beside the one in use, and looks at it before it takes its place.
func (d debian) Generate(ctx context.Context, change Arguments) ([]Write, error) {
	made, err := d.made(ctx, grubGenerated)
	if err != nil {
		return nil, err
	}
	old, err := d.host.Read(grubConfigFile)
	if err != nil {
		return nil, err
	}
	if err := d.checkGenerated(made.Content, old.Content, change); err != nil {
		return nil, fmt.Errorf("the new grub.cfg is not put in place: %w", err)
	}
	old.Type, old.Content = hostfile.Regular, made.Content
	return []Write{{Path: grubConfigFile, Role: journal.Derived, State: old}}, nil
}

// made is what grub-mkconfig makes, without the file that it has written it to.
func (d debian) made(ctx context.Context, name string) (hostfile.State, error) {
	made, err := d.make(ctx, name)
	for _, left := range leftovers(name) {
		err = errors.Join(err, d.host.Discard(left))
	}
	return made, err
}

func (d debian) make(ctx context.Context, name string) (hostfile.State, error) {
	if err := d.host.Tool(ctx, "/usr/sbin/grub-mkconfig", "-o", name); err != nil {
		return hostfile.State{}, fmt.Errorf("making grub.cfg: %w", err)
	}
	if err := d.checkScript(ctx, name); err != nil {
		return hostfile.State{}, err
	}
	made, err := d.host.Read(name)
	if err == nil && len(bytes.TrimSpace(made.Content)) == 0 {
		err = errors.New("the new grub.cfg is empty")
	}
	return made, err
}

// checkGenerated looks for the arguments in the line of the default entry, and for anything else that was not in the line before.
func (d debian) checkGenerated(content, old []byte, change Arguments) error {
	line, err := d.defaultLine(content)
	if err != nil {
		return err
	}
	for _, argument := range change.Add {
		if !slices.Contains(line, argument) {
			return fmt.Errorf("its default entry lacks %s: another file in /etc/default/grub.d sets GRUB_CMDLINE_LINUX_DEFAULT after ours", argument)
		}
	}
	if marker := operation.MarkerOf(line); marker != operation.MarkerOf(change.Add) {
		return fmt.Errorf("its default entry has the marker %q, which is not that of the arguments", marker)
	}
	if len(change.Add) == 0 || change.Back {
		return nil
	}
	had, err := d.defaultLine(old)
	if err != nil {
		return err
	}
	want, err := change.dueIn(had)
	if err != nil {
		return err
	}
	return d.sameLine(line, want)
}
