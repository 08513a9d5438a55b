// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

const (
	// trustFile says whose instructions the guard takes; it is written when the guard is installed for a cluster.
	trustFile = StateFolder + "/trust"
	// takenFile says which instruction was taken last, and which was refused.
	takenFile = StateFolder + "/instructions"
)

// Trust is whose instructions the guard of a host takes.
type Trust struct {
	// Key is the operator's public key of Ed25519.
	Key []byte `json:"key"`
	// Serial of the key among those of its operator; 0 where nobody has said it.
	Serial int64 `json:"serial,omitempty"`
	// Node is the name of the node, and NodeUID the UID of its object.
	Node    string `json:"node"`
	NodeUID string `json:"nodeUID"`
}

// taken are the instructions that a guard was given.
type taken struct {
	// Accepted is the last one that was signed for this host with a number above the one before.
	Accepted *accepted `json:"accepted,omitempty"`
	// Refused is the last one that was not, since then.
	Refused *refused `json:"refused,omitempty"`
	// Released says why no instruction is taken any more; empty while they are.
	Released string `json:"released,omitempty"`
}

type accepted struct {
	Digest string `json:"digest"`
	// Outcome is Received until it is carried out, Refused when this host cannot have it, InForce when the host was as it says
	// already, and Written from when on the journal tells.
	Outcome instruction.Phase  `json:"outcome"`
	Reason  instruction.Reason `json:"reason,omitempty"`
	Message string             `json:"message,omitempty"`
	// Instruction as it was signed.
	Instruction instruction.Instruction `json:"instruction"`
}

type refused struct {
	Digest string `json:"digest"`
	instruction.Refusal
}

// Report says how far the guard is with the last instruction. It looks and changes nothing.
func (g *Guard) Report() (*instruction.Report, error) {
	h, err := g.look()
	if err != nil {
		return nil, err
	}
	trust, err := g.trust()
	if err != nil {
		return nil, err
	}
	given, err := g.taken()
	if err != nil {
		return nil, err
	}
	report := h.report(given)
	if h.inForce != nil && !h.isChanging() {
		noted, err := g.foreign()
		if err != nil {
			return nil, err
		}
		report.Differences = united(report.Differences, noted)
	}
	report.Key = trust.reported()
	if report.Phase == instruction.Removed && (trust != nil || g.hasProgram()) {
		report.Phase = instruction.Idle
	}
	return report, nil
}

// hasProgram tells that the guard's program is on the host. Where a link leads to its folder, no guard was installed.
func (g *Guard) hasProgram() bool {
	program, err := g.disk.Read(Program)
	return err == nil && program.Type != hostfile.Absent
}

func (g *Guard) trust() (*Trust, error) {
	trust := &Trust{}
	found, err := g.readState(trustFile, trust)
	if err != nil || !found {
		return nil, err
	}
	return trust, nil
}

func (g *Guard) taken() (*taken, error) {
	given := &taken{}
	_, err := g.readState(takenFile, given)
	return given, err
}

// readState reads JSON that the guard has written in one step.
func (g *Guard) readState(name string, into any) (found bool, err error) {
	file, err := g.disk.Read(name)
	if err != nil || file.Type == hostfile.Absent {
		return false, err
	}
	if err := journal.CheckFormat(name, file.Content); err != nil {
		return false, err
	}
	if err := json.Unmarshal(file.Content, into); err != nil {
		return false, fmt.Errorf("reading %s, which the guard has written: %w", name, err)
	}
	return true, nil
}

func (g *Guard) writeState(name string, value any) error {
	content, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if err := g.makeFolders(StateFolder); err != nil {
		return err
	}
	return hostfile.Replace(g.disk, name, hostfile.File(string(content), 0o600))
}

// report says what the journals and the instructions say.
func (h *history) report(given *taken) *instruction.Report {
	report := h.progress()
	report.BootID = h.bootID
	if h.inForce != nil {
		report.InForce = planHashOf(h.inForce)
		report.Differences = append(report.Differences, h.missing()...)
	}
	if given.Accepted != nil {
		given.Accepted.into(report, h)
	}
	if given.Refused != nil {
		report.Refused = &given.Refused.Refusal
		if given.Accepted == nil && h.current == nil && h.inForce == nil {
			report.Phase, report.Reason, report.Message = instruction.Refused, given.Refused.Reason, given.Refused.Message
			report.Number = given.Refused.Number
		}
	}
	return report
}

