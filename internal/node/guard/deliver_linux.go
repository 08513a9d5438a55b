// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
)

// deliveryPoll is the time between two looks whether the guard has read its inbox.
const deliveryPoll = 500 * time.Millisecond

// Delivery is what a pod of the operator brings to a host.
type Delivery struct {
	// Program is the guard's, for this host's architecture.
	Program []byte
	Trust   Trust
	// Chain leads from the operator's keys before to the one of Trust.
	Chain instruction.Chain
	// Instruction is signed; empty to install the guard alone.
	Instruction []byte
}

// NotHandedOverError tells that an instruction has not got to the guard of the host, neither now nor before: nobody will act on it once it is
// withdrawn.
type NotHandedOverError struct{ Err error }

func (e *NotHandedOverError) Error() string { return e.Err.Error() }

func (e *NotHandedOverError) Unwrap() error { return e.Err }

// ExitCode is by what the operator knows of it.
func (*NotHandedOverError) ExitCode() int { return instruction.ExitNotHandedOver }

// Deliver installs the guard on the host below a root, or brings it up to date, and hands the instruction over. It returns the
// guard's report once the guard has read the instruction; an error when it has not until the context ends, a NotHandedOverError where it cannot
// read it. The program of a guard that is changing its host stays until that is done.
func Deliver(ctx context.Context, root string, d Delivery, tell func(sentence string)) (*instruction.Report, error) {
	disk, err := hostfile.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	report, err := DeliverTo(ctx, New(disk, Below{Root: root}, tell), Below{Root: root}.Lock, d, tell)
	return report, errors.Join(err, disk.Close())
}

// DeliverTo is Deliver for a guard of whatever host, which nobody else changes while the lock is held.
func DeliverTo(ctx context.Context, g *Guard, lock func() (func(), error), d Delivery, tell func(string)) (*instruction.Report, error) {
	needless, err := g.isNeedless(d)
	if err != nil || needless {
		return &instruction.Report{Phase: instruction.Removed}, err
	}
	unlock, err := lock()
	if err != nil {
		return nil, g.beforeHandOver(d, err)
	}
	err = g.bring(ctx, d, tell)
	unlock()
	if err == nil {
		err = g.Watch(ctx)
	}
	if err != nil || len(d.Instruction) == 0 {
		report, problem := g.Report()
		return report, errors.Join(err, problem)
	}
	return g.await(ctx, d)
}

// removes tells that the instruction is one to remove. The guard itself says why it refuses another.
func (d Delivery) removes() bool {
	i, err := instruction.Open(d.Trust.Key, d.Instruction, d.Trust.NodeUID, 0)
	return err == nil && i.Action == instruction.Remove
}

// isNeedless tells that there is nothing to remove: no guard is on the host.
func (g *Guard) isNeedless(d Delivery) (bool, error) {
	if !d.removes() {
		return false, nil
	}
	report, err := g.Report()
	return err == nil && report.Phase == instruction.Removed, err
}

// beforeHandOver is an error that came before the instruction was handed over. Where one that ran before may have done that, it says nothing of it.
func (g *Guard) beforeHandOver(d Delivery, err error) error {
	if len(d.Instruction) == 0 {
		return err
	}
	handled, problem := g.Handled(d.Instruction)
	if handled || problem != nil {
		return err
	}
	inbox, problem := g.disk.Read(InboxFile)
	if problem != nil || inbox.Type == hostfile.Regular && bytes.Equal(inbox.Content, d.Instruction) {
		return err
	}
	return &NotHandedOverError{err}
}

// bring installs and hands over, while nobody else changes the host.
func (g *Guard) bring(ctx context.Context, d Delivery, tell func(string)) error {
	if err := g.install(ctx, d, tell); err != nil {
		return g.beforeHandOver(d, err)
	}
	if len(d.Instruction) == 0 {
		return nil
	}
	return g.HandOver(d.Instruction)
}

// install puts the guard there, which takes the instructions of one operator.
func (g *Guard) install(ctx context.Context, d Delivery, tell func(string)) error {
	if err := g.Pin(d.Trust, d.Chain); err != nil {
		return err
	}
	changing, err := g.IsChanging()
	if err != nil {
		return err
	}
	if changing {
		tell("The guard on the host stays as it is until its change of the host is finished.")
		return nil
	}
	return g.update(ctx, d.Program)
}

// update installs the guard. Another one may be able to read what the one before has refused, and looks at it once more. The refusal
// is forgotten first: after a power cut in between, the guard is another one still.
func (g *Guard) update(ctx context.Context, program []byte) error {
	isSame, err := g.hasInstalled(program)
	if err != nil {
		return err
	}
	if !isSame {
		if err := g.forgetUnreadable(); err != nil {
			return err
		}
	}
	return g.Install(ctx, program)
}

// forgetUnreadable forgets an instruction that was refused because this guard could not read it.
func (g *Guard) forgetUnreadable() error {
	given, err := g.taken()
	if err != nil || given.Refused == nil {
		return err
	}
	if given.Refused.Reason != instruction.ReasonMalformed && given.Refused.Reason != instruction.ReasonUnknownField {
		return nil
	}
	given.Refused = nil
	return g.writeState(takenFile, given)
}

// await looks until the guard has read the instruction.
func (g *Guard) await(ctx context.Context, d Delivery) (*instruction.Report, error) {
	for {
		report, err := g.Report()
		if err != nil {
			return nil, err
		}
		handled, err := g.Handled(d.Instruction)
		if err != nil {
			return nil, err
		}
		// A removal that is complete has left nothing that could tell. Another one is no answer to what was delivered.
		if handled || report.Phase == instruction.Removed && d.removes() {
			return report, nil
		}
		select {
		case <-ctx.Done():
			return report, fmt.Errorf("the guard of the host has not read its instruction: look at %s on the host: %w", inboxService, context.Cause(ctx))
		case <-time.After(deliveryPoll):
		}
	}
}

// ReadReport reads what the guard of the host below a root reports. It needs to read the guard's state folder and what the
// kernel says of itself, /proc/cmdline and /proc/sys/kernel/random/boot_id, and changes nothing.
func ReadReport(root string) (report *instruction.Report, err error) {
	disk, err := hostfile.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, disk.Close()) }()
	return New(disk, Below{Root: root}, func(string) {}).Report()
}
