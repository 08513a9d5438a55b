// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
)

// PublishedUnits counts by node the units that the DRA driver of a pool offers in these ResourceSlices. It goes by what the
// scheduler hands out (k8s.io/dynamic-resource-allocation/structured): only the newest generation of a node's slices counts, that
// only when all of its slices are there, and a device whose taint keeps pods off is not offered.
func PublishedUnits(pool string, published []*resourcev1.ResourceSlice) map[string]int64 {
	offers := map[string]offer{}
	for _, slice := range published {
		node := slice.Spec.NodeName
		if slice.Spec.Driver != bypass.DriverName(pool) || node == nil || slice.Spec.Pool.Name != *node {
			continue
		}
		so := offers[*node]
		if so.slices == 0 || slice.Spec.Pool.Generation > so.generation {
			so = offer{generation: slice.Spec.Pool.Generation}
		}
		if slice.Spec.Pool.Generation == so.generation {
			so.slices++
			so.wanted = slice.Spec.Pool.ResourceSliceCount
			so.units += untainted(slice.Spec.Devices)
		}
		offers[*node] = so
	}
	units := make(map[string]int64, len(offers))
	for node, so := range offers {
		if so.slices == so.wanted {
			units[node] = so.units
		}
	}
	return units
}

// offer is what the slices of one generation say.
type offer struct {
	generation, slices, wanted, units int64
}

func untainted(devices []resourcev1.Device) int64 {
	var units int64
	for i := range devices {
		if !slices.ContainsFunc(devices[i].Taints, keepsPodsOff) {
			units++
		}
	}
	return units
}

func keepsPodsOff(taint resourcev1.DeviceTaint) bool {
	return taint.Effect == resourcev1.DeviceTaintEffectNoSchedule || taint.Effect == resourcev1.DeviceTaintEffectNoExecute
}
