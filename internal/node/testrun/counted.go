// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package testrun

import (
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

// causesOver are what happened to the program of an end, which says it itself, and what the kernel counted on its CPU, in the order of counted.Compare, at most
// as many as a record has, and the interrupts that could be counted: None where a repetition, or a part of one, has none. Each cause has its rate. That of the
// program is over elapsed, for how long it measured in all repetitions; where that is 0, over the time that was counted if that is all of it, else there is
// its number instead of a rate.
func causesOver(repetitions []latency.End, elapsed int64) ([]string, v1alpha1.CountedInterrupts) {
	from := make([]string, 0, len(repetitions))
	var program latency.End
	var kernel []counted.Event
	over := int64(0)
	for i := range repetitions {
		end := &repetitions[i]
		from = append(from, interruptsFrom(end)...)
		program.Preemptions, program.PageFaults = program.Preemptions+end.Preemptions, program.PageFaults+end.PageFaults
		if nanoseconds := end.CountedNanoseconds(); nanoseconds > 0 {
			over += nanoseconds
			kernel = counted.Merge(kernel, end.Kernel())
		}
	}
	if elapsed == 0 && !slices.ContainsFunc(repetitions, isUncounted) {
		elapsed = over
	}
	slices.SortStableFunc(kernel, counted.Compare)
	happened := program.Events()
	causes := make([]string, 0, len(happened)+len(kernel))
	for _, event := range happened {
		causes = append(causes, causeWords(event, often(event.Count, elapsed)))
	}
	for _, event := range kernel {
		causes = append(causes, causeWords(event, often(event.Count, over)))
	}
	causes = qualification.FirstCauses(causes, v1alpha1.MaxTestCauses)
	switch {
	case len(from)+len(causes) == 0:
		return nil, ""
	case slices.ContainsFunc(repetitions, isUncounted):
		return causes, v1alpha1.CountedInterruptsNone
	}
	return causes, countedInterrupts(from)
}

// isUncounted reports whether a part of a repetition was not counted, or none.
func isUncounted(end latency.End) bool {
	return len(end.Counts) == 0 || slices.ContainsFunc(end.Counts, func(c latency.Counts) bool { return c.CountedNanoseconds <= 0 })
}

// often is the end of a cause: its rate over a time, or its number where the time is not known.
func often(count uint64, nanoseconds int64) string {
	if nanoseconds <= 0 {
		return fmt.Sprintf(" %d times", count)
	}
	return fmt.Sprintf(" %s a second", latency.PerSecond(count, nanoseconds))
}

// causeWords is a cause as a record has it, with how often it came at its end.
func causeWords(event counted.Event, often string) string {
	return printable(string(event.Kind)+" "+event.Name, v1alpha1.MaxTestCauseLength-len(often)) + often
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
	counts.ServerCauses, counts.ServerCountedInterrupts = causesOver(servers, elapsedOf(results))
	// A server that is started anew may be kept to another CPU: then none is that of all.
	if cpu := servers[0].CPU; cpu >= 0 && !slices.ContainsFunc(servers, func(s latency.End) bool { return s.CPU != cpu }) {
		counts.ServerCPUs = cpus.Of(cpu).String()
	}
	return counts
}

// elapsedOf is for how long the programs measured in all repetitions; 0 where one does not say it.
func elapsedOf(results []*latency.Result) int64 {
	elapsed := int64(0)
	for _, result := range results {
		if result.ElapsedNanoseconds <= 0 {
			return 0
		}
		elapsed += result.ElapsedNanoseconds
	}
	return elapsed
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
