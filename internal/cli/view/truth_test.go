// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package view

import (
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

func TestAddTruth(t *testing.T) {
	check := Check{NUMANodes: []CheckNUMANode{{ID: 0, NICs: []string{}}, {ID: 1, NICs: []string{}}}}
	check.AddTruth(verify.Truth{
		Nodes: []verify.NodeTruth{
			{ID: 1, Vectors: host.Known(5, "irq"), IsolatedVectors: host.Known(2, "irq"), Reserved: []verify.SettingTruth{
				{Name: "memory", Planned: "1Gi", Configured: host.Known("0", "config")},
			}},
			{ID: 2, Vectors: host.Known(9, "irq")},
		},
		Kubelet: []verify.SettingTruth{{Name: "topologyManagerScope", Planned: "pod", Configured: host.Absent[string]("config", "no such file")}},
	})
	sameJSON(t, `[
		{"id": 0, "housekeeping": "", "isolated": "", "hugepages": null, "nics": []},
		{"id": 1, "housekeeping": "", "isolated": "", "hugepages": null, "nics": [], "vectors": 5, "isolatedVectors": 2,
			"reserved": [{"name": "memory", "planned": "1Gi", "configured": "0", "text": "memory 0, planned 1Gi"}]}]`, check.NUMANodes)
	sameJSON(t, `[{"name": "topologyManagerScope", "planned": "pod", "configured": null, "text": "topologyManagerScope unknown, planned pod"}]`, check.Kubelet)
}