// into says how far the last instruction is, where the journal does not tell.
func (a *accepted) into(report *instruction.Report, h *history) {
	unfinished := h.current != nil && h.current.stage() != journal.Reverted
	switch {
	case a.Outcome == instruction.Refused:
	case a.Outcome == instruction.Received && report.Number != a.Instruction.Number:
	case a.Outcome == instruction.InForce && !unfinished:
		report.InForce = a.Instruction.PlanHash
	default:
		return
	}
	report.Phase, report.Reason, report.Message = a.Outcome, a.Reason, a.Message
	report.Number, report.PlanHash = a.Instruction.Number, a.Instruction.PlanHash
}

// progress is what the journals alone tell.
func (h *history) progress() *instruction.Report {
	e := h.current
	if e == nil {
		e = h.inForce
	}
	if e == nil {
		return &instruction.Report{Phase: instruction.Removed}
	}
	report := &instruction.Report{Phase: h.phase(), PlanHash: planHashOf(e), Differences: e.differences()}
	if e.begin.Instruction != nil {
		report.Number = e.begin.Instruction.Number
	}
	if report.Phase == instruction.TakenBack || report.Phase == instruction.TakingBack {
		report.Reason, report.Message = e.last.Cause, e.told()
	}
	if cause, reason := h.overdue(); cause != "" {
		report.Phase, report.Reason, report.Message = instruction.TakingBack, cause, reason
	}
	if report.Phase == instruction.TakenBack && h.hasTrialArguments() {
		report.Differences = append(report.Differences, "the running kernel was started again with arguments that were taken back: take "+
			operation.MarkerOf(h.running)+" and what came with it off the boot loader's default line")
	}
	return report
}

// overdue is why the current change should have been taken back since the host has started, before anything else ran: it could not, and is
// attempted again.
func (h *history) overdue() (instruction.Reason, string) {
	if h.current == nil || !h.rebooted() || h.current.stage() == journal.Reverting {
		return "", ""
	}
	return h.failure()
}

// phase is that of the current change, or of what is in force.
func (h *history) phase() instruction.Phase {
	if h.current == nil {
		return instruction.InForce
	}
	switch h.current.stage() {
	case journal.Written, journal.Verified:
		return instruction.Verifying
	case journal.Armed:
		if h.rebooted() {
			return instruction.Verifying
		}
		return instruction.Armed
	case journal.InForce:
		return instruction.InForce
	case journal.Reverting:
		return instruction.TakingBack
	case journal.Reverted:
		if h.runsTrial() {
			return instruction.TakingBack
		}
		return instruction.TakenBack
	default:
		return instruction.Written
	}
}

// runsTrial tells that the running kernel is that of a trial which was taken back since it started: a reboot is to come. When
// another start brings the same arguments, they are on the default line, where no further reboot ends them.
func (h *history) runsTrial() bool {
	return h.current.bootID() == h.bootID && h.hasTrialArguments()
}

// hasTrialArguments tells that the kernel was started with the arguments of the current change, which are not in force.
func (h *history) hasTrialArguments() bool {
	inForce := ""
	if h.inForce != nil {
		inForce = operation.MarkerOf(operation.Arguments(h.inForce.begin.Operations))
	}
	return h.rebooted() && h.tried() && operation.MarkerOf(h.running) != inForce
}

func planHashOf(e *enactment) string {
	if e.begin.Instruction == nil {
		return ""
	}
	return e.begin.Instruction.PlanHash
}

// missing are the arguments in force that the running kernel was started without, a sentence each. While arguments change,
// the kernel has those of the trial.
func (h *history) missing() []string {
	if h.current != nil && h.current.stage() != journal.Reverted {
		return nil
	}
	var missing []string
	for _, argument := range operation.Arguments(h.inForce.begin.Operations) {
		if !slices.Contains(h.running, argument) {
			missing = append(missing, "the running kernel was started without "+argument)
		}
	}
	return missing
}
