// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard

import (
	"context"
	"errors"

	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
)

// InboxFile is where a signed instruction is put for the guard of a host.
const InboxFile = StateFolder + "/inbox"

// ErrRebootForbidden tells of operations that need a reboot, or another start of the kubelet, which nobody has allowed.
var ErrRebootForbidden = errors.New("the operations need a reboot of this host, or another start of its kubelet, and it is not allowed")

// Release has the guard take no instructions any more and leave the host when nothing is in force: root has taken it back.
func (g *Guard) Release() error {
	trust, err := g.trust()
	if err != nil || trust == nil {
		return err
	}
	given, err := g.taken()
	if err != nil || given.Released != "" {
		return err
	}
	given.Released = "root brings the host back with \"lowlatency-guard revert\""
	return g.writeState(takenFile, given)
}

// HandOver puts a signed instruction into the inbox. Whether it is taken is in the report.
func (g *Guard) HandOver(data []byte) error {
	return hostfile.Replace(g.disk, InboxFile, hostfile.File(string(data), 0o600))
}

// Waiting reports whether the inbox holds what the guard has not read yet.
func (g *Guard) Waiting() (bool, error) {
	trust, err := g.trust()
	if err != nil || trust == nil {
		return false, err
	}
	given, err := g.taken()
	if err != nil || given.Released != "" {
		return false, err
	}
	inbox, err := g.disk.Read(InboxFile)
	return err == nil && inbox.Type == hostfile.Regular && !given.knows(instruction.Digest(inbox.Content)), err
}

// Handled reports whether the guard has read an instruction: it has taken it, or refused it.
func (g *Guard) Handled(data []byte) (bool, error) {
	given, err := g.taken()
	return err == nil && given.knows(instruction.Digest(data)), err
}

func (t *taken) knows(digest string) bool {
	return t.Accepted != nil && t.Accepted.Digest == digest || t.Refused != nil && t.Refused.Digest == digest
}

// Take reads the inbox, and carries out an instruction that is signed for this host and has a number above the last. Others
// change nothing and are in the report. Where nothing is to be done, it looks at what others have changed. It can be called at any
// time, and again after it was interrupted anywhere.
func (g *Guard) Take(ctx context.Context) (Next, error) {
	next, err := g.take(ctx)
	if next == Nothing {
		g.noteForeign()
	}
	return next, err
}

func (g *Guard) take(ctx context.Context) (Next, error) {
	trust, err := g.trust()
	if err != nil || trust == nil {
		return Nothing, err
	}
	given, err := g.receive(trust)
	if err != nil || given.Accepted == nil {
		return Nothing, err
	}
	h, err := g.load()
	if err != nil {
		return Nothing, err
	}
	if given.Accepted.Outcome != instruction.Received {
		// What somebody has applied by hand since then is not replaced by what is older.
		if !h.isAbout(&given.Accepted.Instruction) {
			return Nothing, nil
		}
		return g.resume(ctx, h)
	}
	next, settled, err := g.follow(ctx, h, &given.Accepted.Instruction)
	if settled.Outcome == "" {
		return next, err
	}
	given.Accepted.Outcome, given.Accepted.Reason, given.Accepted.Message = settled.Outcome, settled.Reason, settled.Message
	return next, errors.Join(err, g.writeState(takenFile, given))
}

// receive looks at what is in the inbox, and writes down what it is before anything is done.
func (g *Guard) receive(trust *Trust) (*taken, error) {
	given, err := g.taken()
	if err != nil {
		return nil, err
	}
	if given.Released != "" {
		return &taken{}, nil
	}
	inbox, err := g.disk.Read(InboxFile)
	if err != nil || inbox.Type != hostfile.Regular || given.knows(instruction.Digest(inbox.Content)) {
		return given, err
	}
	last := int64(0)
	if given.Accepted != nil {
		last = given.Accepted.Instruction.Number
	}
	digest := instruction.Digest(inbox.Content)
	opened, err := instruction.Open(trust.Key, inbox.Content, trust.NodeUID, last)
	if refusal, is := errors.AsType[*instruction.RefusedError](err); is {
		g.tell(refusal.Error())
		given.Refused = &refused{digest, instruction.Refusal{Reason: refusal.Reason, Message: refusal.Message, Number: refusal.Number}}
		return given, g.writeState(takenFile, given)
	}
	if err != nil {
		return nil, err
	}
	given = &taken{Accepted: &accepted{Digest: digest, Outcome: instruction.Received, Instruction: *opened}}
	return given, g.writeState(takenFile, given)
}

// settled is what has become of an instruction; no outcome while it waits.
type settled struct {
	Outcome instruction.Phase
	Reason  instruction.Reason
	Message string
}

