// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

// Status is what the guard knows of a host.
type Status struct {
	// InForce is the hash of the operations that are in force; "" for none.
	InForce string `json:"inForce,omitempty"`
	// Changing is the hash of those that are being tried or were taken back last, Stage how far that is, Reason why they
	// were taken back.
	Changing string        `json:"changing,omitempty"`
	Stage    journal.Stage `json:"stage,omitempty"`
	Reason   string        `json:"reason,omitempty"`
	// Arguments of the kernel that are in force, and Missing those of them that the running kernel was not started with.
	Arguments []string `json:"arguments,omitempty"`
	Missing   []string `json:"missing,omitempty"`
	// Differences are what others have changed of what the guard has written.
	Differences []string `json:"differences,omitempty"`
	// Key is the one whose instructions are taken; nil for none.
	Key *instruction.TrustedKey `json:"key,omitempty"`
}

// Status looks at the host and changes nothing.
func (g *Guard) Status() (*Status, error) {
	h, err := g.look()
	if err != nil {
		return nil, err
	}
	trust, err := g.trust()
	if err != nil {
		return nil, err
	}
	s := &Status{Key: trust.reported()}
	if h.current != nil {
		s.Changing, s.Stage, s.Reason = h.current.begin.Hash, h.current.stage(), h.current.told()
		s.Differences = h.current.differences()
	}
	if h.inForce == nil {
		return s, nil
	}
	s.InForce, s.Arguments = h.inForce.begin.Hash, operation.Arguments(h.inForce.begin.Operations)
	for _, argument := range s.Arguments {
		if !slices.Contains(h.running, argument) {
			s.Missing = append(s.Missing, argument)
		}
	}
	if h.isChanging() {
		return s, nil
	}
	differences, err := g.changedByOthers(h.inForce)
	s.Differences = united(s.Differences, differences)
	return s, err
}

// Trial is what is to be verified before it is kept.
type Trial struct {
	// Plan as JSON; empty when there is none.
	Plan []byte
	// DeadlineSeconds after the start of the host it is taken back.
	DeadlineSeconds int
	// Kubelet is the service of a kubelet that was healthy before, and has to be proven healthy; "" for none. IsKubeletStarted tells
	// that it was started for the trial alone, without the host.
	Kubelet          string
	IsKubeletStarted bool
	// OtherLine tells that the kernel was started with another command line for it than is the default: another start alone ends
	// the trial.
	OtherLine bool
}

// OnTrial returns what is on trial; nil where nothing is.
func (g *Guard) OnTrial() (*Trial, error) {
	h, err := g.load()
	if err != nil || !h.onTrial() {
		return nil, err
	}
	change := h.arguments()
	trial := &Trial{
		Plan: h.current.begin.Plan, DeadlineSeconds: h.current.begin.DeadlineSeconds, OtherLine: len(change.Add)+len(change.Remove) > 0,
	}
	if k := h.current.begin.Kubelet; k != nil && k.Problem == "" {
		trial.Kubelet, trial.IsKubeletStarted = k.Unit, k.Restarts
	}
	return trial, nil
}

// IsStarting reports whether the host was started again since its change began, and Boot is still to come: what others have this start wait
// for may never end.
func (g *Guard) IsStarting(ctx context.Context) (bool, error) {
	h, err := g.load()
	if err != nil || h.current == nil || !h.rebooted() {
		return false, err
	}
	unit, err := g.machine.Unit(ctx, bootService)
	if err != nil || unit == nil {
		return false, err
	}
	return unit.Active == "inactive" || unit.Active == "activating", nil
}

// MustLeave reports whether the host has to reboot because it still runs the kernel of a trial that was taken back: when what
// was verified could not be kept, or when the guard was killed before it had the host reboot. It is so once for each trial that
// was taken back. Whoever has withdrawn a trial decides when the host reboots.
func (g *Guard) MustLeave() (bool, error) {
	h, err := g.load()
	if err != nil || h.current == nil || h.current.stage() != journal.Reverted {
		return false, err
	}
	return h.runsTrial() && h.current.last.Cause != instruction.ReasonWithdrawn, nil
}

// CheckWritten compares the host with the operations that are on trial: each file, each value of the running kernel, each
// argument of its command line. It returns what differs.
func (g *Guard) CheckWritten() ([]string, error) {
	h, err := g.load()
	if err != nil {
		return nil, err
	}
	if h.current == nil {
		return nil, errors.New("nothing is being changed on this host")
	}
	operations := h.current.begin.Operations
	var differences []string
	wanted := files(operations)
	for name := range wanted {
		now, err := g.disk.Read(name)
		if err != nil {
			return nil, err
		}
		if !now.Equal(wanted[name]) {
			differences = append(differences, difference(journal.Change{Path: name, After: wanted[name]}, now))
		}
	}
	differences = append(differences, g.otherValues(operations)...)
	for _, argument := range operation.Arguments(operations) {
		if !slices.Contains(h.running, argument) {
			differences = append(differences, "the running kernel was started without "+argument)
		}
	}
	slices.Sort(differences)
	return differences, nil
}

