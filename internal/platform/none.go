// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package platform

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// None is a platform that changes no node: plans are made and nodes are verified against them, and what the
// plans say is brought to the nodes by other means.
type None struct{}

var _ Platform = None{}

// Roll implements Platform. Nothing tells when a node takes its plan, so its turn comes at once, unless the rollout is paused.
func (None) Roll(_ context.Context, intent *fleet.Intent) (fleet.Outcome, error) {
	if intent.ReadOnly {
		return fleet.Outcome{}, nil
	}
	return fleet.Outcome{Turned: intent.Pending}, nil
}

// Return implements Platform.
func (None) Return(context.Context, *fleet.Intent) (fleet.Remainder, error) {
	return fleet.Remainder{}, nil
}

// IsConfigured implements Platform: what configures the nodes is not known.
func (None) IsConfigured(*corev1.Node) bool { return false }

// Rules implements Platform: what brings plans to the nodes is not known, and neither is what it keeps to itself.
func (None) Rules() plan.PlatformRules { return plan.PlatformRules{} }

// Watches implements Platform.
func (None) Watches() []Watch { return nil }
