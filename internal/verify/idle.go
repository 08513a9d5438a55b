// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"math"
	"strconv"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cmdline"
)

const (
	settingLatencyLimit = "/dev/cpu_dma_latency"
	settingIdleDriver   = "/sys/devices/system/cpu/cpuidle/current_driver"
)

// idleChecks ask how deep isolated CPUs may sleep, and how deep they did.
func idleChecks() []Check {
	deJittered := []string{v1alpha1.ConditionDeJittered}
	const unlessKept = "spec.power.idleStates is not Kept"
	return []Check{
		{
			ID: "power.idle-states", Severity: v1alpha1.SeverityCritical, Impact: ImpactSpeed, Conditions: deJittered,
			Title:   "Isolated CPUs cannot enter deep idle states",
			Applies: unlessKept,
			Why:     "Leaving a deep idle state takes 10 to 200 microseconds, and its caches may be cold.",
			Reads: []string{
				"/proc/cmdline (idle)", settingLatencyLimit, "/proc/*/fd (where the limit cannot be read)", "/sys/devices/system/cpu/cpu*/cpuidle/state*/{latency,disable}",
				"/sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us", settingIdleDriver,
			},
			Fix:    "Boot with the planned idle arguments, or let TuneD hold its PM QoS request (force_latency); see whether the tuned service runs.",
			Reboot: v1alpha1.RebootNotRequired,
			Source: "kernel: Documentation/admin-guide/pm/cpuidle.rst, Documentation/power/pm_qos_interface.rst",
			owns:   []string{settingLatencyLimit, "/sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us"},
			run:    idleStatesAreShallow,
		},
		{
			ID: "power.idle-entries", Severity: v1alpha1.SeverityCritical, Impact: ImpactSpeed, Conditions: deJittered, Window: true,
			Title:   "No isolated CPU entered a deep idle state since the last reading",
			Applies: "spec.power.idleStates is ShallowByKernel or ShallowByQoS",
			Why:     "Leaving a deep idle state takes 10 to 200 microseconds, and its caches may be cold.",
			Reads:   []string{"/sys/devices/system/cpu/cpu*/cpuidle/state*/usage"},
			Fix:     "Find who allowed the state: TuneD's PM QoS request is gone, or the firmware overrides the kernel.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/admin-guide/pm/cpuidle.rst (usage)",
			run:     deepStatesWereNotEntered,
		},
	}
}

func idleStatesAreShallow(s *state) verdict {
	switch s.plan.Power.IdleStates {
	case v1alpha1.IdlePolling:
		return s.idlePolls()
	case v1alpha1.IdleShallowByKernel, v1alpha1.IdleShallowByQoS:
		return s.surveyIdleStates()
	default:
		return notApplicable()
	}
}

// idlePolls looks for the argument by which idle CPUs spin: idle=poll on x86, nohlt on arm64, of which neither knows that
// of the other (Documentation/admin-guide/kernel-parameters.txt).
func (s *state) idlePolls() verdict {
	expected := "idle=poll"
	if s.plan.Architecture == "arm64" {
		expected = "nohlt"
	}
	return judge(s.running, expected, func(line cmdline.Line) verdict {
		if line.Contains(expected) {
			return passed(expected)
		}
		found := failed("idle CPUs sleep: the kernel was booted without "+expected, "no "+expected, expected)
		found.reboot = v1alpha1.RebootRequired
		return found
	})
}

// surveyIdleStates asks every isolated CPU for a deep state that it may enter. To read the latency limit
// takes a privilege that a read-only agent does not have; then power.idle-entries judges alone, by what the
// CPUs did.
func (s *state) surveyIdleStates() verdict {
	limit := s.latencyLimit()
	found := s.surveyShallow(limit)
	if found.outcome == v1alpha1.OutcomeUnknown && !limit.Known && s.before != nil {
		return notApplicable()
	}
	return found
}

func (s *state) surveyShallow(limit host.Fact[int64]) verdict {
	return s.surveyCPUs(s.plan.CPUs.Isolated, "no state deeper than the first", func(cpu *host.CPU) answer {
		if len(cpu.IdleStates) == 0 {
			return s.withoutIdleStates(cpu.ID)
		}
		for _, state := range cpu.IdleStates {
			if found := s.deepState(cpu, state, limit); found != (answer{}) {
				return found
			}
		}
		return answer{}
	})
}

// withoutIdleStates accepts a CPU that lists no idle states only if the kernel says that no driver is
// at work.
func (s *state) withoutIdleStates(id int) answer {
	if driver, ok := s.facts.Setting(settingIdleDriver).Get(); ok && driver == "none" {
		return answer{}
	}
	return answer{absent: true, source: fmt.Sprintf("/sys/devices/system/cpu/cpu%d/cpuidle", id), reason: "no idle states are listed"}
}

