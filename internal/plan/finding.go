// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// Finding says what in a profile cannot be met on one node, or what is doubtful there.
type Finding struct {
	// Rule identifies the planning rule, such as plan.cpus-exist.
	Rule string `json:"rule"`
	// Severity Critical means that there is no plan for the node.
	Severity v1alpha1.Severity `json:"severity"`
	// Field is the field of the profile, such as spec.memory.hugepages[1].
	Field string `json:"field"`
	// Node is the name of the node.
	Node string `json:"node"`
	// Message is one sentence: what is wrong, with values.
	Message string `json:"message"`
	// Remedy says what to do.
	Remedy string `json:"remedy"`
}
