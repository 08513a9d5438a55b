// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
)

// sliceOf is a ResourceSlice of node n1, one of so many of its generation.
func sliceOf(generation, of int64, devices int, change ...func(*resourcev1.ResourceSlice)) *resourcev1.ResourceSlice {
	slice := &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{
		Driver: bypass.DriverName("x2"), NodeName: new("n1"),
		Pool: resourcev1.ResourcePool{Name: "n1", Generation: generation, ResourceSliceCount: of},
	}}
	for i := range devices {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("d%d", i)})
	}
	for _, c := range change {
		c(slice)
	}
	return slice
}

func TestPublishedUnits(t *testing.T) {
	tainted := func(effect resourcev1.DeviceTaintEffect) func(*resourcev1.ResourceSlice) {
		return func(s *resourcev1.ResourceSlice) {
			s.Spec.Devices[0].Taints = []resourcev1.DeviceTaint{{Key: "k", Effect: effect}}
		}
	}
	cases := map[string]struct {
		slices []*resourcev1.ResourceSlice
		want   map[string]int64
	}{
		"nothing": {nil, map[string]int64{}},
		"one slice, and one of another node": {
			[]*resourcev1.ResourceSlice{sliceOf(1, 1, 2), sliceOf(1, 1, 3, func(s *resourcev1.ResourceSlice) {
				s.Spec.NodeName, s.Spec.Pool.Name = new("n2"), "n2"
			})},
			map[string]int64{"n1": 2, "n2": 3},
		},
		"two slices":                         {[]*resourcev1.ResourceSlice{sliceOf(1, 2, 2), sliceOf(1, 2, 1)}, map[string]int64{"n1": 3}},
		"a slice is still to come":           {[]*resourcev1.ResourceSlice{sliceOf(1, 2, 2)}, map[string]int64{}},
		"a former slice, read first":         {[]*resourcev1.ResourceSlice{sliceOf(1, 1, 2), sliceOf(2, 1, 1)}, map[string]int64{"n1": 1}},
		"a former slice, read last":          {[]*resourcev1.ResourceSlice{sliceOf(2, 1, 1), sliceOf(1, 1, 2)}, map[string]int64{"n1": 1}},
		"the new generation is not complete": {[]*resourcev1.ResourceSlice{sliceOf(1, 1, 2), sliceOf(2, 2, 1)}, map[string]int64{}},
		"generation 0 counts":                {[]*resourcev1.ResourceSlice{sliceOf(0, 1, 2)}, map[string]int64{"n1": 2}},
		"a NIC that is not healthy":          {[]*resourcev1.ResourceSlice{sliceOf(1, 1, 2, tainted(resourcev1.DeviceTaintEffectNoSchedule))}, map[string]int64{"n1": 1}},
		"a NIC that pods are driven off":     {[]*resourcev1.ResourceSlice{sliceOf(1, 1, 2, tainted(resourcev1.DeviceTaintEffectNoExecute))}, map[string]int64{"n1": 1}},
		"a taint that keeps nobody off":      {[]*resourcev1.ResourceSlice{sliceOf(1, 1, 2, tainted(resourcev1.DeviceTaintEffectNone))}, map[string]int64{"n1": 2}},
		"the driver of another pool": {[]*resourcev1.ResourceSlice{sliceOf(1, 1, 2, func(s *resourcev1.ResourceSlice) {
			s.Spec.Driver = bypass.DriverName("x3")
		})}, map[string]int64{}},
		"a slice of no node": {[]*resourcev1.ResourceSlice{sliceOf(1, 1, 2, func(s *resourcev1.ResourceSlice) { s.Spec.NodeName = nil })}, map[string]int64{}},
		"a slice of another pool of devices": {[]*resourcev1.ResourceSlice{sliceOf(1, 1, 2, func(s *resourcev1.ResourceSlice) {
			s.Spec.Pool.Name = "n2"
		})}, map[string]int64{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, PublishedUnits("x2", tc.slices)); diff != "" {
				t.Errorf("units (-want +got):\n%s", diff)
			}
		})
	}
}