// follow does what an instruction says. One that has to wait for a change on trial stays received.
func (g *Guard) follow(ctx context.Context, h *history, i *instruction.Instruction) (Next, settled, error) {
	if h.isAbout(i) {
		next, err := g.resume(ctx, h)
		return next, settled{Outcome: instruction.Written}, err
	}
	if h.current != nil && h.current.stage() == journal.Reverted && h.runsTrial() {
		return Reboot, settled{}, nil
	}
	if i.Action == instruction.Remove && h.isChanging() {
		next, err := g.TakeBack(ctx, instruction.ReasonWithdrawn, "it was withdrawn")
		if err != nil || next == Reboot {
			return next, settled{}, err
		}
	}
	return g.applyInstruction(ctx, i)
}

func (g *Guard) applyInstruction(ctx context.Context, i *instruction.Instruction) (Next, settled, error) {
	next, err := g.Apply(ctx, Wanted{
		Operations: i.Operations, Plan: i.Plan, DeadlineSeconds: i.DeadlineSeconds, Again: i.Attempt == instruction.FurtherAttempt,
		RebootForbidden: i.Reboot == instruction.RebootForbidden, Instruction: &journal.Instruction{Number: i.Number, PlanHash: i.PlanHash},
	})
	switch {
	case errors.Is(err, ErrUnfinished):
		return Nothing, settled{}, nil
	case isYoung(err):
		return Nothing, settled{}, err
	case err != nil:
		return g.failed(i, err)
	case next == Nothing:
		return Nothing, settled{Outcome: instruction.InForce}, nil
	default:
		return next, settled{Outcome: instruction.Written}, nil
	}
}

// isYoung tells that the instruction has to wait until the kubelet can be judged: the unit that carries it out starts again.
func isYoung(err error) bool {
	problem, is := errors.AsType[*KubeletError](err)
	return is && problem.IsOpen
}

// failed tells whether anything was written: the journal tells then what has become of it.
func (g *Guard) failed(i *instruction.Instruction, problem error) (Next, settled, error) {
	h, err := g.load()
	if err != nil {
		return Nothing, settled{}, errors.Join(problem, err)
	}
	if h.isAbout(i) {
		return Nothing, settled{Outcome: instruction.Written}, problem
	}
	g.tell("The instruction is refused: " + problem.Error())
	return Nothing, settled{Outcome: instruction.Refused, Reason: reasonOf(problem), Message: problem.Error()}, nil
}

// reasonOf is why a host cannot have operations.
func reasonOf(problem error) instruction.Reason {
	if _, is := errors.AsType[*ForeignError](problem); is {
		return instruction.ReasonForeignChange
	}
	if _, is := errors.AsType[*KubeletError](problem); is {
		return instruction.ReasonKubeletUnhealthy
	}
	switch {
	case errors.Is(problem, ErrTried):
		return instruction.ReasonTriedBefore
	case errors.Is(problem, ErrRebootForbidden):
		return instruction.ReasonRebootForbidden
	default:
		return instruction.ReasonCannotEnact
	}
}

// isAbout tells that the journals know an instruction.
func (h *history) isAbout(i *instruction.Instruction) bool {
	for _, e := range []*enactment{h.current, h.inForce} {
		if e != nil && e.begin.Instruction != nil && e.begin.Instruction.Number == i.Number {
			return true
		}
	}
	return false
}

// isChanging tells that a change is neither complete nor taken back.
func (h *history) isChanging() bool {
	return h.current != nil && h.current.stage() != journal.Reverted && h.current.stage() != journal.InForce
}

// resume goes on with the change that the guard was interrupted in, in the same boot or in another. What root has armed is not
// rebooted for an instruction.
func (g *Guard) resume(ctx context.Context, h *history) (Next, error) {
	h, err := g.finish(ctx, h)
	if err != nil || !h.isChanging() || h.current.begin.Instruction == nil {
		return Nothing, err
	}
	switch {
	case h.current.stage() == journal.Armed && !h.rebooted():
		return Reboot, nil
	case (h.current.stage() == journal.Written || h.current.stage() == journal.Verified && !h.rebooted()) && h.onTrial():
		return Verify, nil
	default:
		return Nothing, nil
	}
}

// isLeaving tells that the guard has to go once nothing is in force: nobody else is to use it.
func (t *taken) isLeaving() bool {
	return t.Released != "" || t.Accepted != nil && t.Accepted.Instruction.Action == instruction.Remove
}

// Unused reports whether the guard can leave the host: nothing is in force or being changed, and no operator wants to keep it.
func (g *Guard) Unused() (bool, error) {
	h, err := g.load()
	if err != nil {
		return false, err
	}
	trust, err := g.trust()
	if err != nil {
		return false, err
	}
	given, err := g.taken()
	if err != nil {
		return false, err
	}
	idle := h.inForce == nil && (h.current == nil || given.isLeaving() && h.current.stage() == journal.Reverted && !h.runsTrial())
	return idle && (trust == nil || given.isLeaving()), nil
}
