// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	notation "github.com/lowlatency-dev/lowlatency-operator/internal/linux/setting"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/bootloader"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

// systemctl is how services are told, and systemd that its files have changed.
const systemctl = "/usr/bin/systemctl"

const tunedService = "tuned.service"

// change brings a path into a state, and writes down before what was there.
func (g *Guard) change(t target) error {
	now, err := g.disk.Read(t.path)
	if err != nil || now.Equal(t.state) {
		return err
	}
	if now.Type == hostfile.Other || now.Type == hostfile.Folder && t.state.Type != hostfile.Absent {
		return fmt.Errorf("%s is %s, which is not replaced by a file", t.path, now)
	}
	if t.state.Label == "" && now.Type == t.state.Type {
		// A file in the place of another has its label: made anew, it would have that of its folder, with which whoever reads it may not.
		t.state.Label = now.Label
	}
	record := &journal.Change{Path: t.path, Role: t.role, Before: now, After: t.state}
	if err := g.append(journal.Record{Change: record}); err != nil {
		return err
	}
	return hostfile.Replace(g.disk, t.path, t.state)
}

// removeFolders removes the folders that were made and that nothing needs any more.
func (g *Guard) removeFolders(h *history) error {
	if h.inForce == nil {
		return nil
	}
	for _, c := range slices.Backward(h.inForce.changes) {
		if c.After.Type != hostfile.Folder {
			continue
		}
		names, err := g.machine.Names(c.Path)
		if err != nil {
			return err
		}
		if len(names) > 0 {
			g.tell("The folder " + c.Path + " stays: it is not empty.")
			continue
		}
		if err := g.change(target{path: c.Path, state: c.Before}); err != nil {
			return err
		}
	}
	return nil
}

func (g *Guard) write(writes []bootloader.Write) error {
	for _, w := range writes {
		if w.State.Type != hostfile.Absent {
			missing, err := g.missingFolders(w.Path)
			if err != nil {
				return err
			}
			for _, folder := range missing {
				if err := g.change(target{path: folder, state: hostfile.NewFolder()}); err != nil {
					return err
				}
			}
		}
		if err := g.change(target{path: w.Path, role: w.Role, state: w.State}); err != nil {
			return err
		}
	}
	return nil
}

// reload has systemd read what was changed of its files.
func (g *Guard) reload(ctx context.Context, targets []target) error {
	touched := func(t target) bool { return strings.HasPrefix(t.path, "/etc/systemd/") }
	if !slices.ContainsFunc(targets, touched) {
		return nil
	}
	return g.machine.Tool(ctx, systemctl, "daemon-reload")
}

// services starts and stops services, and loads modules, as the operations say. TuneD is started again for other files only: when it stops,
// it puts back all that it has set, and what the kernel does until it has set that again stays.
func (g *Guard) services(ctx context.Context, operations []operation.Operation) error {
	h, err := g.load()
	if err != nil {
		return err
	}
	if err := g.leaveTuneD(ctx, h, operations); err != nil {
		return err
	}
	for i := range operations {
		o := &operations[i]
		command := now(o)
		if command == nil || o.Kind == operation.Service && isRepeated(operations, o.Name) || o.Kind == operation.TuneDProfile && !h.changesTuneD() {
			continue
		}
		if err := g.machine.Tool(ctx, command[0], command[1:]...); err != nil {
			return fmt.Errorf("%s %s: %w", strings.ToLower(string(o.Kind)), o.Name, err)
		}
	}
	return nil
}

// leaveTuneD has TuneD read its files again where its profile is one from before, or none.
func (g *Guard) leaveTuneD(ctx context.Context, h *history, operations []operation.Operation) error {
	hasProfile := slices.ContainsFunc(operations, func(o operation.Operation) bool { return o.Kind == operation.TuneDProfile })
	if hasProfile || !h.changesTuneD() {
		return nil
	}
	if err := g.machine.Tool(ctx, systemctl, "try-restart", tunedService); err != nil {
		return fmt.Errorf("starting TuneD again: %w", err)
	}
	return nil
}

// now is the program that carries an operation out on the running system; nil where there is none.
func now(o *operation.Operation) []string {
	switch o.Kind {
	case operation.TuneDProfile:
		return []string{systemctl, "try-restart", tunedService}
	case operation.Service:
		verbs := map[operation.State]string{operation.Started: "start", operation.Stopped: "stop", operation.Restarted: "try-restart"}
		return []string{systemctl, verbs[o.State], o.Name}
	case operation.Module:
		if o.State == operation.Loaded {
			return []string{"/usr/sbin/modprobe", o.Name}
		}
		return []string{"/usr/sbin/modprobe", "--remove", "--quiet", o.Name}
	default:
		return nil
	}
}

// takeBack undoes the current change, from its last write to its first. What others have changed since stays and is named. Nothing
// interrupts it: it is what an interruption leads to.
func (g *Guard) takeBack(ctx context.Context, cause instruction.Reason, reason string) error {
	ctx = context.WithoutCancel(ctx)
	h, err := g.load()
	if err != nil || h.current == nil {
		return err
	}
	last := h.current
	if last.stage() != journal.Reverting {
		err := g.reached(journal.Reached{Stage: journal.Reverting, Cause: cause, Reason: reason})
		// A change that is not armed is taken back at the next start whatever the journal says of its end, so that a disk
		// without room for the record keeps nothing from being put back now.
		if err != nil && last.stage() != "" {
			return err
		}
	}
	u := undo{g: g, h: h}
	for _, c := range slices.Backward(last.changes) {
		if err := u.change(c); err != nil {
			return fmt.Errorf("putting %s back: %w", c.Path, err)
		}
	}
	if err := u.bootLoader(ctx); err != nil {
		return err
	}
	if err := g.reload(ctx, targetsOf(last.changes)); err != nil {
		return err
	}
	u.differences = append(u.differences, g.restoreTuneD(ctx, h)...)
	u.liveAgain(last.changes)
	u.differences = append(u.differences, g.restoreKubelet(ctx, h)...)
	for _, difference := range u.differences {
		g.tell("Not put back: " + difference)
	}
	g.tell("Taken back: " + reason + ".")
	return g.reached(journal.Reached{Stage: journal.Reverted, Cause: cause, Reason: reason, Differences: u.differences})
}