// deepState judges one state of one CPU: it must be shallow, disabled, or above the latency limit. Where
// the plan relies on the limit of all CPUs and that cannot be read, nothing is known.
func (s *state) deepState(cpu *host.CPU, state host.IdleState, limit host.Fact[int64]) answer {
	latency, ok := state.LatencyMicros.Get()
	switch {
	case !ok:
		return answer{absent: true, source: state.LatencyMicros.Source, reason: state.LatencyMicros.Reason}
	case latency <= shallowLatency(cpu.IdleStates), state.Disabled.Value, latency > s.cpuLatencyLimit(cpu.ID):
		return answer{}
	case limit.Known && latency > limit.Value:
		return answer{}
	case !limit.Known && s.plan.Power.IdleStates == v1alpha1.IdleShallowByQoS:
		return answer{absent: true, source: limit.Source, reason: limit.Reason}
	}
	return answer{wrong: fmt.Sprintf("idle state %s, which takes %d µs to leave, is allowed%s", state.Name.Value, latency, s.limitText(limit))}
}

// limitText says why the limit of all CPUs does not help a plan that relies on it.
func (s *state) limitText(limit host.Fact[int64]) string {
	switch {
	case s.plan.Power.IdleStates != v1alpha1.IdleShallowByQoS || !limit.Known:
		return ""
	case limit.Value >= noLatencyLimit:
		return ": no program holds a limit in " + settingLatencyLimit
	default:
		return fmt.Sprintf(": the limit in %s is %d µs", settingLatencyLimit, limit.Value)
	}
}

// noLatencyLimit is what the device says when nobody asks for a limit (PM_QOS_CPU_LATENCY_DEFAULT_VALUE of
// include/linux/pm_qos.h).
const noLatencyLimit = 2000 * 1000 * 1000

// shallowLatency is the exit latency in microseconds of the first state that is not polling (C1, WFI);
// states that take longer are deep.
func shallowLatency(states []host.IdleState) int64 {
	for _, state := range states {
		if latency, ok := state.LatencyMicros.Get(); ok && state.Name.Value != "POLL" {
			return latency
		}
	}
	return 0
}

// latencyLimit is the PM QoS limit of all CPUs in microseconds. Where it cannot be read and no program holds the device open,
// there is none; a program that does may have asked for any.
func (s *state) latencyLimit() host.Fact[int64] {
	limit := parseSetting(s.facts.Setting(settingLatencyLimit), parseMicros)
	holders, ok := s.facts.LatencyHolders.Get()
	switch {
	case limit.Known || !ok:
		return limit
	case len(holders) == 0:
		return host.Known[int64](noLatencyLimit, s.facts.LatencyHolders.Source)
	}
	return host.Absent[int64](limit.Source, fmt.Sprintf("%s; %s (process %d) holds it open", limit.Reason, holders[0].Name, holders[0].PID))
}

// cpuLatencyLimit is the PM QoS limit of one CPU in microseconds. The kernel writes "n/a" for none at all
// tolerated and 0 for no limit (Documentation/ABI/testing/sysfs-devices-power).
func (s *state) cpuLatencyLimit(id int) int64 {
	text, _ := s.facts.Setting(latencyLimitPath(id)).Get()
	if text == "n/a" {
		return 0
	}
	limit, err := parseMicros(text)
	if err != nil || limit == 0 {
		return math.MaxInt64
	}
	return limit
}

func latencyLimitPath(id int) string {
	return fmt.Sprintf("/sys/devices/system/cpu/cpu%d/power/pm_qos_resume_latency_us", id)
}

func parseMicros(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) }

// deepStatesWereNotEntered compares how often each isolated CPU entered its deep states.
func deepStatesWereNotEntered(s *state) verdict {
	mode := s.plan.Power.IdleStates
	if mode != v1alpha1.IdleShallowByKernel && mode != v1alpha1.IdleShallowByQoS {
		return notApplicable()
	}
	earlier := map[int][]host.IdleState{}
	for _, cpu := range s.before.CPUs.List {
		earlier[cpu.ID] = cpu.IdleStates
	}
	return s.surveyCPUs(s.plan.CPUs.Isolated, "no entry", func(cpu *host.CPU) answer {
		if len(cpu.IdleStates) == 0 {
			return s.withoutIdleStates(cpu.ID)
		}
		for i := range cpu.IdleStates {
			if found := entered(cpu.IdleStates, i, earlier[cpu.ID]); found != (answer{}) {
				return found
			}
		}
		return answer{}
	})
}

// entered compares the entries into one state, if it is a deep one.
func entered(states []host.IdleState, index int, earlier []host.IdleState) answer {
	state := states[index]
	latency, ok := state.LatencyMicros.Get()
	switch {
	case !ok:
		return answer{absent: true, source: state.LatencyMicros.Source, reason: state.LatencyMicros.Reason}
	case latency <= shallowLatency(states):
		return answer{}
	case index >= len(earlier):
		return answer{absent: true, source: state.Usage.Source, reason: "not read before"}
	case !earlier[index].Usage.Known:
		return answer{absent: true, source: earlier[index].Usage.Source, reason: earlier[index].Usage.Reason}
	}
	return about(state.Usage, func(usage uint64) string {
		if usage <= earlier[index].Usage.Value {
			return ""
		}
		return fmt.Sprintf("idle state %s, which takes %d µs to leave, was entered since the last reading", state.Name.Value, latency)
	})
}
