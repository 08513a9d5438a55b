// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package instruction

// Phase says how far the guard is with the instruction that it was given last.
type Phase string

const (
	// Idle guards are on the host and were given no instruction yet.
	Idle Phase = "Idle"
	// Received instructions are signed as they must be, and wait to be carried out.
	Received Phase = "Received"
	// Refused instructions change nothing. What was in force stays.
	Refused Phase = "Refused"
	// Written tells that operations are being written.
	Written Phase = "Written"
	// Armed tells that everything is written, and that the host has to reboot into the trial.
	Armed Phase = "Armed"
	// Verifying tells that the host runs with what is tried: after its reboot, or at once where none is needed.
	Verifying Phase = "Verifying"
	// InForce tells that the operations are permanent.
	InForce Phase = "InForce"
	// TakingBack tells that the operations are being taken back, or that the host still runs the kernel of the trial.
	TakingBack Phase = "TakingBack"
	// TakenBack tells that the operations were taken back. What was in force before is again.
	TakenBack Phase = "TakenBack"
	// Removed tells that neither a plan nor a guard is on the host.
	Removed Phase = "Removed"
)

// IsFailure reports whether a phase, for a reason, is the end of an attempt at a plan that did not come into force: it was taken back, or the
// host cannot have it. An instruction that was refused for itself says nothing of the plan.
func IsFailure(phase Phase, reason Reason) bool {
	switch phase {
	case TakenBack:
		return true
	case Refused:
		return reason != ReasonRebootForbidden && reason != ReasonReplayed && reason != ReasonWrongKey
	default:
		return false
	}
}

// Reason says why an instruction was refused or its operations were taken back.
type Reason string

// Why an instruction is refused.
const (
	// ReasonTooLong instructions have more than MaximumBytes.
	ReasonTooLong Reason = "TooLong"
	// ReasonMalformed instructions cannot be read.
	ReasonMalformed Reason = "Malformed"
	// ReasonWrongKey tells of another key than that of the operator which has installed the guard.
	ReasonWrongKey Reason = "WrongKey"
	// ReasonContentChanged tells of a signature that does not fit the content.
	ReasonContentChanged Reason = "ContentChanged"
	// ReasonUnknownField tells of an operator that is newer than the guard.
	ReasonUnknownField Reason = "UnknownField"
	// ReasonInvalid instructions are signed, and nothing that any guard carries out.
	ReasonInvalid Reason = "Invalid"
	// ReasonWrongNode instructions are for another node.
	ReasonWrongNode Reason = "WrongNode"
	// ReasonReplayed instructions do not have a number above the last.
	ReasonReplayed Reason = "Replayed"
	// ReasonTriedBefore operations were taken back on this host.
	ReasonTriedBefore Reason = "TriedBefore"
	// ReasonRebootForbidden operations need a reboot, which the instruction forbids.
	ReasonRebootForbidden Reason = "RebootForbidden"
	// ReasonForeignChange tells that somebody else has changed what the guard manages.
	ReasonForeignChange Reason = "ForeignChange"
	// ReasonKubeletUnhealthy tells of a kubelet that was not healthy before anything was changed, or, of operations that were taken
	// back, that it was not healthy with them.
	ReasonKubeletUnhealthy Reason = "KubeletUnhealthy"
	// ReasonCannotEnact tells that this host cannot have the operations: no way back with its boot loader, an argument that
	// somebody else has set, a path that is no file.
	ReasonCannotEnact Reason = "CannotEnact"
)

// Why operations were taken back.
const (
	// ReasonNotWritten tells that writing has failed.
	ReasonNotWritten Reason = "NotWritten"
	// ReasonInterrupted tells of a power cut, or the end of the guard, before the operations were complete.
	ReasonInterrupted Reason = "Interrupted"
	// ReasonNotStarted tells that the host has started again without the arguments of the trial.
	ReasonNotStarted Reason = "NotStarted"
	// ReasonNotVerified tells that the host was not found as planned before the deadline.
	ReasonNotVerified Reason = "NotVerified"
	// ReasonNotKept tells that what was verified could not be made permanent.
	ReasonNotKept Reason = "NotKept"
	// ReasonWithdrawn tells that it was asked for: by an instruction to remove, or by root.
	ReasonWithdrawn Reason = "Withdrawn"
)

// Report is what a guard says of its host. It is read from what the guard has written down for itself.
type Report struct {
	Phase Phase `json:"phase"`
	// Number and PlanHash of the instruction that the phase is about; 0 and empty for operations that somebody has applied by
	// hand. The hash is empty for an instruction to remove, too.
	Number   int64  `json:"number,omitempty"`
	PlanHash string `json:"planHash,omitempty"`
	// Reason and Message say why, for Refused and TakenBack.
	Reason  Reason `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// BootID of the running kernel.
	BootID string `json:"bootID,omitempty"`
	// InForce is the hash of the plan that is in force, whatever the phase is about; empty where none is.
	InForce string `json:"inForce,omitempty"`
	// Differences are what others have changed of what the guard has written, and the arguments in force that the running
	// kernel was started without.
	Differences []string `json:"differences,omitempty"`
	// Refused is the instruction that was refused last, also where the phase is about another one: what somebody without the
	// key, or with an old number, has handed over changes no phase. It is nil where none was since the last that was taken.
	Refused *Refusal `json:"refused,omitempty"`
	// Key is the one whose instructions the guard takes; nil where none was given.
	Key *TrustedKey `json:"key,omitempty"`
}

// TrustedKey is the key whose instructions a guard takes.
type TrustedKey struct {
	// ID is what KeyID makes of it.
	ID string `json:"id"`
	// Serial of the key among those of its operator; 0 where nobody has said it.
	Serial int64 `json:"serial,omitempty"`
}

// Refusal says why an instruction was not taken.
type Refusal struct {
	Reason  Reason `json:"reason"`
	Message string `json:"message"`
	// Number of the instruction; 0 where nothing tells that it is what the operator wrote.
	Number int64 `json:"number,omitempty"`
}
