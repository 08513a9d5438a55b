// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package repair puts back what has drifted from a plan and what a running kernel takes back without a reboot.
//
// Plan says what is to be written, and is pure. Ledger remembers what was written, whether it helped, and which
// files another program keeps changing: those are reported and no longer fought for. Files writes below the root
// of a host, and nothing that is not on the list of Allowed.
package repair

import (
	"fmt"
	"regexp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// maximumWrites bounds what is written after one pass over a host; the rest is written after the next.
const maximumWrites = 1024

// Write is one file that is to be put back.
type Write struct {
	// Check that fails because of the file.
	Check v1alpha1.CheckID `json:"check"`
	// Object is what the file belongs to, such as "IRQ 142 (sfc-ens2f0-3)".
	Object string `json:"object"`
	// Path is the file, as an absolute path of the host.
	Path string `json:"path"`
	// Old is what the file held, New what is written.
	Old string `json:"old"`
	New string `json:"new"`
}

// Plan returns what is to be written so that the checks that failed in the report pass: only files of the list of
// Allowed, at most maximumWrites, in ascending order of their paths. It asks neither whether the profile wants
// repairs nor whether they were tried before.
func Plan(in verify.Input, report verify.Report) []Write {
	var writes []Write
	for _, d := range verify.Deviations(in, report) {
		if Allowed(d.Path, d.Planned) == nil && len(writes) < maximumWrites {
			writes = append(writes, Write{Check: d.Check, Object: d.Object, Path: d.Path, Old: d.Observed, New: d.Planned})
		}
	}
	return writes
}

// rule is one kind of file that may be written, and what may be written to it.
type rule struct{ file, value string }

// Notations of values.
const (
	cpuList = `[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*`
	cpuMask = `[0-9a-f]{1,8}(,[0-9a-f]{8})*`
	number  = `-?[0-9]{1,18}`
)

// rules are all files that may be written, and of their values those that a plan can have. None of them can start a program, load code, take hardware away or lose
// data, whatever the value; those below /proc/sys/kernel are therefore named one by one. Those below /proc/sys/net
// are left out: they belong to the network namespace of who opens them.
func rules() []rule {
	return []rule{
		{`/proc/irq/[0-9]+/smp_affinity_list`, cpuList},
		{`/proc/irq/default_smp_affinity`, cpuMask},
		{`/sys/devices/virtual/workqueue(/[A-Za-z0-9_:-]+)?/cpumask`, cpuMask},
		{`/sys/bus/workqueue/devices/[A-Za-z0-9_:-]+/cpumask`, cpuMask},
		{`/sys/class/net/[A-Za-z0-9_.-]{1,15}/queues/rx-[0-9]+/rps_cpus`, cpuMask},
		{`/sys/kernel/mm/transparent_hugepage/(enabled|shmem_enabled|hugepages-[0-9]+kB/(enabled|shmem_enabled))`, `never`},
		{`/sys/kernel/mm/ksm/run`, `2`},
		{`/sys/devices/system/cpu/cpu[0-9]+/cpufreq/scaling_governor`, `performance`},
		{`/sys/devices/system/cpu/cpu[0-9]+/cpufreq/scaling_max_freq`, number},
		{`/sys/devices/system/cpu/(intel_pstate/no_turbo|cpufreq/boost)`, `[01]`},
		{`/proc/sys/kernel/(hung_task_timeout_secs|nmi_watchdog|numa_balancing|sched_rt_period_us|sched_rt_runtime_us|` +
			`soft_watchdog|timer_migration|watchdog|watchdog_thresh)`, number},
		{`/proc/sys/vm/(compaction_proactiveness|dirty_background_bytes|dirty_background_ratio|dirty_bytes|dirty_expire_centisecs|` +
			`dirty_ratio|dirty_writeback_centisecs|stat_interval|swappiness|zone_reclaim_mode)`, number},
	}
}

// Allowed reports whether a value may be written to a file, an absolute path of the host. The error says what is
// wrong with which of both.
func Allowed(path, value string) error {
	for _, rule := range rules() {
		if !regexp.MustCompile(`^(?:` + rule.file + `)$`).MatchString(path) {
			continue
		}
		if !regexp.MustCompile(`^(?:` + rule.value + `)$`).MatchString(value) {
			return fmt.Errorf("%q is no value for %s", value, path)
		}
		return nil
	}
	return fmt.Errorf("%s is not among the files that may be written", path)
}
