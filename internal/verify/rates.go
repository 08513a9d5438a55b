// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// Budgets of events per second on each isolated CPU. A tick comes at least 100 times a second (CONFIG_HZ), and what a
// kernel with nohz_full leaves is about one event a second: the remote tick and the vmstat worker.
const (
	timersPerSecond   = 2
	messagesPerSecond = 1
	softirqsPerSecond = 2
)

const (
	onOwnCPUs = "with spec.cpus.isolation PerPod only for CPUs that pods own"
	withTurns = "on a CPU that a pod owns, or has owned since the last reading, ten more for each time that a thread got it"
)

// rateChecks compare counters of two moments with a budget: what the kernel does on isolated CPUs whatever it was
// told.
func rateChecks() []Check {
	deJittered := []string{v1alpha1.ConditionDeJittered}
	return []Check{
		{
			ID: "cpu.tick", Severity: v1alpha1.SeverityHigh, Impact: ImpactWork, Conditions: deJittered, Window: true,
			Title:   "The timer interrupts an isolated CPU at most twice a second",
			Applies: "spec.cpus.tick is Stopped; " + onOwnCPUs + "; " + withTurns,
			Why:     "nohz_full is a permission: the tick stays while two tasks share the CPU, a POSIX timer is armed or the clock is unstable, and takes one to several microseconds each time.",
			Reads:   []string{"/proc/interrupts (LOC, arch_timer)", "/proc/uptime", fileRunQueues, fileOwners},
			Fix:     "See cpu.foreign-tasks for a second task on the CPU; remove timers (timer_create, setitimer) from a program that never sleeps; see clock.source.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/timers/no_hz.rst, kernel/time/tick-sched.c (can_stop_full_tick)",
			run:     where(ticklessAndCalm, (*state).timerIsQuiet),
		},
		{
			ID: "irq.ipis", Severity: v1alpha1.SeverityHigh, Impact: ImpactWork, Conditions: deJittered, Window: true,
			Title:   "Other CPUs interrupt an isolated CPU at most once a second",
			Applies: onOwnCPUs + "; " + withTurns,
			Why:     "Function calls, address-cache flushes and wake-ups from other CPUs each stop the program for one to several microseconds.",
			Reads:   []string{"/proc/interrupts (CAL, RES, TLB, IWI; IPI on arm64)", "/proc/uptime", fileRunQueues, fileOwners},
			Fix:     "Find the caller (trace event ipi:ipi_send_cpu): agents that read MSRs or frequencies, module loading, time stamping that starts and stops with chronyd or ptp4l, threads of the program on other CPUs that unmap memory.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: arch/x86/kernel/irq.c (arch_show_interrupts), arch/arm64/kernel/smp.c (ipi_types)",
			run:     where(someAreCalm, (*state).messagesAreRare),
		},
		{
			ID: "irq.background-softirqs", Severity: v1alpha1.SeverityMedium, Impact: ImpactWork, Conditions: deJittered, Window: true,
			Title:   "Timers, scheduling and RCU run in softirqs of an isolated CPU at most twice a second",
			Applies: "spec.cpus.tick is Stopped; " + onOwnCPUs + "; " + withTurns,
			Why:     "The kernel's deferred work of its own runs on the CPU that caused it, for microseconds to tens of them.",
			Reads:   []string{"/proc/softirqs (TIMER, SCHED, RCU)", "/proc/uptime", fileRunQueues, fileOwners},
			Fix:     "Offload RCU callbacks (rcu_nocbs=), keep timers off the CPU (kernel.timer_migration), and let one task alone run there.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/admin-guide/kernel-per-CPU-kthreads.rst (ksoftirqd)",
			run:     where(ticklessAndCalm, (*state).softirqsAreRare),
		},
	}
}

// calmCPUs are the CPUs on which nothing else may run: all isolated ones, or, where the CPUs stay balanced until a pod
// owns them, those of pods and of the data plane.
func (s *state) calmCPUs() cpus.Set {
	if s.plan.CPUs.Isolation == v1alpha1.IsolationPerPod {
		return s.ownedCPUs().Intersection(s.plan.CPUs.Isolated).Union(s.plan.CPUs.DataPlane)
	}
	return s.plan.CPUs.Isolated
}

func someAreCalm(s *state) bool { return !s.calmCPUs().IsEmpty() }

func ticklessAndCalm(s *state) bool {
	return s.plan.CPUs.Tick == v1alpha1.TickStopped && someAreCalm(s)
}

// shortestTime is the least time in seconds of which a rate can be told.
const shortestTime = 1

const reasonTooSoon = "less than a second passed between the readings"

// elapsed is the time between the two readings in seconds.
func (s *state) elapsed() host.Fact[float64] {
	now, before := s.facts.UptimeSeconds, s.before.UptimeSeconds
	switch {
	case !now.Known:
		return now
	case !before.Known:
		return before
	case now.Value < before.Value:
		return host.Absent[float64](now.Source, "the time ran backwards, so the host was rebooted between the readings")
	}
	return host.Known(now.Value-before.Value, now.Source)
}

