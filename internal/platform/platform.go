// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package platform is what the controllers know of the system that changes nodes: it takes an intent, the
// plans and the nodes that are to have them, brings it to the nodes in steps, and says how far it is. What is
// known about one system only, such as OpenShift's machine-config operator, is in a package below this one.
package platform

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// ErrUnusable is in an error of which the profile's user has to know, because trying the same again is of no use.
var ErrUnusable = errors.New("somebody has to correct that first")

// Platform changes nodes. Both verbs take only the steps that are possible now and are called again
// whenever a watched object changes; neither blocks.
type Platform interface {
	// Roll brings the intent to the nodes.
	Roll(ctx context.Context, intent *fleet.Intent) (fleet.Outcome, error)
	// Return gives the nodes back and removes everything that Roll made.
	Return(ctx context.Context, intent *fleet.Intent) (fleet.Remainder, error)
	// IsConfigured reports whether a node is known to have the configuration that the platform wants of it, so that it takes
	// the plan that it is given without a reboot. The report is that of the node, nil where there is none.
	IsConfigured(node *corev1.Node, report *v1alpha1.LowLatencyNode) bool
	// Rules are what the platform keeps to itself on nodes, for planning.
	Rules() plan.PlatformRules
	// Watches are the kinds whose changes may let the next step happen.
	Watches() []Watch
}

// Watch is a kind whose changes a platform wants to see.
type Watch struct {
	// Object of the kind, empty.
	Object client.Object
	// Shared objects concern every profile. Others concern the profile that their label names.
	Shared bool
}
