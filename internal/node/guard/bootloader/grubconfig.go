// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bootloader

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// entry is a menuentry or a submenu of grub.cfg.
type entry struct {
	title, id string
	// body are the lines between the braces of a menuentry.
	body []string
	// entries are those of a submenu.
	entries []*entry
	submenu bool
	// unrestricted tells that it and the submenus around it are started without a password where GRUB has users.
	unrestricted bool
}

// unrestricted is the option of an entry that GRUB starts without a password, also where it has users (menuentry in GRUB's manual).
const unrestricted = "--unrestricted"

var (
	entryStart   = regexp.MustCompile(`^\s*(menuentry|submenu)\s+(?:'([^']*)'|"([^"]*)")(.*)\{\s*$`)
	entryID      = regexp.MustCompile(`(?:--id|\$menuentry_id_option)\s+(?:'([^']*)'|"([^"]*)"|(\S+))`)
	setDefault   = regexp.MustCompile(`^\s*set default="?([^"]*)"?\s*$`)
	anyDefault   = regexp.MustCompile(`(?:^|[\s;])default=["']?([^"'\s;]*)`)
	linuxCommand = regexp.MustCompile(`^(\s*linux(?:16|efi)?\s+\S+)(.*)$`)
	blockEnd     = regexp.MustCompile(`^\s*\}\s*$`)
	blockStart   = regexp.MustCompile(`\{\s*$`)
)

// defaultsIn are the values to which a text of GRUB's language sets the default entry, whoever has written it; of a value with spaces, the first word.
func defaultsIn(text string) []string {
	var values []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		for _, set := range anyDefault.FindAllStringSubmatch(line, -1) {
			values = append(values, set[1])
		}
	}
	return values
}

// grubConfig is what a grub.cfg says that matters here: what the default is, and which entries there are.
type grubConfig struct {
	defaultEntry string
	entries      []*entry
}

// parseGRUBConfig reads a grub.cfg as grub-mkconfig writes it: one command a line, the braces of entries at ends of lines.
func parseGRUBConfig(content string) grubConfig {
	var config grubConfig
	root := &entry{submenu: true, unrestricted: true}
	open := []*entry{root}
	depth := 0
	for line := range strings.SplitSeq(content, "\n") {
		current := open[len(open)-1]
		start := entryStart.FindStringSubmatch(line)
		switch {
		case start != nil && current.submenu && depth == 0:
			next := newEntry(start, current)
			current.entries = append(current.entries, next)
			open = append(open, next)
		case blockEnd.MatchString(line) && depth == 0 && len(open) > 1:
			open = open[:len(open)-1]
		default:
			depth += nesting(line)
			current.body = append(current.body, line)
			if set := setDefault.FindStringSubmatch(line); set != nil && set[1] != "${next_entry}" {
				config.defaultEntry = set[1]
			}
		}
	}
	config.entries = root.entries
	return config
}

// nesting counts the braces that a line of a function or of an entry opens and closes.
func nesting(line string) int {
	switch {
	case blockEnd.MatchString(line):
		return -1
	case blockStart.MatchString(line):
		return 1
	default:
		return 0
	}
}

func newEntry(start []string, within *entry) *entry {
	e := &entry{submenu: start[1] == "submenu", title: start[2] + start[3]}
	e.unrestricted = within.unrestricted && slices.Contains(strings.Fields(start[4]), unrestricted)
	if id := entryID.FindStringSubmatch(start[4]); id != nil {
		e.id = id[1] + id[2] + id[3]
	}
	return e
}

// find returns the entry that GRUB starts for a name: a number, a title or an identifier, with > between a submenu and its
// entries. GRUB starts the first one when it finds none.
func (c *grubConfig) find(name string) (*entry, error) {
	entries, found := c.entries, (*entry)(nil)
	for part := range strings.SplitSeq(name, ">") {
		found = pick(entries, strings.TrimSpace(part))
		if found == nil {
			break
		}
		entries = found.entries
	}
	if found == nil && len(c.entries) > 0 {
		found = c.entries[0]
	}
	for found != nil && found.submenu {
		if len(found.entries) == 0 {
			found = nil
			break
		}
		found = found.entries[0]
	}
	if found == nil {
		return nil, fmt.Errorf("grub.cfg has no entry %q, and no first one", name)
	}
	return found, nil
}

func pick(entries []*entry, name string) *entry {
	if number, err := strconv.Atoi(name); err == nil {
		if number >= 0 && number < len(entries) {
			return entries[number]
		}
		return nil
	}
	for _, e := range entries {
		if e.title == name || e.id == name && e.id != "" {
			return e
		}
	}
	return nil
}

// arguments are those of the entry's kernel.
func (e *entry) arguments() ([]string, error) {
	for _, line := range e.body {
		if linux := linuxCommand.FindStringSubmatch(line); linux != nil {
			return strings.Fields(linux[2]), nil
		}
	}
	return nil, fmt.Errorf("the entry %q of grub.cfg starts no kernel with the command linux", e.title)
}

// with returns the lines of the entry with other arguments.
func (e *entry) with(arguments []string) []string {
	body := slices.Clone(e.body)
	for i, line := range body {
		if linux := linuxCommand.FindStringSubmatch(line); linux != nil {
			body[i] = linux[1] + " " + strings.Join(arguments, " ")
			break
		}
	}
	return body
}
