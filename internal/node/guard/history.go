// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/bootloader"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

const (
	// StateFolder holds what the guard must not forget.
	StateFolder = "/var/lib/lowlatency/guard"
	// inForceFile says what is in force, and what was there before all plans.
	inForceFile = StateFolder + "/in-force"
	// journalFile says what is being changed, or what was taken back last.
	journalFile = StateFolder + "/journal"

	bootIDFile      = "/proc/sys/kernel/random/boot_id"
	commandLineFile = "/proc/cmdline"
)

// enactment is a change of the host: what a journal says.
type enactment struct {
	begin   journal.Begin
	changes []journal.Change
	last    journal.Reached
}

func (e *enactment) stage() journal.Stage { return e.last.Stage }
func (e *enactment) reason() string       { return e.last.Reason }
func (e *enactment) bootID() string       { return e.last.BootID }

// differences are what others have changed: before the change began, and while it was made or taken back.
func (e *enactment) differences() []string { return united(e.begin.Differences, e.last.Differences) }

// united are sentences without those that are said already.
func united(parts ...[]string) []string {
	var all []string
	for _, sentence := range slices.Concat(parts...) {
		if !slices.Contains(all, sentence) {
			all = append(all, sentence)
		}
	}
	return all
}

// history is what is in force on a host, and what is being changed.
type history struct {
	// inForce is nil where no plan is in force; current is nil where nothing is being changed.
	inForce, current *enactment
	bootID           string
	running          []string
}

// number is that of the next change.
func (h *history) number() int {
	last := 0
	for _, e := range []*enactment{h.inForce, h.current} {
		if e != nil {
			last = max(last, e.begin.Number)
		}
	}
	return last + 1
}

func (h *history) hash() string {
	if h.inForce == nil {
		return operation.Hash(nil)
	}
	return h.inForce.begin.Hash
}

// arguments are the change of the command line that the current change makes.
func (h *history) arguments() bootloader.Arguments {
	return h.argumentsFor(h.current.begin.Operations)
}

func (h *history) argumentsFor(operations []operation.Operation) bootloader.Arguments {
	change := bootloader.Arguments{Add: operation.Arguments(operations), Fallback: operation.FallbackOf(operations)}
	if h.inForce != nil {
		change.Remove = operation.Arguments(h.inForce.begin.Operations)
	}
	if len(operations) == 0 && h.inForce != nil {
		// The way back to the host as it was is that by which it came here.
		change.Fallback = operation.FallbackOf(h.inForce.begin.Operations)
	}
	if slices.Equal(change.Add, change.Remove) {
		return bootloader.Arguments{}
	}
	return change
}

// tried tells that the running kernel is the one that the current change is about.
func (h *history) tried() bool {
	return operation.MarkerOf(h.running) == operation.MarkerOf(operation.Arguments(h.current.begin.Operations))
}

// onTrial tells that the host runs as it is to be, so that this can be made permanent.
func (h *history) onTrial() bool {
	if h.current == nil {
		return false
	}
	switch h.current.stage() {
	case journal.Written:
		return !h.rebooted() && h.tried()
	case journal.Armed, journal.Verified:
		return h.tried() && (h.rebooted() || h.current.stage() == journal.Verified)
	default:
		return false
	}
}

// notStarted is why a trial is taken back whose arguments the running kernel does not have. What the boot loader has tried before this start
// is written down nowhere.
const notStarted = "the host has started without the arguments of the trial: the kernel did not come up with them, or something else than the " +
	"boot loader has chosen what was started, such as kexec"

// failure says why the current change has to be taken back now, whatever was to become of it: "" where nothing says so. Only one guard
// works on a host at a time, so that whoever has not finished writing runs no more.
func (h *history) failure() (instruction.Reason, string) {
	switch h.current.stage() {
	case "":
		return instruction.ReasonInterrupted, "it was interrupted before it was complete"
	case journal.Written:
		if h.rebooted() {
			return instruction.ReasonInterrupted, "the host was started again before it was verified"
		}
	case journal.Armed:
		if h.rebooted() && !h.tried() {
			return instruction.ReasonNotStarted, notStarted
		}
	case journal.Verified:
		if !h.tried() {
			return instruction.ReasonNotKept, "the host was started again while it was made permanent"
		}
	case journal.Reverting:
		return cmp.Or(h.current.last.Cause, instruction.ReasonInterrupted), cmp.Or(h.current.reason(), "it was interrupted")
	case journal.InForce, journal.Reverted:
	}
	return "", ""
}

