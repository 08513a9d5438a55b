// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// Input is what a plan is made from.
type Input struct {
	// Profile is the intent.
	Profile *v1alpha1.LowLatencyNodeProfile
	// Node is the name of the node; it appears in findings only.
	Node string
	// Topology is the hardware of the node.
	Topology *topology.Topology
	// BypassNICs are further bypass NICs, such as those that a BypassNICPool claims on the node, besides
	// the ones that spec.network.devices select.
	BypassNICs []topology.NIC
}

// New computes the plan of one node. The plan is nil when a finding is Critical.
func New(in Input) (*NodePlan, []Finding) {
	return nil, nil
}
