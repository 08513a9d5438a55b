// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"slices"
	"strings"
)

// EvaluateActivity runs the checks that compare what host.ReadActivity reads, of two moments, and leaves out those
// that do not apply to the plan. Without in.Before there are none.
func EvaluateActivity(in Input) []Result {
	if in.Before == nil {
		return nil
	}
	checks := slices.DeleteFunc(Catalogue(), func(c Check) bool { return !c.Window || !isActivity(c) })
	s := newState(in, checks)
	judged := in.judgement()
	var results []Result
	for _, check := range checks {
		if found := check.run(s); found.outcome != "" {
			results = append(results, check.result(found, judged))
		}
	}
	return results
}

// isActivity reports whether a check reads nothing but what host.ReadActivity reads, and where managed interrupts are to go, which does not change.
func isActivity(check Check) bool {
	return !slices.ContainsFunc(check.Reads, func(read string) bool {
		return !slices.ContainsFunc([]string{
			"/proc/interrupts", "/proc/softirqs", "/proc/uptime", fileRunQueues, fileOwners, "/proc/irq/*/smp_affinity_list", "/sys/devices/system/cpu/cpu*/cpuidle/",
		}, func(file string) bool { return strings.HasPrefix(read, file) })
	})
}
