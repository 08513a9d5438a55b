// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// collectGates tells of the nodes that have the condition LowLatencyReady.
func (c *Collector) collectGates(ctx context.Context, out chan<- prometheus.Metric) error {
	var nodes corev1.NodeList
	if err := c.reader.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range nodes.Items {
		for _, condition := range nodes.Items[i].Status.Conditions {
			if condition.Type != v1alpha1.NodeConditionReady {
				continue
			}
			state := "Closed"
			if condition.Status == corev1.ConditionTrue {
				state = "Open"
			}
			c.gauge(out, nodeGate, 1, nodes.Items[i].Name, state, condition.Reason)
		}
	}
	return nil
}

// driftKey is what drift is counted by.
type driftKey struct{ profile, check, state string }

// driftCounts add up the drift of all nodes of a profile.
type driftCounts map[driftKey]int64

// begin has every check that a node of the profile may fail begin at none: Prometheus sees how much a count has grown, and nothing of one that
// is first told after the first time.
func (d driftCounts) begin(profile string, checks []verify.Check) {
	for i := range checks {
		d[driftKey{profile, string(checks[i].ID), "drifted"}] += 0
	}
}

func (d driftCounts) add(node *v1alpha1.LowLatencyNode) {
	for i := range node.Status.Drift {
		drifted := &node.Status.Drift[i]
		for state, count := range map[string]int64{
			"drifted": drifted.Drifted, "repaired": drifted.Repaired, "unrepaired": int64(len(drifted.Unrepaired)),
		} {
			d[driftKey{node.Spec.Profile, string(drifted.Check), state}] += count
		}
	}
}
