// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package platform

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
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

// Return implements Platform. A node with the label of a pool was changed by an operator that may change nodes: it would keep the
// plan for ever if it were forgotten now.
func (None) Return(_ context.Context, intent *fleet.Intent) (fleet.Remainder, error) {
	rest := fleet.Remainder{}
	for name, node := range intent.Nodes {
		if node.Labels[v1alpha1.LabelProfile] == intent.Profile.Name && intent.Held[name] == "" && !fleet.IsUntouched(node) {
			rest.Nodes = append(rest.Nodes, name)
		}
	}
	if len(rest.Nodes) == 0 {
		return rest, nil
	}
	slices.Sort(rest.Nodes)
	rest.RetryAfter = changedRetry
	rest.Waiting = fmt.Sprintf("node %s has a plan that this operator may not take back: run the operator with --platform=%s, or take the label %s "+
		"off the node to leave the host as it is", rest.Nodes[0], Kubernetes, v1alpha1.LabelPool)
	return rest, nil
}

// changedRetry is when to look again at nodes that cannot be given back; their labels are watched.
const changedRetry = 30 * time.Second

// IsConfigured implements Platform: what configures the nodes is not known.
func (None) IsConfigured(*corev1.Node, *v1alpha1.LowLatencyNode) bool { return false }

// Rules implements Platform: what brings plans to the nodes is not known, and neither is what it keeps to itself.
func (None) Rules() plan.PlatformRules { return plan.PlatformRules{} }

// Watches implements Platform.
func (None) Watches() []Watch { return nil }
