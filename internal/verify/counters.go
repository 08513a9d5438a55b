// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"slices"
	"strconv"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// interruptCounterChecks compare the counters of two moments: what really happened on isolated CPUs,
// whatever the configuration says.
func interruptCounterChecks() []Check {
	deJittered := []string{v1alpha1.ConditionDeJittered}
	return []Check{
		{
			ID: "irq.delivered", Severity: v1alpha1.SeverityCritical, Conditions: deJittered, Window: true,
			Title:   "No device interrupt was handled by an isolated CPU since the last reading",
			Applies: onHousekeeping,
			Why:     "Each interrupt takes two to tens of microseconds from the program on that CPU.",
			Reads:   []string{"/proc/interrupts (numbered lines)"},
			Fix:     "Write the housekeeping CPUs to /proc/irq/N/smp_affinity_list and restrict irqbalance.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/filesystems/proc.rst (/proc/interrupts)",
			run: func(s *state) verdict {
				return s.roamingOr(func() verdict {
					return s.countersStand(s.facts.Interrupts.Columns, s.facts.Interrupts.Lines, s.before.Interrupts.Columns,
						s.before.Interrupts.Lines, isDeviceInterrupt)
				})
			},
		},
		{
			ID: "irq.machine", Severity: v1alpha1.SeverityHigh, Conditions: deJittered, Window: true,
			Title:  "No watchdog, profiling, machine-check or thermal interrupt reached an isolated CPU since the last reading",
			Why:    "These cannot be masked: the program stops for several microseconds.",
			Reads:  []string{"/proc/interrupts (NMI, PMI, MCE, THR, TRM)"},
			Fix:    "Disable the watchdogs, stop profilers such as perf, look for machine checks and overheating in the kernel's log.",
			Reboot: v1alpha1.RebootNotRequired,
			Source: "kernel: arch/x86/kernel/irq.c (arch_show_interrupts)",
			run: func(s *state) verdict {
				return s.countersStand(s.facts.Interrupts.Columns, s.facts.Interrupts.Lines, s.before.Interrupts.Columns,
					s.before.Interrupts.Lines, isOneOf("NMI", "PMI", "MCE", "THR", "TRM"))
			},
		},
		{
			ID: "irq.softirqs", Severity: v1alpha1.SeverityHigh, Conditions: deJittered, Window: true,
			Title:   "No network, block or tasklet softirq ran on an isolated CPU since the last reading",
			Applies: onHousekeeping,
			Why:     "The kernel's deferred work of a device takes up to milliseconds on the CPU that took its interrupt.",
			Reads:   []string{"/proc/softirqs"},
			Fix:     "Find the device whose interrupts or packets the CPU handles: interrupt affinity, receive and transmit packet steering.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/filesystems/proc.rst (/proc/softirqs)",
			run: func(s *state) verdict {
				return s.roamingOr(func() verdict {
					return s.countersStand(s.facts.Softirqs.Columns, s.facts.Softirqs.Lines, s.before.Softirqs.Columns,
						s.before.Softirqs.Lines, isOneOf("NET_RX", "NET_TX", "BLOCK", "TASKLET"))
				})
			},
		},
	}
}

// roamingOr leaves out checks that have no meaning while interrupts may use every CPU.
func (s *state) roamingOr(run func() verdict) verdict {
	if s.interruptsMayRoam() {
		return notApplicable()
	}
	return run()
}

func isDeviceInterrupt(name string) bool {
	_, err := strconv.Atoi(name)
	return err == nil
}

func isOneOf(names ...string) func(string) bool {
	return func(name string) bool { return slices.Contains(names, name) }
}

// countersStand fails when a counter of an isolated CPU has grown between the two readings.
func (s *state) countersStand(columns []int, lines host.Fact[[]host.InterruptLine],
	columnsBefore []int, linesBefore host.Fact[[]host.InterruptLine], concerns func(string) bool,
) verdict {
	const expected = "no increase"
	return judge(linesBefore, expected, func(before []host.InterruptLine) verdict {
		return judge(lines, expected, func(now []host.InterruptLine) verdict {
			earlier := map[string]map[int]uint64{}
			for _, line := range before {
				earlier[line.Name] = byCPU(columnsBefore, line.Counts)
			}
			verdicts := []verdict{passed("no increase")}
			for _, line := range now {
				if concerns(line.Name) {
					verdicts = append(verdicts, s.counterStands(line, byCPU(columns, line.Counts), earlier[line.Name]))
				}
			}
			return worst(verdicts...)
		})
	})
}

// counterStands judges one line. A line that is new counts from zero; a counter that ran backwards
// belongs to another boot.
func (s *state) counterStands(line host.InterruptLine, now, before map[int]uint64) verdict {
	var total uint64
	var hit []int
	for _, id := range s.plan.CPUs.Isolated.IDs() {
		if now[id] < before[id] {
			return unknown("the counter "+line.Name, "it ran backwards, so the host was rebooted between the readings", "no increase")
		}
		if grown := now[id] - before[id]; grown > 0 {
			total += grown
			hit = append(hit, id)
		}
	}
	if total == 0 {
		return passed("no increase")
	}
	return failed(fmt.Sprintf("%s came %s on isolated %s since the last reading", s.counterName(line.Name), times(total), cpuNames(cpus.Of(hit...))),
		line.Name+" grew", "no increase")
}

// counterName is "IRQ 142 (sfc-ens2f0-3)" for numbered lines and the name for others.
func (s *state) counterName(name string) string {
	number, err := strconv.Atoi(name)
	if err != nil {
		return name
	}
	for _, route := range s.facts.Interrupts.Routes {
		if route.Number == number {
			return interruptName(number, route.Actions)
		}
	}
	return interruptName(number, nil)
}

// times tells the order of magnitude only, so that a fault that goes on does not change the status on
// every reading.
func times(count uint64) string {
	switch {
	case count == 1:
		return "once"
	case count < 10:
		return "a few times"
	case count < 1000:
		return "tens to hundreds of times"
	}
	return "thousands of times"
}

// byCPU maps the counts of a line to the CPUs of their columns.
func byCPU(columns []int, counts []uint64) map[int]uint64 {
	mapped := make(map[int]uint64, len(columns))
	for i, id := range columns {
		if i < len(counts) {
			mapped[id] = counts[i]
		}
	}
	return mapped
}
