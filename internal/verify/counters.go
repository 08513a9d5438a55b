// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"slices"
	"strconv"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// interruptCounterChecks compare the counters of two moments: what really happened on isolated CPUs,
// whatever the configuration says.
func interruptCounterChecks() []Check {
	deJittered := []string{v1alpha1.ConditionDeJittered}
	return []Check{
		{
			ID: "irq.delivered", Severity: v1alpha1.SeverityCritical, Impact: ImpactWork, Conditions: deJittered, Window: true,
			Title:   "No device interrupt was handled by an isolated CPU since the last reading",
			Applies: onHousekeeping + "; all but managed interrupts of queues whose CPUs one pod owns alone, or has owned since the last reading: its own input and output",
			Why:     "Each interrupt takes two to tens of microseconds from the program on that CPU.",
			Reads:   []string{"/proc/interrupts (numbered lines)", "/proc/irq/*/smp_affinity_list", fileOwners},
			Fix:     "Write the housekeeping CPUs to /proc/irq/N/smp_affinity_list and restrict irqbalance.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/filesystems/proc.rst (/proc/interrupts)",
			run: where(someAreQuiet, func(s *state) verdict {
				return s.interruptsStand(s.quietCPUs(), s.isInterruptOfOthers)
			}),
		},
		{
			ID: "irq.machine", Severity: v1alpha1.SeverityHigh, Impact: ImpactWork, Conditions: deJittered, Window: true,
			Title:  "No watchdog, profiling, machine-check or thermal interrupt reached an isolated CPU since the last reading",
			Why:    "These cannot be masked: the program stops for several microseconds.",
			Reads:  []string{"/proc/interrupts (NMI, PMI, MCE, THR, TRM; MCP where the plan stops polling)"},
			Fix:    "Disable the watchdogs, stop profilers such as perf, look for machine checks and overheating in the kernel's log.",
			Reboot: v1alpha1.RebootNotRequired,
			Source: "kernel: arch/x86/kernel/irq.c (arch_show_interrupts)",
			run: func(s *state) verdict {
				names := []string{"NMI", "PMI", "MCE", "THR", "TRM"}
				if s.pollingIsStopped() {
					names = append(names, "MCP")
				}
				return s.interruptsStand(s.plan.CPUs.Isolated, isOneOf(names...))
			},
		},
		{
			ID: "irq.softirqs", Severity: v1alpha1.SeverityHigh, Impact: ImpactWork, Conditions: deJittered, Window: true,
			Title:   "No network, block or tasklet softirq ran on an isolated CPU since the last reading",
			Applies: "CPUs that no pod owns or has owned since the last reading; with spec.interrupts.placement PerPod only those of spec.cpus.explicit.dataPlane",
			Why:     "The kernel's deferred work of a device takes up to milliseconds on the CPU that took its interrupt.",
			Reads:   []string{"/proc/softirqs", fileOwners},
			Fix:     "Find the device whose interrupts or packets the CPU handles: interrupt affinity, receive and transmit packet steering.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/filesystems/proc.rst (/proc/softirqs)",
			run: where(someAreQuietAndFree, func(s *state) verdict {
				return s.countersStand(s.quietAndFreeCPUs(), softirqCounters(s.facts), softirqCounters(s.before), isOneOf("NET_RX", "NET_TX", "BLOCK", "TASKLET"))
			}),
		},
	}
}

// quietAndFreeCPUs are those quiet CPUs that nobody owns: on its own CPU, a thread of a pod that sends by the kernel, or writes to a disk, has the kernel
// work for it. What devices and other CPUs bring there, irq.delivered and irq.ipis see.
func (s *state) quietAndFreeCPUs() cpus.Set { return s.quietCPUs().Filter(s.isFree) }

func someAreQuietAndFree(s *state) bool { return !s.quietAndFreeCPUs().IsEmpty() }

func isDeviceInterrupt(line host.InterruptLine) bool {
	_, err := strconv.Atoi(line.Name)
	return err == nil && !isPrivate(line)
}

// isInterruptOfOthers leaves out what a pod on an isolated CPU makes its own disks send to it.
func (s *state) isInterruptOfOthers(line host.InterruptLine) bool {
	return isDeviceInterrupt(line) && !s.isInputOutputOfOwner(s.routeOf(line.Name))
}

func isOneOf(names ...string) func(host.InterruptLine) bool {
	return func(line host.InterruptLine) bool { return slices.Contains(names, line.Name) }
}

func (s *state) interruptsStand(set cpus.Set, concerns func(host.InterruptLine) bool) verdict {
	return s.countersStand(set, interruptCounters(s.facts), interruptCounters(s.before), concerns)
}

