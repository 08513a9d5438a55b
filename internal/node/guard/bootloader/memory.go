// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bootloader

import (
	"context"
	"fmt"
	"slices"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
)

// memory is GRUB's environment on a host, by which GRUB is told what it starts next.
type memory struct {
	host Host
	path string
}

// environment reads GRUB's environment. One that is absent is empty.
func (m memory) environment() (environment, hostfile.State, error) {
	file, err := m.host.Read(m.path)
	if err != nil || file.Type == hostfile.Absent {
		return environment{}, hostfile.File("", 0o600), err
	}
	if file.Type != hostfile.Regular {
		return environment{}, file, fmt.Errorf("%s is %s, and no link is followed: GRUB's environment has to be a file there", m.path, file)
	}
	e, err := parseEnvironment(file.Content)
	if err != nil {
		return e, file, fmt.Errorf("%s: %w", m.path, err)
	}
	return e, file, nil
}

// Arm names the trial as what GRUB starts next. GRUB takes that away before it starts it.
func (m memory) Arm(context.Context) (Write, error) {
	e, file, err := m.environment()
	if err != nil {
		return Write{}, err
	}
	if next := e.get(nextEntry); next != "" && next != trialEntry {
		return Write{}, fmt.Errorf("somebody else has set what GRUB starts next: %q in %s", next, m.path)
	}
	return m.write(e.set(nextEntry, trialEntry), file)
}

// Disarmed is what the environment was before, where nobody else has changed it.
func (m memory) Disarmed(before hostfile.State) (Write, error) {
	e, file, err := m.environment()
	if err != nil {
		return Write{}, err
	}
	var old environment
	if before.Type == hostfile.Regular {
		if old, err = parseEnvironment(before.Content); err != nil {
			return Write{}, fmt.Errorf("%s before the trial: %w", m.path, err)
		}
	}
	without := e.without(nextEntry)
	if sameVariables(without, old.without(nextEntry)) {
		return Write{Path: m.path, Role: journal.Environment, State: before}, nil
	}
	return m.write(without, file)
}

func sameVariables(a, b environment) bool {
	return slices.Equal(a.variables, b.variables) && slices.Equal(a.comments, b.comments)
}

func (m memory) write(e environment, file hostfile.State) (Write, error) {
	block, err := e.block()
	if err != nil {
		return Write{}, err
	}
	file.Content = block
	return Write{Path: m.path, Role: journal.Environment, State: file}, nil
}
