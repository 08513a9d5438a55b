// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// cpuListArguments are the kernel arguments whose value is, or ends with, a list of CPUs.
func cpuListArguments() []string {
	return []string{"isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity", "systemd.cpu_affinity", "kthread_cpus"}
}

// sameArgument tells whether two arguments mean the same, whatever the notation of their CPU lists and the
// order of the flags of isolcpus.
func sameArgument(a, b string) bool {
	if a == b {
		return true
	}
	if argumentName(a) != argumentName(b) {
		return false
	}
	_, left, hasLeft := strings.Cut(a, "=")
	_, right, hasRight := strings.Cut(b, "=")
	if left == right && hasLeft == hasRight {
		return true
	}
	return slices.Contains(cpuListArguments(), argumentName(a)) && sameCPUs(left, right)
}

// sameCPUs compares two values of the form [flag,]...list.
func sameCPUs(a, b string) bool {
	leftFlags, left, leftErr := splitFlags(a)
	rightFlags, right, rightErr := splitFlags(b)
	return leftErr == nil && rightErr == nil && slices.Equal(leftFlags, rightFlags) && left.Equal(right)
}

// splitFlags separates the flags of isolcpus, sorted, from its CPUs. Without any flag the kernel means
// domain; that is harmless for the other arguments, which have none on either side.
func splitFlags(value string) ([]string, cpus.Set, error) {
	var flags, list []string
	for part := range strings.SplitSeq(strings.ReplaceAll(value, " ", ","), ",") {
		if part != "" && part[0] >= 'a' && part[0] <= 'z' {
			flags = append(flags, part)
		} else {
			list = append(list, part)
		}
	}
	if len(flags) == 0 {
		flags = []string{"domain"}
	}
	slices.Sort(flags)
	set, err := cpus.Parse(strings.Join(list, ","))
	return slices.Compact(flags), set, err
}
