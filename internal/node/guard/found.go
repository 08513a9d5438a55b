// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

// What the running kernel has of a setting before the guard sets it is what the setting goes back to when it is taken out of a plan. It is
// noted with the boot that it is of: when the setting comes, and at each start of the host before it is set again. The guard starts after
// systemd-sysctl and before TuneD, so that a value of the host's own /etc/sysctl.d is what is found, and one of our TuneD profile is not.

// found are the records of what the kernel of this boot has of settings of which no change says it yet. A value that a file of ours may have
// set is not the host's, and one that cannot be read is not known: there is none of those.
func (g *Guard) found(h *history, all []setting, changes []journal.Change, ours []operation.Operation) []journal.Change {
	var noted []journal.Change
	for _, s := range all {
		if isNoted(changes, s.path, h.bootID) || isMentioned(ours, s) {
			continue
		}
		now, err := g.machine.Get(s.path)
		if err != nil {
			continue
		}
		noted = append(noted, g.twinsOf(s, h.bootID)...)
		noted = append(noted, liveChange(s, h.bootID, now))
	}
	return noted
}

// twin is the file that the kernel sets to 0 when another one is written, as both say the same in other units (mm/page-writeback.c); "" for a
// file that has none.
func twin(path string) string {
	folder, name, _ := strings.Cut(path, "/proc/sys/vm/dirty_")
	switch {
	case folder != "":
		return ""
	case name == "ratio", name == "background_ratio":
		return strings.TrimSuffix(path, "ratio") + "bytes"
	case name == "bytes", name == "background_bytes":
		return strings.TrimSuffix(path, "bytes") + "ratio"
	default:
		return ""
	}
}

// twinsOf are the records for what the kernel sets to 0 because of a setting. They come before that of the setting, whose own value before was
// 0 then: put back first or last, the twin ends with its value.
func (g *Guard) twinsOf(s setting, bootID string) []journal.Change {
	other := twin(s.path)
	if other == "" {
		return nil
	}
	now, err := g.machine.Get(other)
	if err != nil || now == "0" {
		return nil
	}
	return []journal.Change{liveChange(setting{other, "0"}, bootID, now)}
}

func liveChange(s setting, bootID, now string) journal.Change {
	return journal.Change{
		Path: s.path, Role: journal.Live, BootID: bootID,
		Before: hostfile.State{Content: []byte(now)}, After: hostfile.State{Content: []byte(s.value)},
	}
}

// isNoted reports whether changes say what the kernel of a boot had at a path.
func isNoted(changes []journal.Change, path, bootID string) bool {
	return slices.ContainsFunc(changes, func(c journal.Change) bool {
		return c.Role == journal.Live && c.BootID == bootID && c.Path == path
	})
}

// isMentioned reports whether the text of an operation speaks of a setting, as a file of /etc/sysctl.d, a unit or a profile of TuneD may.
func isMentioned(operations []operation.Operation, s setting) bool {
	name := strings.TrimPrefix(strings.TrimPrefix(s.path, "/proc/sys/"), "/sys/")
	dotted := strings.ReplaceAll(name, "/", ".")
	return slices.ContainsFunc(operations, func(o operation.Operation) bool {
		return strings.Contains(o.Content, name) || strings.Contains(o.Content, dotted)
	})
}

// readAtBoot are the operations whose files may have set something before the guard runs at a start of the host: TuneD starts after it.
func readAtBoot(operations []operation.Operation) []operation.Operation {
	return slices.DeleteFunc(slices.Clone(operations), func(o operation.Operation) bool { return o.Kind == operation.TuneDProfile })
}

// noteTrial notes in the journal what the kernel of a trial has before the settings of the trial are set. What cannot be noted keeps nothing
// from being set: that setting then needs another start of the host to go.
func (g *Guard) noteTrial(h *history) {
	operations := h.current.begin.Operations
	for _, c := range g.found(h, settings(operations), h.current.changes, readAtBoot(operations)) {
		if err := g.append(journal.Record{Change: &c}); err != nil {
			g.tellUnnoted(err)
			return
		}
	}
}

// noteInForce does the same for what is in force. What was noted of a kernel that no longer runs goes.
func (g *Guard) noteInForce(h *history) {
	e := h.inForce
	noted := g.found(h, settings(e.begin.Operations), e.changes, readAtBoot(e.begin.Operations))
	if len(noted) == 0 {
		return
	}
	records := []journal.Record{{Begin: &e.begin}}
	stays := func(c *journal.Change) bool { return c.Role != journal.Live || c.BootID == h.bootID }
	for i := range e.changes {
		if stays(&e.changes[i]) {
			records = append(records, journal.Record{Change: &e.changes[i]})
		}
	}
	for i := range noted {
		records = append(records, journal.Record{Change: &noted[i]})
	}
	if err := g.replaceJournal(inForceFile, append(records, journal.Record{Stage: &e.last})); err != nil {
		g.tellUnnoted(err)
	}
}

func (g *Guard) tellUnnoted(err error) {
	g.tell(fmt.Sprintf("What this kernel had before its values are set could not be noted, so that they go with its end only: %v", err))
}

// noteHeld are the records for settings that come with operations and have their values already: what they go back to is what is there.
func (g *Guard) noteHeld(h *history, operations []operation.Operation) []journal.Change {
	var held []setting
	for _, s := range settings(operations) {
		if g.holds(s) && !h.sets(s.path) {
			held = append(held, s)
		}
	}
	return g.found(h, held, nil, h.operationsInForce())
}

func (h *history) operationsInForce() []operation.Operation {
	if h.inForce == nil {
		return nil
	}
	return h.inForce.begin.Operations
}

// sets reports whether what is in force sets a value of the kernel.
func (h *history) sets(path string) bool {
	return slices.ContainsFunc(settings(h.operationsInForce()), func(s setting) bool { return s.path == path })
}

// isOurs reports whether what a live change of the current enactment has found may have been set by what was in force then, and is nothing to
// go back to. What was found in a later boot was found before anything was set.
func (h *history) isOurs(c journal.Change) bool {
	if h.inForce == nil || c.Role != journal.Live || c.BootID != h.current.begin.BootID || isNoted(h.inForce.changes, c.Path, c.BootID) {
		return false
	}
	return h.sets(c.Path) || isMentioned(h.operationsInForce(), setting{path: c.Path})
}

// unknownBefore reports whether values of the running kernel are no longer wanted of which nobody knows what this kernel had before: a guard
// before this one has set them when it started, or it could not be noted. What this kernel does not have needs nothing.
func (g *Guard) unknownBefore(h *history, operations []operation.Operation) bool {
	if h.inForce == nil {
		return false
	}
	wanted := settings(operations)
	return slices.ContainsFunc(settings(h.inForce.begin.Operations), func(s setting) bool {
		if isNoted(h.inForce.changes, s.path, h.bootID) || slices.ContainsFunc(wanted, func(w setting) bool { return w.path == s.path }) {
			return false
		}
		_, err := g.machine.Get(s.path)
		return !errors.Is(err, fs.ErrNotExist)
	})
}
