// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package lab

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
)

// Configuration is what a platform writes to a node before it boots anew.
type Configuration struct {
	Files []File
	Units []Unit
}

// File is a file of a node.
type File struct {
	Path, Content string
	Mode          os.FileMode
}

// Unit is a unit of systemd.
type Unit struct {
	Name string
	// Content is "" for a unit that is there already.
	Content string
	// DropIns are additions to it by file name.
	DropIns         map[string]string
	Enabled, Masked bool
}

// Configure writes files and units, and enables and masks units for the next boot.
func (m *Machine) Configure(ctx context.Context, c Configuration) error {
	// A starved systemd may fail to reload; the machine boots anew anyway.
	const change = "systemctl --no-reload "
	files, commands := slices.Clone(c.Files), []string{"true"}
	for _, unit := range c.Units {
		path := "/etc/systemd/system/" + unit.Name
		if unit.Content != "" {
			files = append(files, File{path, unit.Content, 0o644})
		}
		for name, content := range unit.DropIns {
			files = append(files, File{path + ".d/" + name, content, 0o644})
		}
		if unit.Enabled {
			commands = append(commands, change+"enable "+unit.Name)
		}
		if unit.Masked {
			commands = append(commands, change+"mask "+unit.Name)
		}
	}
	var problems []error
	for _, file := range files {
		problems = append(problems, m.WriteFile(ctx, file.Path, file.Content, file.Mode))
	}
	_, err := m.Run(ctx, strings.Join(commands, " && "))
	return errors.Join(append(problems, err)...)
}
