// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package page

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
)

// TestRatiosStandBesideTheSameSide, to the same base, in whichever order sides were measured.
func TestRatiosStandBesideTheSameSide(t *testing.T) {
	compared := func(base v1alpha1.LatencySide, ratios map[v1alpha1.LatencySide]int64, order ...v1alpha1.LatencySide) *v1alpha1.LatencyMeasurement {
		c := &v1alpha1.ComparisonMeasurement{Base: base}
		for _, name := range order {
			side := v1alpha1.SideMeasurement{Side: name}
			if parts, found := ratios[name]; found {
				side.Ratios = []v1alpha1.LatencyRatio{{Bytes: 64, Percentile: v1alpha1.P50, PartsPerThousand: parts}}
			}
			c.Sides = append(c.Sides, side)
		}
		return &v1alpha1.LatencyMeasurement{Network: &v1alpha1.NetworkMeasurement{Comparison: c}}
	}
	node := view.LatencyNode{LatencyTestResult: v1alpha1.LatencyTestResult{
		Measured: compared("kernel", map[v1alpha1.LatencySide]int64{"onload": 700, "dpdk": 500}, "kernel", "onload", "dpdk"),
		Previous: compared("kernel", map[v1alpha1.LatencySide]int64{"onload": 710, "dpdk": 510}, "dpdk", "kernel", "onload"),
	}}
	for name, tc := range map[string]struct {
		reference *v1alpha1.LatencyMeasurement
		want      []string
	}{
		"another order": {compared("kernel", map[v1alpha1.LatencySide]int64{"onload": 720, "dpdk": 520}, "onload", "dpdk", "kernel"), []string{"0.720", "0.520"}},
		"another side":  {compared("kernel", map[v1alpha1.LatencySide]int64{"vma": 720, "dpdk": 520}, "kernel", "vma", "dpdk"), []string{"", "0.520"}},
		"another base":  {compared("dpdk", map[v1alpha1.LatencySide]int64{"onload": 1440, "kernel": 2000}, "dpdk", "onload", "kernel"), []string{"", ""}},
		"no comparison": {&v1alpha1.LatencyMeasurement{Network: &v1alpha1.NetworkMeasurement{}}, []string{"", ""}},
	} {
		rows := latencyRows(&node, &view.LatencyTest{Nodes: []view.LatencyNode{node}}, &Reference{Name: "golden", Measurement: tc.reference})
		want := []latencyRow{
			{Name: "onload to kernel, 64 bytes: 50 %", Now: "0.700", Before: "0.710", Reference: tc.want[0]},
			{Name: "dpdk to kernel, 64 bytes: 50 %", Now: "0.500", Before: "0.510", Reference: tc.want[1]},
		}
		if diff := cmp.Diff(want, rows); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
