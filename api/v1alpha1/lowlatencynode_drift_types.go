// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1

// CheckDrift counts how often a check that had passed failed while the plan stayed the same, and what the
// agent put back.
type CheckDrift struct {
	// check is the identifier of the check, as in docs/checks.md.
	// +required
	Check CheckID `json:"check"`

	// drifted is how often the check failed after it had passed for the same plan. It never decreases while the
	// LowLatencyNode exists.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	Drifted int64 `json:"drifted"`

	// repaired is how many files the agent wrote for the check and found as planned at its next reading. It
	// never decreases while the LowLatencyNode exists.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	Repaired int64 `json:"repaired"`

	// message says what drifted last: the object, where it is now, where the plan has it, and who may have moved
	// it.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`

	// objects are the CPUs, interrupts, NICs and other parts of the node that drifted last, those of a program that
	// may have moved them included. When omitted, the check is about the node as a whole.
	// +optional
	Objects *FindingObjects `json:"objects,omitempty"`

	// unrepaired says which files the agent does not write, or no longer writes, and why: another program keeps
	// changing them, the kernel refuses, or the agent may not write on this node. At most 16 are listed.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +listType=atomic
	// +optional
	Unrepaired []string `json:"unrepaired,omitempty"`
}
