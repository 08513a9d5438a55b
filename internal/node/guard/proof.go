// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard

import (
	"fmt"
	"slices"

	notation "github.com/lowlatency-dev/lowlatency-operator/internal/linux/setting"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/bootloader"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

// foreignFile says what others have changed, as the guard has found it when it looked last: whoever reads reports may look into the
// guard's folder, and nowhere else.
const foreignFile = StateFolder + "/foreign"

// foreign is what is in that file.
type foreign struct {
	Differences []string `json:"differences"`
}

// noteForeign looks at what is in force, and writes down what others have changed. What cannot be written down keeps the guard from
// nothing.
func (g *Guard) noteForeign() {
	if err := g.lookForForeign(); err != nil {
		g.tell("What others have changed of this host could not be noted: " + err.Error())
	}
}

func (g *Guard) lookForForeign() error {
	if err := hostfile.RemoveLeftover(g.disk, foreignFile); err != nil {
		return err
	}
	h, err := g.look()
	if err != nil || h.inForce == nil || h.isChanging() {
		return err
	}
	now, err := g.changedByOthers(h.inForce)
	if err != nil {
		return err
	}
	noted, err := g.foreign()
	switch {
	case err != nil || slices.Equal(now, noted):
		return err
	case len(now) == 0:
		return g.removeFile(foreignFile)
	default:
		for _, difference := range now {
			g.tell("Changed by others: " + difference)
		}
		return g.writeState(foreignFile, foreign{Differences: now})
	}
}

// foreign is what was noted last.
func (g *Guard) foreign() ([]string, error) {
	noted := foreign{}
	_, err := g.readState(foreignFile, &noted)
	return noted.Differences, err
}

// changedByOthers is what of the files in force is not as the guard has made it. A file that tools make again whenever a kernel is
// installed only has to have the arguments still.
func (g *Guard) changedByOthers(inForce *enactment) ([]string, error) {
	var differences []string
	for _, c := range inForce.changes {
		if c.Role != journal.Ours && c.Role != journal.Derived {
			continue
		}
		now, err := g.disk.Read(c.Path)
		if err != nil {
			return nil, err
		}
		switch {
		case c.Role == journal.Ours && !now.Equal(c.After):
			differences = append(differences, difference(c, now))
		case c.Role == journal.Derived && now.Type == hostfile.Regular && bootloader.HasMarker(c.After.Content) && !bootloader.HasMarker(now.Content):
			differences = append(differences, c.Path+" has lost the kernel arguments that the guard has put there")
		}
	}
	return differences, nil
}

// unlikeBefore is all that is not as it was before all plans on a host that is given back, once nothing more of it is to be written:
// content, mode, owner and label of each file, units and their links among them, values of the running kernel, its command line, what the
// boot loader reads and remembers. What cannot be looked at is named, too. None of it is written over.
func (g *Guard) unlikeBefore(h *history) []string {
	return united(h.current.begin.Differences, g.filesUnlike(h), g.trialUnlike(h.current), g.linesUnlike(h))
}

func (g *Guard) filesUnlike(h *history) []string {
	var differences []string
	for _, c := range h.inForce.changes {
		if c.Role == journal.Live {
			differences = append(differences, g.valueUnlike(h, c)...)
			continue
		}
		now, err := g.disk.Read(c.Path)
		switch {
		case err != nil:
			differences = append(differences, notCompared(c.Path, err))
		case c.Role == journal.Derived:
			differences = append(differences, derivedUnlike(c, now)...)
		case !now.Equal(c.Before):
			differences = append(differences, leftover(c, now))
		}
	}
	return differences
}

func notCompared(what string, err error) string {
	return fmt.Sprintf("%s could not be compared with what it was before: %v", what, err)
}

// leftover says what a file is that is not as it was before.
func leftover(c journal.Change, now hostfile.State) string {
	switch {
	case now.Type == hostfile.Folder:
		return c.Path + " holds files of others, so the folder stays"
	case now.Equal(c.After):
		return fmt.Sprintf("%s is still as the guard has made it, and was %s before", c.Path, c.Before)
	default:
		return difference(c, now)
	}
}

// derivedUnlike compares a file that a tool makes of others: its content may be another when a kernel was installed meanwhile, which
// may have taken it away, too.
func derivedUnlike(c journal.Change, now hostfile.State) []string {
	then := c.Before
	then.Content = now.Content
	if now.Type == hostfile.Absent || then.Type == hostfile.Absent || now.Equal(then) {
		return nil
	}
	return []string{fmt.Sprintf("%s is %s, and was %s before", c.Path, now, c.Before)}
}

// valueUnlike compares a value of the kernel that has run since it was set.
func (g *Guard) valueUnlike(h *history, c journal.Change) []string {
	if c.BootID != h.bootID {
		return nil
	}
	now, err := g.machine.Get(c.Path)
	switch {
	case err != nil:
		return []string{notCompared(c.Path, err)}
	case !notation.Same(c.Path, now, string(c.Before.Content)):
		return []string{fmt.Sprintf("%s is %q, and was %q before", c.Path, now, c.Before.Content)}
	default:
		return nil
	}
}

// trialUnlike compares what was there for the trial alone. The first change of a path tells what was there before.
func (g *Guard) trialUnlike(current *enactment) []string {
	var differences []string
	seen := map[string]bool{}
	for _, c := range current.changes {
		if c.Role != journal.Trial || seen[c.Path] {
			continue
		}
		seen[c.Path] = true
		now, err := g.disk.Read(c.Path)
		switch {
		case err != nil:
			differences = append(differences, notCompared(c.Path, err))
		case !now.Equal(c.Before):
			differences = append(differences, fmt.Sprintf("%s is %s, and was %s before the trial", c.Path, now, c.Before))
		}
	}
	return differences
}

// linesUnlike looks for arguments of ours: of the running kernel, and of any that the boot loader would start.
func (g *Guard) linesUnlike(h *history) []string {
	added := operation.Arguments(h.inForce.begin.Operations)
	if len(added) == 0 {
		return nil
	}
	var differences []string
	for _, argument := range bootloader.Foreign(h.running, added) {
		differences = append(differences, "the running kernel was started with "+argument+", which the guard has taken away")
	}
	loader, err := bootloader.Find(g.bootHost())
	if err != nil {
		return append(differences, notCompared("what the boot loader reads", err))
	}
	marked, err := loader.Marked()
	if err != nil {
		differences = append(differences, notCompared("what the boot loader reads", err))
	}
	for _, name := range marked {
		differences = append(differences, name+" has kernel arguments that the guard had added")
	}
	return append(differences, g.memoryUnlike(loader, h.current)...)
}

// memoryUnlike looks whether the boot loader would start the trial next.
func (g *Guard) memoryUnlike(loader bootloader.Loader, current *enactment) []string {
	for _, c := range current.changes {
		if c.Role != journal.Environment {
			continue
		}
		disarmed, err := loader.Disarmed(c.Before)
		if err != nil {
			return []string{notCompared(c.Path, err)}
		}
		now, err := g.disk.Read(disarmed.Path)
		switch {
		case err != nil:
			return []string{notCompared(disarmed.Path, err)}
		case !now.Equal(disarmed.State):
			return []string{disarmed.Path + " has the boot loader start the trial next"}
		}
		return nil
	}
	return nil
}
