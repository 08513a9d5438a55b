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
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
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

// trafficCauses are what the kernel counted on the CPU of an end in all repetitions, each with its rate, at most as many as a record
// has, and the interrupts that could be counted: None where a repetition, or a part of one, has none. Softirqs come last: they follow from interrupts, or are the sending itself.
func trafficCauses(repetitions []latency.End) ([]string, v1alpha1.CountedInterrupts) {
	from := make([]string, 0, len(repetitions))
	var events []counted.Event
	nanoseconds := int64(0)
	for i := range repetitions {
		end := &repetitions[i]
		from = append(from, interruptsFrom(end)...)
		if over := end.CountedNanoseconds(); over > 0 {
			nanoseconds += over
			events = counted.Merge(events, end.Events())
		}
	}
	if len(from) == 0 {
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

// interruptsFrom is where interrupts of each part of a repetition were counted.
func interruptsFrom(end *latency.End) []string {
	from := make([]string, 0, len(end.Counts))
	for i := range end.Counts {
		switch one := &end.Counts[i]; {
		case one.Unknown != "":
			from = append(from, host.NoInterrupts)
		case one.CountedNanoseconds > 0:
			from = append(from, one.InterruptsFrom)
		}
	}
	return from
}

func rank(event counted.Event) int {
	if event.Kind == counted.Softirq {
		return 1
	}
	return 0
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

// trafficIsolation is the same of the CPU of an end.
func trafficIsolation(repetitions []latency.End) *v1alpha1.LatencyIsolation {
	var found []counted.Isolation
	for i := range repetitions {
		found = append(found, repetitions[i].Isolation()...)
	}
	return qualification.IsolationOf(found)
}

// serverCounts are what was counted on the CPU of the server in all repetitions.
func serverCounts(results []*latency.Result) v1alpha1.ServerCounts {
	servers := serversOf(results)
	counts := v1alpha1.ServerCounts{ServerIsolation: trafficIsolation(servers)}
	counts.ServerCauses, counts.ServerCountedInterrupts = trafficCauses(servers)
	// A server that is started anew may be kept to another CPU: then none is that of all.
	if cpu := servers[0].CPU; cpu >= 0 && !slices.ContainsFunc(servers, func(s latency.End) bool { return s.CPU != cpu }) {
		counts.ServerCPUs = cpus.Of(cpu).String()
	}
	return counts
}

// clientsOf are the clients of all repetitions, and serversOf their servers.
func clientsOf(results []*latency.Result) []latency.End {
	return endsOf(results, (*latency.Result).Client)
}

func serversOf(results []*latency.Result) []latency.End {
	return endsOf(results, (*latency.Result).Server)
}

func endsOf(results []*latency.Result, end func(*latency.Result) latency.End) []latency.End {
	ends := make([]latency.End, 0, len(results))
	for _, result := range results {
		ends = append(ends, end(result))
	}
	return ends
}