// timerIsQuiet tells a CPU that was never freed of its tick from one that was and ticks all the same.
func (s *state) timerIsQuiet() verdict {
	return s.rate(s.calmCPUs(), interruptCounters, isTimer, timersPerSecond, func(cpu *host.CPU, rate string) string {
		if stopped, ok := s.facts.CPUs.NoHzFull.Get(); ok && !stopped.Contains(cpu.ID) {
			return "its timer interrupts it " + rate + ": it is not in nohz_full"
		}
		return "configured as tickless, yet its timer interrupts it " + rate
	})
}

func isTimer(line host.InterruptLine) bool {
	return line.Name == "LOC" || isPrivate(line) && strings.Contains(line.Description, "arch_timer")
}

func (s *state) messagesAreRare() verdict {
	return s.rate(s.calmCPUs(), interruptCounters, isMessage, messagesPerSecond, func(_ *host.CPU, rate string) string {
		return "other CPUs interrupt it " + rate
	})
}

// isMessage knows interrupts between CPUs. Those of arm64 that stop a CPU come with a crash only.
func isMessage(line host.InterruptLine) bool {
	return slices.Contains([]string{"CAL", "RES", "TLB", "IWI"}, line.Name) ||
		strings.HasPrefix(line.Name, "IPI") && !strings.Contains(line.Description, "stop")
}

func (s *state) softirqsAreRare() verdict {
	return s.rate(s.calmCPUs(), softirqCounters, isOneOf("TIMER", "SCHED", "RCU"), softirqsPerSecond, func(_ *host.CPU, rate string) string {
		return "softirqs for timers, scheduling or RCU run " + rate
	})
}

// rate holds what some counters of each CPU grew by, added up, against a budget per second. A CPU that a pod owns has as much more as its threads bring
// themselves.
func (s *state) rate(set cpus.Set, table func(*host.Facts) counters, concerns func(host.InterruptLine) bool,
	budget float64, describe func(cpu *host.CPU, rate string) string,
) verdict {
	expected := fmt.Sprintf("at most %g a second", budget)
	now, before := table(s.facts), table(s.before)
	return judge(s.elapsed(), expected, func(seconds float64) verdict {
		return judge(before.lines, expected, func(earlier []host.InterruptLine) verdict {
			return judge(now.lines, expected, func(lines []host.InterruptLine) verdict {
				growth, came, ok := grown(lines, earlier, columnsOf(set, now.columns, before.columns), concerns)
				if !ok {
					return unsaid(now.lines.Source, "a counter ran backwards, so the host was rebooted between the readings", expected)
				}
				found := s.surveyCPUs(set, expected, func(cpu *host.CPU) answer {
					switch perSecond := float64(growth[cpu.ID]) / seconds; {
					case growth[cpu.ID] == 0:
						return answer{}
					case seconds < shortestTime:
						return answer{absent: true, source: s.facts.UptimeSeconds.Source, reason: reasonTooSoon}
					case perSecond > budget+float64(s.ownEvents(cpu.ID))/seconds:
						return answer{wrong: describe(cpu, rateText(perSecond))}
					}
					return answer{}
				})
				if now.interrupts && found.outcome == v1alpha1.OutcomeFailed {
					for _, name := range came {
						found = found.about(s.lineObjects(name))
					}
				}
				return worst(found, s.allAreCounted(set, now))
			})
		})
	})
}

// grown adds up, for each CPU, by how much the counters grew; false when one ran backwards. It names the lines that
// ever came on one of the CPUs: which of them came since the last reading would change the status on every reading.
func grown(lines, earlier []host.InterruptLine, columns []column, concerns func(host.InterruptLine) bool) (growth map[int]uint64, came []string, ok bool) {
	before := make(map[string][]uint64, len(earlier))
	for _, line := range earlier {
		if concerns(line) {
			before[line.Name] = line.Counts
		}
	}
	growth = make(map[int]uint64, len(columns))
	for _, line := range lines {
		if !concerns(line) {
			continue
		}
		for _, c := range columns {
			was, is := count(before[line.Name], c.before), count(line.Counts, c.now)
			if is < was {
				return nil, nil, false
			}
			growth[c.cpu] += is - was
			if is > 0 && !slices.Contains(came, line.Name) {
				came = append(came, line.Name)
			}
		}
	}
	return growth, came, true
}

// rateText tells the order of magnitude only, so that a fault that goes on does not change the status on every
// reading.
func rateText(perSecond float64) string {
	switch {
	case perSecond < 10:
		return "a few times a second"
	case perSecond < 100:
		return "tens of times a second"
	case perSecond < 1000:
		return "hundreds of times a second"
	}
	return "thousands of times a second"
}