// countersStand fails when a counter of one of the CPUs has grown between the two readings.
func (s *state) countersStand(set cpus.Set, now, before counters, concerns func(host.InterruptLine) bool) verdict {
	return judge(before.lines, noIncrease, func(linesBefore []host.InterruptLine) verdict {
		return judge(now.lines, noIncrease, func(lines []host.InterruptLine) verdict {
			earlier := make(map[string][]uint64, len(linesBefore))
			for _, line := range linesBefore {
				earlier[line.Name] = line.Counts
			}
			columns := columnsOf(set, now.columns, before.columns)
			verdicts := []verdict{passed(noIncrease), s.allAreCounted(set, now)}
			for _, line := range lines {
				if !concerns(line) {
					continue
				}
				found := s.counterStands(line, earlier[line.Name], columns)
				if now.interrupts {
					found = found.about(s.lineObjects(line.Name))
				}
				verdicts = append(verdicts, found)
			}
			return worst(verdicts...)
		})
	})
}

const noIncrease = "no increase"

// counters is a table of counters by CPU: /proc/interrupts or /proc/softirqs.
type counters struct {
	interrupts bool
	columns    []int
	lines      host.Fact[[]host.InterruptLine]
}

func interruptCounters(f *host.Facts) counters {
	return counters{true, f.Interrupts.Columns, f.Interrupts.Lines}
}

func softirqCounters(f *host.Facts) counters {
	return counters{false, f.Softirqs.Columns, f.Softirqs.Lines}
}

// column is where the counts of one CPU are in the two tables.
type column struct{ cpu, now, before int }

func columnsOf(set cpus.Set, now, before []int) []column {
	indexBefore := make(map[int]int, len(before))
	for i, id := range before {
		indexBefore[id] = i
	}
	columns := make([]column, 0, set.Len())
	for i, id := range now {
		if !set.Contains(id) {
			continue
		}
		at, ok := indexBefore[id]
		if !ok {
			at = len(before)
		}
		columns = append(columns, column{cpu: id, now: i, before: at})
	}
	return columns
}

// allAreCounted is Unknown where a table has no column for one of the CPUs: what is not counted is not zero. CPUs that are
// offline have none and count nothing.
func (s *state) allAreCounted(set cpus.Set, table counters) verdict {
	online, known := s.onlineCPUs().Get()
	if known {
		set = set.Intersection(online)
	}
	uncounted := set.Difference(cpus.Of(table.columns...))
	if uncounted.IsEmpty() {
		return notApplicable()
	}
	return unsaid(table.lines.Source, "it has no column for "+uncounted.Name(), noIncrease).about(finding.OfCPUs(uncounted))
}

// count is the count in a column; lines and columns that were not there before count as zero.
func count(counts []uint64, at int) uint64 {
	if at < len(counts) {
		return counts[at]
	}
	return 0
}

// counterStands judges one line. A counter that ran backwards belongs to another boot.
func (s *state) counterStands(line host.InterruptLine, before []uint64, columns []column) verdict {
	var total uint64
	var hit []int
	for _, c := range columns {
		was, is := count(before, c.before), count(line.Counts, c.now)
		if is < was {
			return unsaid("the counter "+line.Name, "it ran backwards, so the host was rebooted between the readings", noIncrease)
		}
		if is > was {
			total += is - was
			hit = append(hit, c.cpu)
		}
	}
	if total == 0 {
		return verdict{}
	}
	return failed(fmt.Sprintf("%s came %s on isolated %s since the last reading", s.counterName(line.Name), times(total), cpus.Of(hit...).Name()),
		line.Name+" grew", noIncrease).about(finding.OfCPUs(cpus.Of(hit...)))
}

// lineObjects are the interrupt of a line of /proc/interrupts, and its NIC.
func (s *state) lineObjects(name string) finding.Objects {
	number, err := strconv.Atoi(name)
	if err != nil {
		return finding.Objects{Interrupts: []v1alpha1.Interrupt{{ID: name}}}
	}
	return s.interrupt(number, s.routeOf(name).Actions)
}

// routeOf is the route of a line of /proc/interrupts; an empty one where the host does not list it, and for a line that is no device's.
func (s *state) routeOf(name string) *host.InterruptRoute {
	number, err := strconv.Atoi(name)
	if route := s.routes()[number]; err == nil && route != nil {
		return route
	}
	return &host.InterruptRoute{}
}

// counterName is "IRQ 142 (sfc-ens2f0-3)" for numbered lines and the name for others.
func (s *state) counterName(name string) string {
	number, err := strconv.Atoi(name)
	if err != nil {
		return name + meaningOf(name)
	}
	return interruptName(number, s.routeOf(name).Actions)
}

// meaningOf says in words what the kernel counts under a short name (arch_show_interrupts of arch/x86/kernel/irq.c,
// Documentation/filesystems/proc.rst); "" for others.
func meaningOf(name string) string {
	return map[string]string{
		"NMI": " (a non-maskable interrupt)", "PMI": " (an interrupt of a performance counter)", "MCE": " (a machine check)",
		"MCP": " (the poll for machine checks)", "THR": " (the threshold of corrected errors)", "TRM": " (the alarm for heat)",
		"NET_RX": " (packets received)", "NET_TX": " (packets sent)", "BLOCK": " (requests of disks)", "TASKLET": " (deferred work of drivers)",
	}[name]
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
