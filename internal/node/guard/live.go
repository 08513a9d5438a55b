// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	notation "github.com/lowlatency-dev/lowlatency-operator/internal/linux/setting"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/bootloader"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

// settings are the values of the running kernel that operations set.
func settings(operations []operation.Operation) []setting {
	var all []setting
	for i := range operations {
		switch o := &operations[i]; o.Kind {
		case operation.Sysctl:
			all = append(all, setting{host.SysctlPath(o.Name), o.Value})
		case operation.Sysfs:
			all = append(all, setting{o.Path, o.Value})
		default:
		}
	}
	return all
}

// holds reports whether the running kernel has a value: in its own notation, which for CPU masks depends on how many CPUs it can have, or by being
// built without what the value switches off.
func (g *Guard) holds(s setting) bool {
	now, err := g.machine.Get(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return notation.HoldsWithout(s.path, s.value)
	}
	return err == nil && notation.Same(s.path, now, s.value)
}

// otherValues names each value that the running kernel does not have.
func (g *Guard) otherValues(operations []operation.Operation) []string {
	var differences []string
	for _, s := range settings(operations) {
		if g.holds(s) {
			continue
		}
		now, err := g.machine.Get(s.path)
		if err != nil {
			differences = append(differences, fmt.Sprintf("%s is to be %q: %v", s.path, s.value, err))
			continue
		}
		differences = append(differences, fmt.Sprintf("%s is %q and is to be %q", s.path, now, s.value))
	}
	return differences
}

// liveSettings are the values that have to be written now: those of the operations, and for those that are in force and are
// no longer wanted what they were before, in this boot. What others have made of one of those since stays.
func (g *Guard) liveSettings(h *history, operations []operation.Operation) []setting {
	var changed []setting
	wanted := map[string]bool{}
	for _, s := range settings(operations) {
		wanted[s.path], wanted[twin(s.path)] = true, true
		if !g.holds(s) {
			changed = append(changed, s)
		}
	}
	if h.inForce == nil {
		return changed
	}
	for _, c := range h.inForce.changes {
		before := setting{c.Path, string(c.Before.Content)}
		if c.Role == journal.Live && c.BootID == h.bootID && !wanted[c.Path] && !g.holds(before) && g.holds(setting{c.Path, string(c.After.Content)}) {
			changed = append(changed, before)
		}
	}
	return changed
}

// changeLive sets values of the running kernel, and writes down before what they were.
func (g *Guard) changeLive(all []setting) error {
	id, err := g.disk.Read(bootIDFile)
	if err != nil {
		return err
	}
	for _, s := range all {
		if g.holds(s) {
			continue
		}
		now, err := g.machine.Get(s.path)
		if err != nil {
			return err
		}
		bootID := strings.TrimSpace(string(id.Content))
		for _, record := range append(g.twinsOf(s, bootID), liveChange(s, bootID, now)) {
			if err := g.append(journal.Record{Change: &record}); err != nil {
				return err
			}
		}
		if err := g.machine.Set(s.path, s.value); err != nil {
			return err
		}
	}
	return nil
}

// settleLive sets values once more that something else has set since, as TuneD does when it stops: it puts back what it has found when it
// started, and that was our value.
func (g *Guard) settleLive(all []setting) error {
	for _, s := range all {
		if g.holds(s) {
			continue
		}
		if err := g.machine.Set(s.path, s.value); err != nil {
			return err
		}
	}
	return nil
}

// bootLive sets the values of the running kernel after a boot. One that cannot be set keeps no other from being set: the
// verification finds it.
func (g *Guard) bootLive(operations []operation.Operation) error {
	var problems []error
	for _, s := range settings(operations) {
		if g.holds(s) {
			continue
		}
		if err := g.machine.Set(s.path, s.value); err != nil {
			problems = append(problems, fmt.Errorf("setting %s: %w", s.path, err))
		}
	}
	return errors.Join(problems...)
}

// removeStateFiles removes the files in which the kubelet remembers policies, before it starts: those of a plan that is tried,
// kept or was taken back. A kubelet does not start with a file of another policy, or of another amount of memory.
func (g *Guard) removeStateFiles(h *history) error {
	var problems []error
	for _, e := range []*enactment{h.inForce, h.current} {
		if e == nil {
			continue
		}
		for _, name := range stateFiles(e.begin.Operations) {
			if err := g.removeFile(name); err != nil {
				problems = append(problems, fmt.Errorf("removing a file of the kubelet's state: %w", err))
			}
		}
	}
	return errors.Join(problems...)
}

// stateFiles are the paths of the files that operations have removed before each start of the kubelet.
func stateFiles(operations []operation.Operation) []string {
	var names []string
	for i := range operations {
		if operations[i].Kind == operation.StateFile {
			names = append(names, operations[i].Path)
		}
	}
	return names
}

// bootHost is the host as boot loaders see it.
type bootHost struct{ g *Guard }

func (g *Guard) bootHost() bootloader.Host { return bootHost{g} }

func (b bootHost) Read(name string) (hostfile.State, error) { return b.g.disk.Read(name) }
func (b bootHost) Names(folder string) ([]string, error)    { return b.g.machine.Names(folder) }
func (b bootHost) Discard(name string) error                { return b.g.removeFile(name) }
func (b bootHost) Tool(ctx context.Context, program string, arguments ...string) error {
	return b.g.machine.Tool(ctx, program, arguments...)
}
