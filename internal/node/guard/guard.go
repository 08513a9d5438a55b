// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package guard changes a host as operations say, and has a way back at every moment: it writes down what was there before
// it changes anything, starts a kernel with other arguments once before it keeps them, and puts everything back when the
// kernel does not come up, when the host is not found as planned, or when that takes too long.
package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/bootloader"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/kubelet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

// Machine is what the guard needs of a host besides its files.
type Machine interface {
	// Names are the names in a folder, ascending; none where it is absent.
	Names(folder string) ([]string, error)
	// Tool runs a program of the host, by its path.
	Tool(ctx context.Context, program string, arguments ...string) error
	// Get and Set read and write a value of the running kernel, in a file below /proc/sys, /proc/irq or /sys.
	Get(name string) (string, error)
	Set(name, value string) error
	// Unit is what systemd says of a service; nil where the host has none of this name.
	Unit(ctx context.Context, name string) (*kubelet.Unit, error)
	// Health asks a kubelet at an address whether it is healthy.
	Health(ctx context.Context, address string) error
}

// Guard changes one host.
type Guard struct {
	disk    hostfile.Disk
	machine Machine
	// tell says what is being done, for people.
	tell func(sentence string)
}

// New makes the guard of a host.
func New(disk hostfile.Disk, machine Machine, tell func(sentence string)) *Guard {
	return &Guard{disk: disk, machine: machine, tell: tell}
}

// Wanted is what a host is to become.
type Wanted struct {
	// Operations; none to bring the host back to what it was before all plans.
	Operations []operation.Operation
	// Plan, as JSON, is what the host is verified against.
	Plan []byte
	// DeadlineSeconds is how long after its start a trial that was not verified is taken back.
	DeadlineSeconds int
	// Again allows a second attempt with operations that were taken back before.
	Again bool
	// RebootForbidden refuses operations that need a reboot, or another start of the kubelet.
	RebootForbidden bool
	// Instruction that this comes from; nil when somebody asks for it by hand.
	Instruction *journal.Instruction
}

// Next says what has to happen on the host.
type Next string

const (
	// Nothing has to.
	Nothing Next = "Nothing"
	// Verify tells that the host runs as it is to be, and that somebody has to look whether it does.
	Verify Next = "Verify"
	// Reboot tells that another kernel has to be started.
	Reboot Next = "Reboot"
)

var (
	// ErrUnfinished tells that the host is being changed already.
	ErrUnfinished = errors.New("a change of this host is not finished")
	// ErrAtWork tells that another guard works on the host.
	ErrAtWork = errors.New("another guard is at work on this host, changing it, taking something back, or removing itself")
	// ErrTried tells that the same operations were taken back before.
	ErrTried = errors.New("these operations were tried and taken back")
)

// ForeignError tells that somebody else has changed files that the guard manages.
type ForeignError struct{ Differences []string }

// Error names the files.
func (e *ForeignError) Error() string {
	return "others have changed what the guard manages, and nothing is written over it: " + strings.Join(e.Differences, "; ")
}

// Apply changes the host. It returns Reboot when a kernel has to be started for it, Verify when the host runs as it is to
// be already, Nothing when there is nothing to do. After an error before the first write nothing is changed; after a later
// one everything is put back.
func (g *Guard) Apply(ctx context.Context, wanted Wanted) (Next, error) {
	if err := operation.Validate(wanted.Operations); err != nil {
		return Nothing, fmt.Errorf("the operations are not carried out: %w", err)
	}
	h, err := g.settledHistory(ctx)
	if err != nil {
		return Nothing, err
	}
	if done, next, err := g.before(h, wanted); done || err != nil {
		return next, err
	}
	w, err := g.prepare(ctx, h, wanted)
	if err != nil || w.isNothing() && h.hash() == w.begin.Hash {
		return Nothing, err
	}
	if err := g.permit(w, wanted); err != nil {
		return Nothing, err
	}
	// What is begun is written whole: whoever interrupts it has it taken back afterwards.
	ctx = context.WithoutCancel(ctx)
	next, err := g.carryOut(ctx, w)
	if err != nil {
		return Nothing, errors.Join(err, g.takeBack(ctx, instruction.ReasonNotWritten, "it could not be written: "+err.Error()))
	}
	return next, nil
}

