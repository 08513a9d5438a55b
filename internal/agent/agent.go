// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package agent is what runs on a node: it reads the host, evaluates the plan of the node and writes
// what the running kernel says into the status of its own LowLatencyNode. It changes nothing on the
// host.
package agent

import (
	"context"
	"errors"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Agent keeps the status of one LowLatencyNode true.
type Agent struct {
	// Client writes the status, and reads the LowLatencyNode and the ConfigMap of its plan. When it can
	// watch, the agent reacts to a new plan at once, else at its next pass.
	Client client.Client
	// NodeName is the name of the Node and of its LowLatencyNode.
	NodeName string
	// Namespace holds the ConfigMaps of plans.
	Namespace string
	// Root is where the host's root file system is found, such as /host.
	Root string
	// Clock tells the time; nil means the real one.
	Clock clock.Clock
	// Interval between two passes; zero means DefaultInterval.
	Interval time.Duration
	// Window is the least time between two readings whose counters are compared; zero means
	// DefaultWindow.
	Window time.Duration
}

// Run passes over the host every Interval, and at once when the node's spec changes, until the context
// ends.
func (a *Agent) Run(ctx context.Context) error { return errors.New("not yet") }

// Once reads the host, evaluates the plan and writes the status if it changed.
func (a *Agent) Once(ctx context.Context) error { return errors.New("not yet") }
