// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cmdline

import "strings"

// repetition is which arguments of one parameter the kernel obeys when it is given several times.
type repetition int

const (
	// lastCounts is what becomes of a variable that each argument sets anew.
	lastCounts repetition = iota
	// firstCounts is what becomes where the kernel refuses the others.
	firstCounts
	// eachCounts is what becomes of lists, and of words that have a variable each.
	eachCounts
	// agreeingCount is what becomes where the kernel refuses those that contradict earlier ones; see Isolation.
	agreeingCount
)

// repetitionOf is the one table of how the kernel takes repeated parameters. What it does not name is set anew by each
// argument: among what plans have these are nohz (setup_tick_nohz), rcu_nocbs (rcu_nocb_setup), irqaffinity
// (irq_affinity_setup), skew_tick, idle, nmi_watchdog, module parameters (parse_args hands over one after the other), and
// systemd.cpu_affinity (parse_proc_cmdline_item of systemd's src/core/main.c).
func repetitionOf(parameter string) repetition {
	switch parameter {
	case "isolcpus", "nohz_full": // housekeeping_setup of kernel/sched/isolation.c
		return agreeingCount
	case "default_hugepagesz", unsized: // hugepages_setup and default_hugepagesz_setup of mm/hugetlb.c
		return firstCounts
	case anyIOMMU, "tsc", "mce": // iommu_setup, tsc_setup and mcheck_enable of arch/x86/kernel
		return eachCounts
	}
	switch {
	case strings.HasPrefix(parameter, hugepagesOf("")):
		return firstCounts
	case IsCumulative(parameter):
		return eachCounts
	default:
		return lastCounts
	}
}