// permit refuses work for which the host is not ready, or for which nobody has given leave. Nothing is written yet.
func (g *Guard) permit(w *work, wanted Wanted) error {
	if err := g.checkKubelet(w); err != nil {
		return err
	}
	if (w.reboot || w.restarts()) && wanted.RebootForbidden {
		return ErrRebootForbidden
	}
	return nil
}

// settledHistory is what the guard knows of the host once what was interrupted is finished.
func (g *Guard) settledHistory(ctx context.Context) (*history, error) {
	h, err := g.load()
	if err != nil {
		return nil, err
	}
	return g.finish(ctx, h)
}

// finish completes or takes back what was interrupted, by a power cut or by the end of the process, so that the host can be
// changed. A change that is on trial is not interrupted.
func (g *Guard) finish(ctx context.Context, h *history) (*history, error) {
	if h.current == nil {
		return h, nil
	}
	cause, reason := h.failure()
	var err error
	switch {
	case cause != "":
		err = g.takeBack(ctx, cause, reason)
	case h.current.stage() == journal.InForce:
		err = g.fold()
	default:
		return h, nil
	}
	if err != nil {
		return nil, err
	}
	return g.load()
}

// before tells whether the host can be changed now.
func (g *Guard) before(h *history, wanted Wanted) (done bool, next Next, err error) {
	hash := operation.Hash(wanted.Operations)
	switch last := h.current; {
	case last == nil:
		return false, Nothing, nil
	case last.stage() == journal.Reverted && last.begin.Hash == hash && !wanted.Again && len(wanted.Operations) > 0:
		return true, Nothing, fmt.Errorf("%w: %s", ErrTried, last.reason())
	case last.stage() == journal.Reverted:
		return false, Nothing, nil
	case last.isArmedFor(wanted) && last.bootID() == h.bootID:
		if wanted.RebootForbidden {
			return true, Nothing, ErrRebootForbidden
		}
		return true, Reboot, nil
	default:
		return true, Nothing, fmt.Errorf("%w: it is at the stage %q", ErrUnfinished, last.stage())
	}
}

// isArmedFor tells that a reboot alone is left to do for what is wanted. When root has armed it by hand, root has the host reboot,
// and an instruction for the same waits.
func (e *enactment) isArmedFor(wanted Wanted) bool {
	isForeign := e.begin.Instruction == nil && wanted.Instruction != nil
	return e.stage() == journal.Armed && e.begin.Hash == operation.Hash(wanted.Operations) && !isForeign
}

// carryOut writes everything. What it has begun is in the journal.
func (g *Guard) carryOut(ctx context.Context, w *work) (Next, error) {
	if err := g.begin(w.begin); err != nil {
		return Nothing, err
	}
	for _, t := range w.targets {
		if err := g.change(t); err != nil {
			return Nothing, err
		}
	}
	if err := g.reload(ctx, w.targets); err != nil {
		return Nothing, err
	}
	if w.reboot {
		return Reboot, g.arm(ctx, w)
	}
	if err := g.enactLive(ctx, w); err != nil {
		return Nothing, err
	}
	if w.kubelet {
		if err := g.renewKubelet(ctx, w.begin.Kubelet); err != nil {
			return Nothing, err
		}
	}
	return Verify, g.reach(journal.Written)
}

// enactLive changes the running system.
func (g *Guard) enactLive(ctx context.Context, w *work) error {
	for i := range w.held {
		if err := g.append(journal.Record{Change: &w.held[i]}); err != nil {
			return err
		}
	}
	if err := g.changeLive(w.live); err != nil {
		return err
	}
	if err := g.services(ctx, w.begin.Operations); err != nil {
		return err
	}
	return g.settleLive(w.leaving())
}

// arm tells the boot loader to start the trial once. That it was told is written down before it is: a kernel that comes up
// without the arguments is then one that the trial has not survived.
func (g *Guard) arm(ctx context.Context, w *work) error {
	if !w.arguments {
		return g.reach(journal.Armed)
	}
	for _, t := range w.trial {
		if err := g.change(t); err != nil {
			return err
		}
	}
	environment, err := w.loader.Arm(ctx)
	if err != nil {
		return fmt.Errorf("naming the trial as what is started next: %w", err)
	}
	now, err := g.disk.Read(environment.Path)
	if err != nil {
		return err
	}
	record := &journal.Change{Path: environment.Path, Role: environment.Role, Before: now, After: environment.State}
	if err := g.append(journal.Record{Change: record}); err != nil {
		return err
	}
	if err := g.reach(journal.Armed); err != nil {
		return err
	}
	return hostfile.Replace(g.disk, environment.Path, environment.State)
}