// rebooted tells that another kernel runs than when the current change came to its stage.
func (h *history) rebooted() bool {
	return h.current.begin.BootID != h.bootID
}

// load reads what the guard has written down, and cuts off what a power cut has left unfinished.
func (g *Guard) load() (*history, error) {
	for _, name := range []string{inForceFile, journalFile} {
		if err := g.mend(name); err != nil {
			return nil, err
		}
	}
	return g.look()
}

// look reads what the guard has written down, and changes nothing.
func (g *Guard) look() (*history, error) {
	h := &history{}
	var err error
	if h.inForce, err = g.read(inForceFile); err != nil {
		return nil, err
	}
	if h.inForce != nil && len(h.inForce.begin.Operations) == 0 {
		// Guards before this one left such a file when the power was cut at the end of a removal.
		h.inForce = nil
	}
	if h.current, err = g.read(journalFile); err != nil {
		return nil, err
	}
	id, err := g.disk.Read(bootIDFile)
	if err != nil || id.Type != hostfile.Regular {
		return nil, fmt.Errorf("the host does not say which boot this is (%s): %w", bootIDFile, err)
	}
	line, err := g.disk.Read(commandLineFile)
	if err != nil || line.Type != hostfile.Regular {
		return nil, fmt.Errorf("the host does not say its kernel's command line (%s): %w", commandLineFile, err)
	}
	h.bootID, h.running = strings.TrimSpace(string(id.Content)), strings.Fields(string(line.Content))
	return h, nil
}

// mend removes from a journal what a power cut has left unfinished.
func (g *Guard) mend(name string) error {
	if err := hostfile.RemoveLeftover(g.disk, name); err != nil {
		return err
	}
	file, err := g.disk.Read(name)
	if err != nil || file.Type == hostfile.Absent {
		return err
	}
	_, whole, err := decode(name, file.Content)
	if err != nil || whole == len(file.Content) {
		return err
	}
	if err := g.disk.Truncate(name, int64(whole)); err != nil {
		return fmt.Errorf("cutting off a record that was never finished: %w", err)
	}
	return nil
}

// decode reads a journal that must begin with what the host is to become.
func decode(name string, content []byte) (records []journal.Record, whole int, err error) {
	const untouched = "nothing is changed on this host until somebody has looked at it"
	if err := journal.CheckFormat(name, content); err != nil {
		return nil, 0, err
	}
	records, whole, err = journal.Decode(content)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w; %s", name, err, untouched)
	}
	if len(records) == 0 || records[0].Begin == nil {
		return nil, 0, fmt.Errorf("%s does not begin with what the host is to become; %s", name, untouched)
	}
	return records, whole, nil
}

// read reads a journal; nil where there is none.
func (g *Guard) read(name string) (*enactment, error) {
	file, err := g.disk.Read(name)
	if err != nil || file.Type == hostfile.Absent {
		return nil, err
	}
	records, _, err := decode(name, file.Content)
	if err != nil {
		return nil, err
	}
	e := &enactment{begin: *records[0].Begin}
	for _, record := range records[1:] {
		if record.Change != nil {
			e.changes = append(e.changes, *record.Change)
		}
		if record.Stage != nil {
			e.last = *record.Stage
		}
	}
	return e, nil
}

// begin starts a journal. It replaces that of the change before, which is complete.
func (g *Guard) begin(b journal.Begin) error {
	if err := g.makeFolders(StateFolder); err != nil {
		return err
	}
	// Whoever begins something else than the removal that was asked for has asked for another host.
	if err := g.forgetRemoval(); err != nil {
		return err
	}
	return g.replaceJournal(journalFile, []journal.Record{{Begin: &b}})
}

