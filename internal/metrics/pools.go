// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// nicKey is what NICs and their users are counted by: a metric, a pool, and what tells about the NIC or the user.
type nicKey struct {
	metric, pool string
	// is a health, an alignment or a supply of hugepages.
	is string
	// module and user are versions; both are "" for metrics without.
	module, user string
}

func (k nicKey) labels() []string {
	if k.metric == poolVersions {
		return []string{k.pool, k.is, comparison(k.module, k.user), k.module, k.user}
	}
	return []string{k.pool, k.is}
}

// comparison says whether two versions are the same text. Whether they fit each other is told by the NIC's health.
func comparison(module, user string) string {
	switch {
	case module == "" || user == "":
		return "Incomplete"
	case module == user:
		return "Equal"
	default:
		return "Different"
	}
}

// nicCounts counts what the agents of all nodes say about the NICs of pools.
type nicCounts map[nicKey]int

func (c nicCounts) add(node *v1alpha1.LowLatencyNode) {
	for i := range node.Status.BypassNICs {
		nic := &node.Status.BypassNICs[i]
		c[nicKey{metric: poolNICs, pool: nic.Pool, is: string(nic.Health)}]++
		if nic.ModuleVersion != "" || nic.UserVersion != "" {
			c[nicKey{poolVersions, nic.Pool, string(nic.Health), nic.ModuleVersion, nic.UserVersion}]++
		}
		if nic.Hugepages != "" && nic.Health == v1alpha1.NICHealthy && int(nic.Units) > len(nic.Users) {
			c[nicKey{metric: poolHugepages, pool: nic.Pool, is: string(nic.Hugepages)}]++
		}
		for _, user := range nic.Users {
			c[nicKey{metric: poolUsers, pool: nic.Pool, is: string(user.Alignment)}]++
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
		c.conditions(out, poolCondition, pool.Status.Conditions, pool.Name)
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
