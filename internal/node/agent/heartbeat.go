// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/heartbeat"
)

// Heartbeat says in which Lease the agent shows that it looks at the host.
type Heartbeat struct {
	// Namespace of the Lease, whose name is that of the node; "" for no heartbeat.
	Namespace string
	// Holder is how the agent calls itself in the Lease; "" means the name of the node.
	Holder string
}

// heartbeatState is what the agent remembers of its renewals.
type heartbeatState struct {
	// at is when the Lease was renewed last.
	at time.Time
	// failing tells that a failure has been logged.
	failing bool
}

// sendHeartbeat renews the Lease of the node, unless that was done a moment ago. It is called after a look at the host that
// succeeded, whose outcome is in the status, so that a fresh Lease vouches for the status. A renewal is one request, and
// reads nothing. One that fails is no reason to look at the host again; the next look renews.
func (a *Agent) sendHeartbeat(ctx context.Context) {
	now := a.clock().Now()
	if a.Heartbeat.Namespace == "" || now.Sub(a.heartbeat.at) < heartbeat.Renewal {
		return
	}
	err := a.renew(ctx, now)
	switch {
	case err == nil:
		a.heartbeat = heartbeatState{at: now}
	case ctx.Err() != nil || a.heartbeat.failing:
	case apierrors.IsNotFound(err):
		a.heartbeat.failing = true
		a.log(ctx).Info("Waiting for the Lease that the operator makes for this node", "namespace", a.Heartbeat.Namespace)
	default:
		a.heartbeat.failing = true
		a.log(ctx).Error(err, "Failed to show that this agent looks at the host")
	}
}

// renew writes what the Lease says of the agent. The Lease is the operator's: an agent makes none.
func (a *Agent) renew(ctx context.Context, now time.Time) error {
	holder := cmp.Or(a.Heartbeat.Holder, a.NodeName)
	patch, err := json.Marshal(map[string]any{"spec": heartbeat.Renewed(holder, now, a.interval())})
	if err != nil {
		return fmt.Errorf("writing a Lease as JSON: %w", err)
	}
	if err := a.Client.PatchLease(ctx, a.Heartbeat.Namespace, a.NodeName, patch); err != nil {
		return fmt.Errorf("renewing Lease %s/%s: %w", a.Heartbeat.Namespace, a.NodeName, err)
	}
	return nil
}
