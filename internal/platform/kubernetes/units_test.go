// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package kubernetes

import (
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// TestStateNow: another number of hugepages is reserved on the running host where that takes no reboot.
func TestStateNow(t *testing.T) {
	small := plan.HugepagePlan{SizeKibibytes: 2048, NUMANode: new(0), Method: plan.ByUnit}
	large := plan.HugepagePlan{SizeKibibytes: 1 << 20, NUMANode: new(0), Method: plan.ByUnit}
	spread := plan.HugepagePlan{SizeKibibytes: 2048, Method: plan.ByKernelArgument}
	w := &writer{plan: &plan.NodePlan{Hugepages: []plan.HugepagePlan{spread, small, large}}}
	for unit, want := range map[string]operation.State{
		small.UnitName(): operation.Restarted, large.UnitName(): operation.Started,
		"lowlatency-kernel-threads.service": operation.Started, packetFilterUnit: "",
	} {
		if got, _ := w.stateNow(unit); got != want {
			t.Errorf("%s: %q, want %q", unit, got, want)
		}
	}
}