// Keep makes what was verified permanent, and completes it when a power cut has interrupted that.
func (g *Guard) Keep(ctx context.Context) error {
	if err := g.MakePermanent(ctx); err != nil {
		return err
	}
	return g.Complete()
}

// MakePermanent is Keep without its end: the journal is still there, and reports have what is in it. A host that is given back is
// compared with what it was before all plans.
func (g *Guard) MakePermanent(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	h, err := g.load()
	if err != nil {
		return err
	}
	if !h.onTrial() {
		return errors.New("there is nothing on trial on this host")
	}
	if h.current.stage() != journal.Verified {
		if err := g.reach(journal.Verified); err != nil {
			return err
		}
	}
	err = g.keepArguments(ctx, h)
	if err == nil {
		err = g.removeFolders(h)
	}
	if err != nil {
		return errors.Join(err, g.takeBack(ctx, instruction.ReasonNotKept, "it could not be made permanent: "+err.Error()))
	}
	if len(h.current.begin.Operations) > 0 || h.inForce == nil {
		return nil
	}
	return g.prove()
}

// IsToBeHeard tells that an agent is to read what the report says of a host that is given back, before the guard forgets it. Root has read
// what the guard has said.
func (g *Guard) IsToBeHeard() (bool, error) {
	h, err := g.load()
	if err != nil || h.current == nil || h.current.begin.Instruction == nil {
		return false, err
	}
	return len(h.current.begin.Operations) == 0 && len(h.current.differences()) > 0, nil
}

// Complete ends a change that was made permanent.
func (g *Guard) Complete() error {
	if err := g.reach(journal.InForce); err != nil {
		return err
	}
	return g.fold()
}

// prove says whether a host that is given back is as it was before all plans, and writes down what is not.
func (g *Guard) prove() error {
	h, err := g.load()
	if err != nil {
		return err
	}
	differences := g.unlikeBefore(h)
	for _, difference := range differences {
		g.tell("Not as before: " + difference)
	}
	if len(differences) == 0 {
		g.tell("The host is as it was before.")
	}
	if slices.Equal(differences, h.current.last.Differences) {
		return nil
	}
	return g.reached(journal.Reached{Stage: journal.Verified, Differences: differences})
}

// keepArguments makes the arguments those of the default entry, and takes the trial away.
func (g *Guard) keepArguments(ctx context.Context, h *history) error {
	change := h.arguments()
	if len(change.Add) == 0 && len(change.Remove) == 0 {
		return nil
	}
	loader, err := bootloader.Find(g.bootHost())
	if err != nil {
		return err
	}
	permanent, err := loader.Permanent(change.Add)
	if err != nil {
		return err
	}
	if err := g.checkPermanent(h, permanent); err != nil {
		return err
	}
	if err := g.write(permanent); err != nil {
		return err
	}
	generated, err := loader.Generate(ctx, change)
	if err != nil {
		return err
	}
	if err := g.write(generated); err != nil {
		return err
	}
	return g.disarm(loader, h.current)
}