// restoreTuneD has TuneD read its files again that were put back. It returns what has failed, which keeps nothing else from being put
// back. A host that has rebooted, or is to, starts it with them by itself.
func (g *Guard) restoreTuneD(ctx context.Context, h *history) []string {
	if h.rebooted() || h.current.stage() == journal.Armed || !h.changesTuneD() {
		return nil
	}
	if err := g.machine.Tool(ctx, systemctl, "try-restart", tunedService); err != nil {
		return []string{"starting TuneD again: " + err.Error()}
	}
	return nil
}

// changesTuneD reports whether the current change has written files that TuneD reads when it starts.
func (h *history) changesTuneD() bool {
	return slices.ContainsFunc(h.current.changes, func(c journal.Change) bool { return strings.HasPrefix(c.Path, "/etc/tuned/") })
}

func targetsOf(changes []journal.Change) []target {
	targets := make([]target, len(changes))
	for i, c := range changes {
		targets[i].path = c.Path
	}
	return targets
}

// undo puts changes back.
type undo struct {
	g *Guard
	h *history
	// differences are what others have changed; generate tells that a tool has to make its files again.
	differences []string
	generate    bool
}

func (u *undo) change(c journal.Change) error {
	if c.Role == journal.Live {
		u.live(c)
		return nil
	}
	if c.Role == journal.Environment || c.Role == journal.Trial {
		return u.trial(c)
	}
	if err := hostfile.RemoveLeftover(u.g.disk, c.Path); err != nil {
		return err
	}
	now, err := u.g.disk.Read(c.Path)
	if err != nil || now.Equal(c.Before) {
		return err
	}
	return u.file(c, now)
}

// trial takes what starts the trial away, and leaves what others have put beside it.
func (u *undo) trial(c journal.Change) error {
	loader, err := bootloader.Find(u.g.bootHost())
	if err != nil {
		return err
	}
	if c.Role == journal.Environment {
		return u.g.restoreEnvironment(loader, c.Before)
	}
	if err := hostfile.RemoveLeftover(u.g.disk, c.Path); err != nil {
		return err
	}
	now, err := u.g.disk.Read(c.Path)
	if err != nil {
		return err
	}
	then := untried(loader, c, now)
	if now.Equal(then) {
		return nil
	}
	return hostfile.Replace(u.g.disk, c.Path, then)
}

// file puts a file back that is as it was written, and no other.
func (u *undo) file(c journal.Change, now hostfile.State) error {
	if !now.Equal(c.After) {
		if c.Role == journal.Derived {
			u.generate = true
		} else {
			u.differences = append(u.differences, difference(c, now))
		}
		return nil
	}
	err := hostfile.Replace(u.g.disk, c.Path, c.Before)
	if errors.Is(err, unix.ENOTEMPTY) {
		u.differences = append(u.differences, c.Path+" holds files of others, so the folder stays")
		return nil
	}
	return err
}

// live puts a value of the running kernel back. After a reboot it is none of ours any more. One that cannot be set keeps no file
// from being put back.
func (u *undo) live(c journal.Change) {
	if c.BootID != u.h.bootID || c.Before.Equal(c.After) {
		return
	}
	now, err := u.g.machine.Get(c.Path)
	if err == nil && notation.Same(c.Path, now, string(c.After.Content)) {
		err = u.g.machine.Set(c.Path, string(c.Before.Content))
	}
	if err != nil {
		u.differences = append(u.differences, fmt.Sprintf("%s could not be set back to %q: %v", c.Path, c.Before.Content, err))
	}
}

// liveAgain puts values back once more that TuneD has set when it was started again: it puts back what it found, which was ours.
func (u *undo) liveAgain(changes []journal.Change) {
	for _, c := range slices.Backward(changes) {
		if c.Role == journal.Live {
			u.live(c)
		}
	}
	u.differences = united(u.differences)
}

// bootLoader has the boot loader's tool make its files of what is on the disk now, where they are neither as before nor as
// they were made, and removes what an interrupted run has left.
func (u *undo) bootLoader(ctx context.Context) error {
	change := u.h.arguments()
	if len(change.Add)+len(change.Remove) == 0 {
		return nil
	}
	loader, err := bootloader.Find(u.g.bootHost())
	if err != nil {
		return err
	}
	for _, left := range loader.Leftovers() {
		if err := u.g.removeFile(left); err != nil {
			return err
		}
	}
	if !u.generate {
		return nil
	}
	writes, err := loader.Generate(ctx, bootloader.Arguments{Remove: change.Add, Add: change.Remove, Back: true})
	if err != nil {
		return err
	}
	for _, w := range writes {
		if err := hostfile.Replace(u.g.disk, w.Path, w.State); err != nil {
			return err
		}
	}
	return nil
}
