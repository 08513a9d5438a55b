// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package qualification

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/utils/ptr"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
)

// ManagementInterruptsOf sums up how often the firmware interrupted CPUs, by CPU, of each one count for each repetition: the CPU with the most. Where some
// were counted, they came, whatever others do not know; none came only where all know. It is nil when nothing was asked.
func ManagementInterruptsOf(all map[int][]counted.ManagementInterrupts) *v1alpha1.LatencyManagementInterrupts {
	if len(all) == 0 {
		return nil
	}
	most, count, unknown := -1, uint64(0), ""
	for _, cpu := range slices.Sorted(maps.Keys(all)) {
		seen := uint64(0)
		for _, one := range all[cpu] {
			unknown, seen = cmp.Or(unknown, one.Unknown), seen+one.Count
		}
		if seen > count {
			most, count = cpu, seen
		}
	}
	switch {
	case count > 0:
		return &v1alpha1.LatencyManagementInterrupts{State: v1alpha1.StateCounted, CPU: new(int32(most)), Count: new(within(count))}
	case unknown != "":
		return &v1alpha1.LatencyManagementInterrupts{State: v1alpha1.StateUnknown, UnknownReason: unknownReason(unknown)}
	}
	return &v1alpha1.LatencyManagementInterrupts{State: v1alpha1.StateCounted, Count: new(int64(0))}
}

// ManagementInterruptWords is a phrase about what was counted; "" of nil.
func ManagementInterruptWords(m *v1alpha1.LatencyManagementInterrupts) string {
	switch {
	case m == nil:
		return ""
	case m.State != v1alpha1.StateCounted || m.Count == nil:
		return "system management interrupts unknown (" + m.UnknownReason + ")"
	case *m.Count == 0:
		return "no system management interrupt"
	case m.CPU == nil:
		return fmt.Sprintf("system management interrupts: %d", *m.Count)
	}
	return fmt.Sprintf("system management interrupts of CPU %d: %d", *m.CPU, *m.Count)
}

// managementBlame is the end of a sentence about a failure, where the firmware interrupted CPUs; "" when it did not, or nobody knows.
func managementBlame(m *v1alpha1.LatencyManagementInterrupts) string {
	if m == nil || m.Count == nil || *m.Count == 0 {
		return ""
	}
	return "; the processor counted " + ManagementInterruptWords(m)
}

// checkManagementInterrupts refuses what no program of ours leaves of them: of what is Unknown a reason and nothing else, of what was counted a count,
// and a CPU exactly when there were some.
func checkManagementInterrupts(m *v1alpha1.LatencyManagementInterrupts) error {
	if m == nil {
		return nil
	}
	// over is the time of counting, which these have not: a count that is there was counted.
	over := int64(0)
	if m.Count != nil {
		over = 1
	}
	return total{"system management interrupts", m.UnknownReason, m.State, m.CPU, ptr.Deref(m.Count, 0), over}.check()
}
