// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/heartbeat"
)

// leases are those of the agents by node.
func (c *Collector) leases(ctx context.Context) (map[string]*coordinationv1.Lease, error) {
	var list coordinationv1.LeaseList
	if err := c.reader.List(ctx, &list, client.InNamespace(c.agents), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	leases := make(map[string]*coordinationv1.Lease, len(list.Items))
	for i := range list.Items {
		leases[list.Items[i].Name] = &list.Items[i]
	}
	return leases, nil
}

// judge counts whether the heartbeat of the agent of a node is fresh, and returns what counts of the node.
func (c *Collector) judge(out chan<- prometheus.Metric, node *v1alpha1.LowLatencyNode, lease *coordinationv1.Lease) *v1alpha1.LowLatencyNode {
	staleness := heartbeat.Check(client.ObjectKey{Namespace: c.agents, Name: node.Name}, lease, c.clock.Now())
	state := "Fresh"
	if staleness.Exists() {
		state = "Stale"
	}
	c.gauge(out, agentHeartbeat, 1, node.Name, node.Spec.Profile, state)
	if last := heartbeat.LastOf(lease); !last.IsZero() {
		c.gauge(out, agentBeat, float64(last.Unix()), node.Name, node.Spec.Profile)
	}
	return staleness.Judge(node)
}
