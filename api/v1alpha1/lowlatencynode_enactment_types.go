// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1

// EnactmentPhase is how far the guard of a host is with what it was told last.
//
// +kubebuilder:validation:Enum=Idle;Received;Refused;Written;Armed;Verifying;InForce;TakingBack;TakenBack;Removed;Unreadable
type EnactmentPhase string

const (
	// EnactmentIdle guards are on the host and were told nothing yet.
	EnactmentIdle EnactmentPhase = "Idle"
	// EnactmentReceived instructions wait to be carried out.
	EnactmentReceived EnactmentPhase = "Received"
	// EnactmentRefused instructions change nothing.
	EnactmentRefused EnactmentPhase = "Refused"
	// EnactmentWritten means that the host is being written, or was written without a need for a reboot.
	EnactmentWritten EnactmentPhase = "Written"
	// EnactmentArmed means that everything is written, and that the host reboots to try it.
	EnactmentArmed EnactmentPhase = "Armed"
	// EnactmentVerifying means that the host has started with what is tried.
	EnactmentVerifying EnactmentPhase = "Verifying"
	// EnactmentInForce means that the plan is permanent.
	EnactmentInForce EnactmentPhase = "InForce"
	// EnactmentTakingBack means that the plan is being taken back, or that the host still runs the kernel of the trial.
	EnactmentTakingBack EnactmentPhase = "TakingBack"
	// EnactmentTakenBack means that the plan was taken back; what was before it is in force again.
	EnactmentTakenBack EnactmentPhase = "TakenBack"
	// EnactmentRemoved means that neither a plan nor a guard is on the host.
	EnactmentRemoved EnactmentPhase = "Removed"
	// EnactmentUnreadable means that the agent cannot read what the guard says now, as when it is older than the guard; message says why. The
	// other fields are what the guard said before, as far as anything was read.
	EnactmentUnreadable EnactmentPhase = "Unreadable"
)

// ReasonRebootForbidden is the reason of an enactment that is refused because it needs a reboot, which the operator permits only
// once pods were evicted.
const ReasonRebootForbidden = "RebootForbidden"

// ReasonReplayed is the reason of an enactment that is refused because its number is not above the last.
const ReasonReplayed = "Replayed"

// ReasonWrongKey is the reason of an enactment that is refused because another key has signed it than the guard takes instructions of.
const ReasonWrongKey = "WrongKey"

// NodeEnactment is what the guard on an ordinary host has written down about the plan that it was given.
type NodeEnactment struct {
	// phase is how far the guard is.
	// +required
	Phase EnactmentPhase `json:"phase"`

	// number of the instruction that the phase is about; it grows with each. When omitted, none was given.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	Number int64 `json:"number,omitempty"`

	// planHash identifies the plan that the phase is about. When omitted, it is about the removal, or about what somebody has
	// done by hand.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	PlanHash string `json:"planHash,omitempty"`

	// inForcePlanHash identifies the plan that is in force on the host, whatever the phase is about. When omitted, none is.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	InForcePlanHash string `json:"inForcePlanHash,omitempty"`

	// reason says in one word why the plan was refused or taken back.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Reason string `json:"reason,omitempty"`

	// message says it in a sentence.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`

	// bootID is the boot in which the guard has written this.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	BootID string `json:"bootID,omitempty"`

	// refusal is the instruction that was refused last where phase is about another one. When omitted, none was since the last
	// that was taken.
	// +optional
	Refusal *EnactmentRefusal `json:"refusal,omitempty"`

	// key is the key whose instructions the guard takes. When omitted, it is a guard, or an agent, that does not say so.
	// +optional
	Key *EnactmentKey `json:"key,omitempty"`

	// differences are what others have changed of what the guard has written, and the arguments in force that the running kernel was started
	// without; on a host that is given back, all that is not as it was before. At most 16.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=512
	// +listType=atomic
	// +optional
	Differences []string `json:"differences,omitempty"`
}

// EnactmentKey identifies the key whose instructions the guard of a host takes.
type EnactmentKey struct {
	// id identifies the public key: the first 16 hexadecimal digits of its SHA-256.
	// +kubebuilder:validation:MinLength=16
	// +kubebuilder:validation:MaxLength=16
	// +required
	ID string `json:"id"`

	// serial is the number of the key among those of the operator, which grows with each. When omitted, nobody has told the guard: root has
	// given it the key by hand.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	Serial int64 `json:"serial,omitempty"`
}

// EnactmentRefusal says why a guard has not taken an instruction.
type EnactmentRefusal struct {
	// number of the instruction. When omitted, nothing tells that the operator wrote it.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	Number int64 `json:"number,omitempty"`

	// reason says in one word why.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	Reason string `json:"reason"`

	// message says it in a sentence.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
}
