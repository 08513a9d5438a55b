// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// nicKey is what NICs and their users are counted by: a metric, a pool, and one or two further labels.
type nicKey struct{ metric, pool, first, second string }

func (k nicKey) labels() []string {
	if k.metric == poolVersions {
		return []string{k.pool, k.first, k.second}
	}
	return []string{k.pool, k.first}
}

// nicCounts counts what the agents of all nodes say about the NICs of pools.
type nicCounts map[nicKey]int

func (c nicCounts) add(node *v1alpha1.LowLatencyNode) {
	for i := range node.Status.BypassNICs {
		nic := &node.Status.BypassNICs[i]
		c[nicKey{metric: poolNICs, pool: nic.Pool, first: string(nic.Health)}]++
		if nic.ModuleVersion != "" || nic.UserVersion != "" {
			c[nicKey{poolVersions, nic.Pool, nic.ModuleVersion, nic.UserVersion}]++
		}
		for _, user := range nic.Users {
			c[nicKey{metric: poolUsers, pool: nic.Pool, first: string(user.Alignment)}]++
		}
	}
}

func (c *Collector) collectPools(ctx context.Context, out chan<- prometheus.Metric) error {
	var pools v1alpha1.BypassNICPoolList
	if err := c.reader.List(ctx, &pools, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range pools.Items {
		pool := &pools.Items[i]
		for _, condition := range pool.Status.Conditions {
			c.gauge(out, poolCondition, 1, pool.Name, condition.Type, string(condition.Status), condition.Reason)
		}
		if nodes := pool.Status.Nodes; nodes != nil {
			c.gauge(out, poolNodes, float64(nodes.Matched), pool.Name, "matched")
			c.gauge(out, poolNodes, float64(nodes.Reporting), pool.Name, "reporting")
		}
		if nics := pool.Status.NICs; nics != nil {
			c.gauge(out, poolUnits, float64(nics.Units), pool.Name, "advertised")
			c.gauge(out, poolUnits, float64(nics.Allocated), pool.Name, "allocated")
		}
	}
	return nil
}