func (g *Guard) replaceJournal(name string, records []journal.Record) error {
	var content []byte
	for _, record := range records {
		line, err := journal.Encode(record)
		if err != nil {
			return err
		}
		content = append(content, line...)
	}
	return hostfile.Replace(g.disk, name, hostfile.State{Type: hostfile.Regular, Mode: 0o600, Content: content})
}

// makeFolders makes the folders of the guard's own state.
func (g *Guard) makeFolders(folder string) error {
	now, err := g.disk.Read(folder)
	if err != nil || now.Type == hostfile.Folder {
		return err
	}
	if err := g.makeFolders(path.Dir(folder)); err != nil {
		return err
	}
	return hostfile.Replace(g.disk, folder, hostfile.NewFolder())
}

func (g *Guard) append(record journal.Record) error {
	line, err := journal.Encode(record)
	if err != nil {
		return err
	}
	if err := g.disk.Append(journalFile, line); err != nil {
		// A record that did not fit is cut off: the next one must begin a line.
		return errors.Join(err, g.mend(journalFile))
	}
	return nil
}

// reach writes down how far the change is.
func (g *Guard) reach(stage journal.Stage) error { return g.reached(journal.Reached{Stage: stage}) }

func (g *Guard) reached(stage journal.Reached) error {
	id, err := g.disk.Read(bootIDFile)
	if err != nil {
		return err
	}
	stage.BootID = strings.TrimSpace(string(id.Content))
	return g.append(journal.Record{Stage: &stage})
}

// fold makes what the journal says what is in force: for each path what was there before all plans, and what is there now.
// It may be interrupted anywhere, and called again.
func (g *Guard) fold() error {
	h, err := g.load()
	if err != nil {
		return err
	}
	// What others have changed of the plan before says nothing of this one.
	if err := g.removeFile(foreignFile); err != nil {
		return err
	}
	switch {
	case len(h.current.begin.Operations) == 0:
		// Nothing is managed any more. Until that is forgotten the journal tells that it has to be.
		err = g.removeFile(inForceFile)
	case h.inForce == nil || h.inForce.begin.Number != h.current.begin.Number:
		err = g.replaceJournal(inForceFile, h.folded())
	}
	if err != nil {
		return err
	}
	return g.removeFile(journalFile)
}

// folded is what is in force once the current change is.
func (h *history) folded() []journal.Record {
	records := []journal.Record{{Begin: &h.current.begin}}
	var before []journal.Change
	if h.inForce != nil {
		before = h.inForce.changes
	}
	current := slices.DeleteFunc(slices.Clone(h.current.changes), h.isOurs)
	folded := foldChanges(slices.Concat(before, current), settings(h.current.begin.Operations))
	for i := range folded {
		records = append(records, journal.Record{Change: &folded[i]})
	}
	return append(records, journal.Record{Stage: &h.current.last})
}

func (g *Guard) removeFile(name string) error {
	now, err := g.disk.Read(name)
	if err != nil || now.Type == hostfile.Absent {
		return err
	}
	return hostfile.Replace(g.disk, name, hostfile.State{})
}

// foldChanges has one change for each path, in the order in which the paths were changed first. What is as it was before,
// and what the boot loader remembers, is none; of a setting that is wanted, a note that it had its value already is one.
func foldChanges(changes []journal.Change, wanted []setting) []journal.Change {
	var folded []journal.Change
	index := map[string]int{}
	for _, c := range changes {
		if c.Role == journal.Environment || c.Role == journal.Trial {
			continue
		}
		if i, seen := index[c.Path]; seen {
			if c.Role == journal.Live && c.BootID != folded[i].BootID {
				// What a kernel had that no longer runs is nothing to go back to.
				folded[i] = c
			}
			folded[i].After = c.After
			continue
		}
		index[c.Path] = len(folded)
		folded = append(folded, c)
	}
	return slices.DeleteFunc(folded, func(c journal.Change) bool {
		isNote := c.Role == journal.Live && slices.ContainsFunc(wanted, func(s setting) bool { return s.path == c.Path })
		return c.Before.Equal(c.After) && !isNote
	})
}
