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

// judge tells whether the agent of a node is heard, and returns what counts of the node.
func (c *Collector) judge(out chan<- prometheus.Metric, node *v1alpha1.LowLatencyNode, lease *coordinationv1.Lease) *v1alpha1.LowLatencyNode {
	silence := heartbeat.Listen(client.ObjectKey{Namespace: c.agents, Name: node.Name}, lease, c.clock.Now())
	state := "Heard"
	if silence.Exists() {
		state = "Silent"
	}
	c.gauge(out, agentHeard, 1, node.Name, node.Spec.Profile, state)
	if last := heartbeat.LastOf(lease); !last.IsZero() {
		c.gauge(out, agentBeat, float64(last.Unix()), node.Name, node.Spec.Profile)
	}
	return silence.Judge(node)
}
