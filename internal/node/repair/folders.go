// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package repair

// Folders are the smallest folders and files of the host below which Files writes, except packet steering. Those of
// /proc/sys/kernel are single files, because beside them are some that make the kernel start programs.
func Folders() []string {
	return []string{
		"/proc/irq",
		"/proc/sys/kernel/hung_task_timeout_secs", "/proc/sys/kernel/nmi_watchdog", "/proc/sys/kernel/numa_balancing",
		"/proc/sys/kernel/sched_rt_period_us", "/proc/sys/kernel/sched_rt_runtime_us", "/proc/sys/kernel/soft_watchdog",
		"/proc/sys/kernel/timer_migration", "/proc/sys/kernel/watchdog", "/proc/sys/kernel/watchdog_thresh",
		"/proc/sys/vm", "/sys/devices/system/cpu", "/sys/devices/virtual/workqueue", "/sys/kernel/mm",
	}
}

// SteeringFolder is where the files of packet steering are: below the PCI devices of the NICs, wherever these are plugged
// in. Who may write there may have a device write to any memory, so that it is root of the host in effect.
const SteeringFolder = "/sys/devices"
