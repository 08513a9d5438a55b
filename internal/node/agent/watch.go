// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/watch"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// watch reports on changed when the spec of the agent's LowLatencyNode changes, until the context ends.
// A watch begins with the object as it is, so nothing is missed between two watches.
func (a *Agent) watch(ctx context.Context, watcher Watcher, changed chan<- struct{}) {
	var seen int64
	for ctx.Err() == nil {
		if err := a.watchOnce(ctx, watcher, &seen, changed); err != nil && ctx.Err() == nil {
			a.log(ctx).V(1).Info("Lost the watch on the LowLatencyNode", "reason", err.Error())
		}
		select {
		case <-ctx.Done():
		case <-a.clock().After(retryInterval):
		}
	}
}

// watchOnce follows one watch until the API server ends it. The generation last seen survives it.
func (a *Agent) watchOnce(ctx context.Context, watcher Watcher, seen *int64, changed chan<- struct{}) error {
	events, err := watcher.WatchLowLatencyNode(ctx, a.NodeName)
	if err != nil {
		return fmt.Errorf("watching LowLatencyNode %q: %w", a.NodeName, err)
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		node, ok := event.Object.(*v1alpha1.LowLatencyNode)
		if !ok {
			return fmt.Errorf("watching LowLatencyNode %q: unexpected event %s", a.NodeName, event.Type)
		}
		if event.Type == watch.Deleted {
			*seen = 0
			continue
		}
		if node.Generation != *seen {
			*seen = node.Generation
			signal(changed)
		}
	}
	return nil
}

// signal wakes the agent up; a wake-up that is still pending is enough.
func signal(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default:
	}
}