// disarm takes the trial's entry away, and the boot loader's memory of it. The first change of a path tells what was there
// before.
func (g *Guard) disarm(loader bootloader.Loader, last *enactment) error {
	seen := map[string]bool{}
	for _, c := range last.changes {
		first := !seen[c.Path]
		seen[c.Path] = true
		switch {
		case !first:
		case c.Role == journal.Environment:
			if err := g.restoreEnvironment(loader, c.Before); err != nil {
				return err
			}
		case c.Role == journal.Trial:
			now, err := g.disk.Read(c.Path)
			if err != nil {
				return err
			}
			if err := g.change(target{path: c.Path, role: c.Role, state: untried(loader, c, now)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// untried is what a file of the trial becomes: what was there before, or, where others have changed it since, what is theirs.
func untried(loader bootloader.Loader, c journal.Change, now hostfile.State) hostfile.State {
	switch {
	case now.Equal(c.After), now.Equal(c.Before):
		return c.Before
	case now.Type != hostfile.Regular:
		return now
	default:
		return loader.Untried(c.Before, now)
	}
}

func (g *Guard) restoreEnvironment(loader bootloader.Loader, before hostfile.State) error {
	memory, err := loader.Disarmed(before)
	if err != nil {
		return err
	}
	if err := hostfile.RemoveLeftover(g.disk, memory.Path); err != nil {
		return err
	}
	now, err := g.disk.Read(memory.Path)
	if err != nil || now.Equal(memory.State) {
		return err
	}
	return hostfile.Replace(g.disk, memory.Path, memory.State)
}

// TakeBack puts everything back that the unfinished change has changed, and says why. It returns Reboot when the running
// kernel has arguments that are none of the host's any more.
func (g *Guard) TakeBack(ctx context.Context, cause instruction.Reason, reason string) (Next, error) {
	h, err := g.load()
	if err != nil {
		return Nothing, err
	}
	if h.current == nil || h.current.stage() == journal.Reverted {
		return Nothing, errors.New("there is nothing to take back on this host")
	}
	if h.current.stage() == journal.InForce {
		return Nothing, g.fold()
	}
	if err := g.takeBack(ctx, cause, reason); err != nil {
		return Nothing, err
	}
	if h.rebooted() && h.tried() {
		return Reboot, nil
	}
	return Nothing, nil
}

// Boot is called at each start of the host before the kubelet starts. It completes what a power cut has interrupted, takes a
// trial back whose kernel has not come up, and sets the values of the running kernel that are in force. Next counts beside an error, too.
func (g *Guard) Boot(ctx context.Context) (Next, error) {
	h, err := g.load()
	if err != nil {
		return Nothing, err
	}
	// A file that stays keeps nothing from being taken back or set.
	problem := g.removeStateFiles(h)
	next, err := g.bootUnfinished(ctx, h)
	return next, errors.Join(problem, err)
}

func (g *Guard) bootUnfinished(ctx context.Context, h *history) (Next, error) {
	if h.current == nil || h.current.stage() == journal.Reverted {
		err := g.bootInForce()
		g.noteForeign()
		return Nothing, err
	}
	next, err := g.bootCurrent(ctx, h)
	if next == Nothing {
		err = errors.Join(err, g.bootInForce())
	}
	return next, err
}

// bootCurrent goes on with a change that is not finished.
func (g *Guard) bootCurrent(ctx context.Context, h *history) (Next, error) {
	stage := h.current.stage()
	cause, reason := h.failure()
	switch {
	case cause == instruction.ReasonInterrupted && stage != journal.Reverting:
		return Nothing, g.takeBack(ctx, cause, reason)
	case cause != "":
		return g.TakeBack(ctx, cause, reason)
	case stage == journal.Armed:
		return g.bootTrial(h)
	case stage == journal.Verified:
		g.tell("The arguments were verified, and the power was cut while they were made permanent: this is completed.")
		return Nothing, g.Keep(ctx)
	case stage == journal.InForce:
		return Nothing, g.fold()
	default:
		// Written and being verified, by somebody who runs.
		return Nothing, nil
	}
}

// Settle takes back what was interrupted and what was not started, where an earlier attempt has failed or was killed.
func (g *Guard) Settle(ctx context.Context) error {
	_, err := g.settledHistory(ctx)
	return err
}

// bootTrial goes on with a trial whose kernel came up.
func (g *Guard) bootTrial(h *history) (Next, error) {
	if !h.rebooted() {
		return Reboot, nil
	}
	g.noteTrial(h)
	return Verify, errors.Join(g.forgetTrial(h.current), g.bootLive(h.current.begin.Operations))
}

// forgetTrial has the boot loader start its default entry next, where it has not seen to that itself: from here on no crash of the trial
// brings it back.
func (g *Guard) forgetTrial(last *enactment) error {
	for _, c := range last.changes {
		if c.Role != journal.Environment {
			continue
		}
		loader, err := bootloader.Find(g.bootHost())
		if err != nil {
			return err
		}
		return g.restoreEnvironment(loader, c.Before)
	}
	return nil
}

// bootInForce sets the values of the running kernel that are in force, unless others are being tried, and notes before what this kernel had.
func (g *Guard) bootInForce() error {
	h, err := g.load()
	if err != nil || h.inForce == nil || h.isChanging() {
		return err
	}
	g.noteInForce(h)
	return g.bootLive(h.inForce.begin.Operations)
}