// Forget removes what the guard remembers of a change that was taken back. It is an error when something is in force.
func (g *Guard) Forget() error {
	h, err := g.load()
	if err != nil {
		return err
	}
	if h.inForce != nil || h.current != nil && h.current.stage() != journal.Reverted {
		return errors.New("something is in force, or being changed, on this host")
	}
	folders, err := g.ownFolders()
	if err == nil {
		err = g.removeState()
	}
	if err != nil {
		return err
	}
	for _, folder := range folders {
		names, err := g.machine.Names(folder)
		if err != nil {
			return err
		}
		if len(names) > 0 {
			return nil
		}
		if err := g.removeFile(folder); err != nil {
			return err
		}
	}
	return nil
}

// ownFolders are those that go when they are empty. The agent of a cluster looks into the outer one through a mount, which would
// not see a new one, so that it stays there.
func (g *Guard) ownFolders() ([]string, error) {
	trust, err := g.trust()
	if err != nil || trust != nil {
		return []string{StateFolder}, err
	}
	// Whose instructions were taken is forgotten with the rest, and a removal that was interrupted is gone through again.
	kubelet, err := g.disk.Read("/var/lib/kubelet")
	if err != nil || kubelet.Type != hostfile.Absent {
		return []string{StateFolder}, err
	}
	return []string{StateFolder, path.Dir(StateFolder)}, nil
}

// removeState removes what is in the guard's folder. Whose instructions were taken goes late: until then the next start goes on.
func (g *Guard) removeState() error {
	for _, name := range []string{inForceFile, journalFile, foreignFile, removalFile, InboxFile, trustFile, takenFile} {
		if err := hostfile.RemoveLeftover(g.disk, name); err != nil {
			return err
		}
		if err := g.removeFile(name); err != nil {
			return err
		}
	}
	return nil
}

// Describe says in one line each what operations would change, for people; what is as it is to be is left out.
func (g *Guard) Describe(ctx context.Context, operations []operation.Operation) ([]string, error) {
	if err := operation.Validate(operations); err != nil {
		return nil, fmt.Errorf("the operations are not carried out: %w", err)
	}
	h, err := g.load()
	if err != nil {
		return nil, err
	}
	w, err := g.prepare(ctx, h, Wanted{Operations: operations})
	if err != nil {
		return nil, err
	}
	lines := make([]string, 0, len(w.targets)+len(w.live))
	for _, t := range w.targets {
		now, err := g.disk.Read(t.path)
		if err != nil {
			return nil, err
		}
		lines = append(lines, describe(t, now))
	}
	for _, s := range w.live {
		now, err := g.machine.Get(s.path)
		if err != nil {
			return nil, err
		}
		lines = append(lines, fmt.Sprintf("set    %s from %s to %s", s.path, now, s.value))
	}
	return append(lines, w.describeBoot(h)...), nil
}

// describeBoot says what becomes of the command line.
func (w *work) describeBoot(h *history) []string {
	var lines []string
	if w.arguments {
		change := h.argumentsFor(w.begin.Operations)
		if len(change.Remove) > 0 {
			lines = append(lines, "remove kernel arguments "+strings.Join(change.Remove, " "))
		}
		if len(change.Add) > 0 {
			lines = append(lines, "add    kernel arguments "+strings.Join(change.Add, " "))
		}
		lines = append(lines, "try    once, with an entry of its own of "+w.loader.Name()+", and keep it when it is verified")
		if w.stuck != "" {
			lines = append(lines, "beware a kernel that does not come up is started again and again, until somebody chooses the entry before at the console: "+w.stuck)
		}
		if w.sealed != "" {
			lines = append(lines, "beware the start may wait for a passphrase, until somebody types it or starts the host again: "+w.sealed)
		}
	}
	if w.reboot {
		lines = append(lines, "reboot once")
	}
	return append(lines, w.describeKubelet()...)
}

// describeKubelet says what becomes of the kubelet.
func (w *work) describeKubelet() []string {
	var lines []string
	k := w.begin.Kubelet
	if w.restarts() {
		lines = append(lines, "start  "+k.Unit+" again, and keep the change when the kubelet is healthy for a minute")
	}
	if k != nil && k.Problem != "" {
		lines = append(lines, "beware the kubelet is not healthy now, and is not waited for: "+k.Problem)
	}
	return lines
}

func describe(t target, now hostfile.State) string {
	switch {
	case t.state.Type == hostfile.Absent:
		return "remove " + t.path
	case now.Type == hostfile.Absent:
		return fmt.Sprintf("write  %s, %s", t.path, t.state)
	default:
		return fmt.Sprintf("change %s from %s to %s", t.path, now, t.state)
	}
}
