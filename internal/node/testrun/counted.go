// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package testrun

import (
	"cmp"
	"fmt"
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/jitter"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// countedInterrupts are the interrupts that were counted in every measurement, of which each tells where it counted them.
func countedInterrupts(from []string) v1alpha1.CountedInterrupts {
	switch {
	case slices.Contains(from, host.NoInterrupts):
		return v1alpha1.CountedInterruptsNone
	case slices.Contains(from, host.DeviceInterrupts):
		return v1alpha1.CountedInterruptsDevices
	}
	return v1alpha1.CountedInterruptsAll
}

// trafficCauses are what the kernel counted on the CPU of the client in all repetitions, each with its rate, at most as many as a record
// has, and the interrupts that could be counted. Softirqs come last: they follow from interrupts, or are the sending itself.
func trafficCauses(results []*latency.Result) ([]string, v1alpha1.CountedInterrupts) {
	var from []string
	var events []counted.Event
	nanoseconds := int64(0)
	for _, result := range results {
		if result.CountedNanoseconds <= 0 {
			continue
		}
		from = append(from, result.InterruptsFrom)
		nanoseconds += result.CountedNanoseconds
		events = merge(events, result.Events())
	}
	if nanoseconds == 0 {
		return nil, ""
	}
	slices.SortStableFunc(events, func(a, b counted.Event) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.Count, a.Count))
	})
	var causes []string
	for _, event := range events[:min(v1alpha1.MaxTestCauses, len(events))] {
		rate := fmt.Sprintf(" %s a second", latency.PerSecond(event.Count, nanoseconds))
		causes = append(causes, printable(string(event.Kind)+" "+event.Name, v1alpha1.MaxTestCauseLength-len(rate))+rate)
	}
	return causes, countedInterrupts(from)
}

func rank(event counted.Event) int {
	if event.Kind == counted.Softirq {
		return 1
	}
	return 0
}

// merge adds what was counted to what was counted before.
func merge(all, more []counted.Event) []counted.Event {
	for _, one := range more {
		at := slices.IndexFunc(all, func(e counted.Event) bool { return e.Kind == one.Kind && e.Name == one.Name })
		if at < 0 {
			all = append(all, one)
		} else {
			all[at].Count += one.Count
		}
	}
	return all
}

// jitterIsolation sums up what the scheduler and the idle governor counted on all CPUs in all repetitions.
func jitterIsolation(all []*jitter.CPUResult) *v1alpha1.LatencyIsolation {
	var found []counted.Isolation
	for _, one := range all {
		if one.Isolation != nil {
			found = append(found, *one.Isolation)
		}
	}
	return qualification.IsolationOf(found)
}

// managementInterrupts sums up how often the firmware interrupted all CPUs in all repetitions.
func managementInterrupts(all []*jitter.CPUResult) *v1alpha1.LatencyManagementInterrupts {
	found := map[int][]counted.ManagementInterrupts{}
	for _, one := range all {
		if one.ManagementInterrupts != nil {
			found[one.CPU] = append(found[one.CPU], *one.ManagementInterrupts)
		}
	}
	return qualification.ManagementInterruptsOf(found)
}

// trafficIsolation is the same of the CPU of the client.
func trafficIsolation(results []*latency.Result) *v1alpha1.LatencyIsolation {
	var found []counted.Isolation
	for _, result := range results {
		if result.Isolation != nil {
			found = append(found, *result.Isolation)
		}
	}
	return qualification.IsolationOf(found)
}
