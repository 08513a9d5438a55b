// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeTransition is a condition of a node that has become another, with what has decided it. Transitions are the
// evidence of what a node was at what time: they stay when the agent, the operator or the node starts again.
type NodeTransition struct {
	// time at which the agent saw it.
	// +required
	Time metav1.Time `json:"time"`

	// condition is Applied, DeJittered or NUMAAligned.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	Condition string `json:"condition"`

	// from is the status before: True, False or Unknown. Unknown, too, when there was none.
	// +kubebuilder:validation:Enum=True;False;Unknown
	// +required
	From metav1.ConditionStatus `json:"from"`

	// to is the status after: True, False or Unknown.
	// +kubebuilder:validation:Enum=True;False;Unknown
	// +required
	To metav1.ConditionStatus `json:"to"`

	// reason of the condition after.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	Reason string `json:"reason"`

	// planHash is the plan that was verified; absent when there was none.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	PlanHash string `json:"planHash,omitempty"`

	// bootID is the boot of the kernel in which it was; absent when the host does not report one.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	BootID string `json:"bootID,omitempty"`

	// check is the check that has decided, where one has not passed.
	// +optional
	Check CheckID `json:"check,omitempty"`

	// message is the finding that has decided: it names the CPU, IRQ, file or NIC.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
}
