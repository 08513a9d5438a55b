// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"maps"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// isolatedCPUs changes every isolated CPU.
func isolatedCPUs(f fixture, change func(*host.CPU)) { f.eachCPU(change, 2, 3, 6, 7) }

func frequencyCases() map[v1alpha1.CheckID]checkCases {
	return map[v1alpha1.CheckID]checkCases{
		"power.governor": {
			"no driver for frequencies": {change: withoutFrequencies, want: passes},
			"as planned":                {want: passes},
			"kept":                      {change: func(f fixture) { f.plan.Power.Governor = v1alpha1.GovernorKept }, want: doesNotApply},
			"two others": {
				change: func(f fixture) {
					f.eachCPU(func(c *host.CPU) { c.Frequency.Governor = known("powersave") }, 0, 2, 6, 7)
					f.eachCPU(func(c *host.CPU) { c.Frequency.Governor = known("schedutil") }, 3)
				},
				want: fails, wantMessage: "CPUs 2,6-7: governor powersave, not performance; CPU 3: governor schedutil, not performance",
			},
			"not told": {
				change: func(f fixture) {
					isolatedCPUs(f, func(c *host.CPU) { c.Frequency.Governor = absent[string]("scaling_governor") })
				},
				want: isUnknown, wantMessage: "scaling_governor cannot be read: no such file, nor those of 3 more CPUs of 2-3,6-7",
			},
		},
		"power.energy-preference": {
			"no driver for frequencies":        {change: withoutFrequencies, want: passes},
			"as planned":                       {want: passes},
			"not in the hand of the processor": {change: func(f fixture) { f.plan.Power.FrequencyDriver = v1alpha1.FrequencyDriverPassive }, want: doesNotApply},
			"balanced": {
				change: func(f fixture) {
					f.eachCPU(func(c *host.CPU) { c.Frequency.EnergyPerformancePreference = known("balance_power") }, 2)
				},
				want: fails, wantMessage: "CPU 2: energy preference balance_power, not performance",
			},
			"not told": {
				change: func(f fixture) {
					f.eachCPU(func(c *host.CPU) {
						c.Frequency.EnergyPerformancePreference = absent[string]("energy_performance_preference")
					}, 2)
				},
				want: isUnknown, wantMessage: "energy_performance_preference",
			},
		},
		"power.frequency-driver": frequencyDriverCases(),
		"power.turbo": {
			"as planned": {want: passes},
			"kept":       {change: func(f fixture) { f.plan.Power.Turbo = v1alpha1.TurboKept }, want: doesNotApply},
			"on": {
				change: func(f fixture) { f.set(settingNoTurbo, "0") }, want: fails, wantMessage: settingNoTurbo + " is 0, not 1",
			},
			"on as planned": {
				change: func(f fixture) { f.set(settingNoTurbo, "0"); f.plan.Power.Turbo = v1alpha1.TurboEnabled }, want: passes,
			},
			"off by the generic file": {
				change: func(f fixture) { f.remove(settingNoTurbo); f.set(settingBoost, "0") }, want: passes,
			},
			"on by the generic file": {
				change: func(f fixture) { f.remove(settingNoTurbo); f.set(settingBoost, "1") },
				want:   fails, wantMessage: settingBoost + " is 1, not 0",
			},
			"missing": {change: func(f fixture) { f.remove(settingNoTurbo) }, want: isUnknown, wantMessage: settingBoost},
		},
		"power.maximum-frequency": cappedCases(),
	}
}

// withoutFrequencies is a host whose kernel has no driver for frequencies.
func withoutFrequencies(f fixture) {
	for _, path := range []string{settingIntelStatus, settingAMDStatus, settingBoost, settingNoTurbo, settingMaximumPercent} {
		f.facts.Settings[path] = host.Fact[string]{Source: path, Reason: "no such file", Missing: true}
	}
	f.eachCPU(func(c *host.CPU) {
		c.Frequency = host.Frequency{
			Driver: absent[string]("scaling_driver"), Governor: absent[string]("scaling_governor"),
			EnergyPerformancePreference: absent[string]("energy_performance_preference"),
			ScalingMaximum:              absent[int64]("scaling_max_freq"), HardwareMaximum: absent[int64]("cpuinfo_max_freq"),
		}
	}, 0, 1, 2, 3, 4, 5, 6, 7)
}

func cappedCases() checkCases {
	capped := func(to int64, ids ...int) func(fixture) {
		return func(f fixture) { f.eachCPU(func(c *host.CPU) { c.Frequency.ScalingMaximum = known(to) }, ids...) }
	}
	kept := func(f fixture) { f.plan.Power.Governor = v1alpha1.GovernorKept }
	cases := cappedOrNotToldCases()
	maps.Copy(cases, checkCases{
		"no cap":            {want: passes},
		"frequencies kept":  {change: kept, want: doesNotApply},
		"capped, but kept":  {change: func(f fixture) { kept(f); capped(1600000, 2)(f); f.set(settingMaximumPercent, "50") }, want: doesNotApply},
		"housekeeping only": {change: capped(1600000, 0, 1), want: passes},
		"an isolated CPU": {
			change: capped(1600000, 3), want: fails,
			wantMessage: "CPU 3: maximum frequency 1600000 kHz (scaling_max_freq), while the CPU can run at 3000000 kHz",
		},
		"the top of the table, the rest is turbo": {
			change: func(f fixture) {
				capped(2450000, 0, 1, 2, 3, 4, 5, 6, 7)(f)
				f.eachCPU(func(c *host.CPU) { c.Frequency.TableMaximum = known(int64(2450000)) }, 2, 3, 6, 7)
			}, want: passes,
		},
		"below the top of the table": {
			change: func(f fixture) {
				capped(2000000, 6)(f)
				f.eachCPU(func(c *host.CPU) { c.Frequency.TableMaximum = known(int64(2450000)) }, 6)
			}, want: fails, wantMessage: "CPU 6: maximum frequency 2000000 kHz (scaling_max_freq), while the CPU can run at 2450000 kHz",
		},
		"turbo is off": {change: capped(2400000, 0, 1, 2, 3, 4, 5, 6, 7), want: passes},
		"turbo is on": {
			change: func(f fixture) { f.set(settingNoTurbo, "0"); capped(2400000, 0, 1, 2, 3, 4, 5, 6, 7)(f) },
			want:   fails, wantMessage: "CPUs 2-3,6-7: maximum frequency 2400000 kHz (scaling_max_freq), while the CPU can run at 3000000 kHz",
		},
		"intel_pstate caps all": {
			change: func(f fixture) { f.set(settingMaximumPercent, "60") },
			want:   fails, wantMessage: settingMaximumPercent + " is 60: no CPU runs faster than 60 % of what it can",
		},
		"intel_pstate caps above the plan": {
			change: func(f fixture) {
				f.set(settingMaximumPercent, "90")
				f.plan.Power.IsolatedMaximum = 2600000
				capped(2600000, 2, 3, 6, 7)(f)
			}, want: passes,
		},
		"intel_pstate caps below the plan": {
			change: func(f fixture) {
				f.set(settingMaximumPercent, "80")
				f.plan.Power.IsolatedMaximum = 2600000
				capped(2600000, 2, 3, 6, 7)(f)
			}, want: fails, wantMessage: settingMaximumPercent + " is 80: no CPU runs faster than 80 % of what it can",
		},
		"a limit that is none": {
			change: func(f fixture) { f.set(settingMaximumPercent, "full") }, want: isUnknown, wantMessage: settingMaximumPercent,
		},
		"another driver": {change: func(f fixture) { f.remove(settingMaximumPercent) }, want: passes},
	})
	return cases
}

func cappedOrNotToldCases() checkCases {
	return checkCases{
		"no frequency is scaled": {
			change: func(f fixture) {
				f.remove(settingMaximumPercent)
				f.eachCPU(func(c *host.CPU) {
					missing := absent[int64]("cpufreq")
					c.Frequency = host.Frequency{Driver: absent[string]("cpufreq"), ScalingMaximum: missing, HardwareMaximum: missing}
				}, 0, 1, 2, 3, 4, 5, 6, 7)
			}, want: doesNotApply,
		},
		"the hardware's frequency is not told": {
			change: func(f fixture) {
				f.eachCPU(func(c *host.CPU) { c.Frequency.HardwareMaximum = absent[int64]("cpuinfo_max_freq") }, 7)
			},
			want: isUnknown, wantMessage: "cpuinfo_max_freq",
		},
		"as planned": {
			change: func(f fixture) { f.plan.Power.IsolatedMaximum, f.plan.Power.HousekeepingMaximum = 3000000, 3000000 }, want: passes,
		},
		"housekeeping CPUs run faster": {
			change: func(f fixture) { f.plan.Power.IsolatedMaximum, f.plan.Power.HousekeepingMaximum = 3000000, 2000000 },
			want:   fails, wantMessage: "CPUs 0-1,4-5: maximum frequency 3000000 kHz, not 2000000 kHz",
		},
		"not told": {
			change: func(f fixture) {
				f.plan.Power.IsolatedMaximum, f.plan.Power.HousekeepingMaximum = 3000000, 3000000
				f.eachCPU(func(c *host.CPU) { c.Frequency.ScalingMaximum = absent[int64]("scaling_max_freq") }, 7)
			},
			want: isUnknown, wantMessage: "scaling_max_freq",
		},
	}
}

func frequencyDriverCases() checkCases {
	plan := func(f fixture, mode v1alpha1.FrequencyDriverMode) { f.plan.Power.FrequencyDriver = mode }
	withDriver := func(f fixture, driver string) {
		isolatedCPUs(f, func(c *host.CPU) { c.Frequency.Driver = known(driver) })
	}
	return checkCases{
		"no driver for frequencies": {change: withoutFrequencies, want: passes},
		"as planned":                {want: passes},
		"kept":                      {change: func(f fixture) { plan(f, v1alpha1.FrequencyDriverKept) }, want: doesNotApply},
		"arm64":                     {change: func(f fixture) { f.plan.Architecture = "arm64" }, want: doesNotApply},
		"another mode": {
			change: func(f fixture) { f.set(settingIntelStatus, "passive") },
			want:   fails, wantMessage: settingIntelStatus + " is passive, not active",
		},
		"AMD as planned": {
			change: func(f fixture) {
				plan(f, v1alpha1.FrequencyDriverGuided)
				f.plan.Vendor = "AMD"
				f.set(settingAMDStatus, "guided")
			},
			want: passes,
		},
		"missing": {change: func(f fixture) { f.remove(settingIntelStatus) }, want: isUnknown, wantMessage: settingIntelStatus},
		"off as planned": {
			change: func(f fixture) { plan(f, v1alpha1.FrequencyDriverDisabled); f.set(settingIntelStatus, "off") }, want: passes,
		},
		"disabled on the command line": {
			change: func(f fixture) {
				plan(f, v1alpha1.FrequencyDriverDisabled)
				f.boot("intel_pstate=disable")
				f.remove(settingIntelStatus)
			},
			want: passes,
		},
		"another driver at work": {
			change: func(f fixture) {
				plan(f, v1alpha1.FrequencyDriverDisabled)
				f.remove(settingIntelStatus)
				withDriver(f, "acpi-cpufreq")
			},
			want: passes,
		},
		"at work though disabled": {
			change: func(f fixture) { plan(f, v1alpha1.FrequencyDriverDisabled) },
			want:   fails, wantMessage: "CPUs 2-3,6-7: frequency driver intel_pstate, which is to be disabled",
		},
	}
}

func idleCases() map[v1alpha1.CheckID]checkCases {
	used := func(f fixture) { f.facts.CPUs.List[6].IdleStates[2].Usage = known(uint64(6)) }
	withoutStates := func(f fixture) { isolatedCPUs(f, func(c *host.CPU) { c.IdleStates = nil }) }
	return map[v1alpha1.CheckID]checkCases{
		"power.idle-states": idleStateCases(withoutStates),
		"power.idle-entries": {
			"none":    {want: passes},
			"polling": {change: func(f fixture) { f.plan.Power.IdleStates = v1alpha1.IdlePolling; used(f) }, want: doesNotApply},
			"into a shallow state": {
				change: func(f fixture) { f.facts.CPUs.List[6].IdleStates[1].Usage = known(uint64(600)) }, want: passes,
			},
			"by a housekeeping CPU": {
				change: func(f fixture) { f.facts.CPUs.List[0].IdleStates[2].Usage = known(uint64(600)) }, want: passes,
			},
			"into a deep state": {
				change: used,
				want:   fails, wantMessage: "CPU 6: idle state C6, which takes 133 µs to leave, was entered since the last reading",
			},
			"no driver": {
				change: func(f fixture) { withoutStates(f); f.set(settingIdleDriver, "none") }, want: passes,
			},
			"no states": {change: withoutStates, want: isUnknown, wantMessage: "/sys/devices/system/cpu/cpu2/cpuidle"},
			"the state is new": {
				change: func(f fixture) { f.before.CPUs.List[6].IdleStates = nil }, want: isUnknown, wantMessage: "not read before",
			},
			"a state that was not there before": {
				change: func(f fixture) { f.before.CPUs.List[6].IdleStates = f.before.CPUs.List[6].IdleStates[:2] }, want: isUnknown, wantMessage: "not read before",
			},
			"how long a state takes is not told": {
				change: func(f fixture) { f.facts.CPUs.List[3].IdleStates[2].LatencyMicros = absent[int64]("state2/latency") },
				want:   isUnknown, wantMessage: "state2/latency",
			},
			"not told before": {
				change: func(f fixture) { f.before.CPUs.List[6].IdleStates[2].Usage = absent[uint64]("state2/usage") },
				want:   isUnknown, wantMessage: "state2/usage",
			},
		},
	}
}

func idleStateCases(withoutStates func(fixture)) checkCases {
	byKernel := func(f fixture) { f.plan.Power.IdleStates = v1alpha1.IdleShallowByKernel; f.remove(settingLatencyLimit) }
	const allowed = "CPUs 2-3,6-7: idle state C6, which takes 133 µs to leave, is allowed"
	cases := checkCases{
		"limited by PM QoS": {want: passes},
		"kept":              {change: func(f fixture) { f.plan.Power.IdleStates = v1alpha1.IdleKept }, want: doesNotApply},
		"not limited": {
			change: func(f fixture) { f.set(settingLatencyLimit, "2000000000") }, want: fails, wantMessage: allowed + ": no program holds a limit in /dev/cpu_dma_latency",
		},
		"limited to less than wanted": {
			change: func(f fixture) { f.set(settingLatencyLimit, "200") }, want: fails, wantMessage: allowed + ": the limit in /dev/cpu_dma_latency is 200 µs",
		},
		"a limit that just allows it": {
			change: func(f fixture) { f.set(settingLatencyLimit, "133") }, want: fails, wantMessage: allowed + ": the limit in /dev/cpu_dma_latency is 133 µs",
		},
		"a limit that just forbids it": {
			change: func(f fixture) { f.set(settingLatencyLimit, "132") }, want: passes,
		},
		"the limit is not told, and nobody holds one": {
			change: func(f fixture) { f.remove(settingLatencyLimit); f.facts.LatencyHolders = known([]host.Process{}) },
			want:   fails, wantMessage: allowed + ": no program holds a limit in /dev/cpu_dma_latency",
		},
		"the limit is not told, and somebody holds one": {
			once: true, change: func(f fixture) {
				f.remove(settingLatencyLimit)
				f.facts.LatencyHolders = known([]host.Process{{PID: 400, Name: "tuned"}})
			},
			want: isUnknown, wantMessage: "/dev/cpu_dma_latency cannot be read: no such file; tuned (process 400) holds it open",
		},
		"limited CPU by CPU": {
			change: func(f fixture) {
				f.set(settingLatencyLimit, "2000000000")
				for _, id := range []int{2, 3, 6} {
					f.set(latencyLimitPath(id), "5")
				}
				f.set(latencyLimitPath(7), "n/a")
			},
			want: passes,
		},
		"the limit is not told": {
			change: func(f fixture) { f.remove(settingLatencyLimit) }, once: true, want: isUnknown, wantMessage: settingLatencyLimit,
		},
		"the limit is not told, but what the CPUs did": {change: func(f fixture) { f.remove(settingLatencyLimit) }, want: doesNotApply},
		"disabled one by one": {
			change: func(f fixture) {
				f.remove(settingLatencyLimit)
				isolatedCPUs(f, func(c *host.CPU) { c.IdleStates[2].Disabled = known(true) })
			},
			want: passes,
		},
		"not limited by the kernel": {change: byKernel, want: fails, wantMessage: allowed},
		"limited by the kernel": {
			change: func(f fixture) {
				byKernel(f)
				isolatedCPUs(f, func(c *host.CPU) { c.IdleStates = c.IdleStates[:2] })
			},
			want: passes,
		},
		"only polling is left": {
			change: func(f fixture) {
				byKernel(f)
				isolatedCPUs(f, func(c *host.CPU) { c.IdleStates = c.IdleStates[:1] })
			},
			want: passes,
		},
		"how long a state takes is not told": {
			change: func(f fixture) {
				f.facts.CPUs.List[3].IdleStates[2].LatencyMicros = absent[int64]("state2/latency")
			},
			want: isUnknown, wantMessage: "state2/latency",
		},
	}
	maps.Copy(cases, noIdleStateCases(withoutStates))
	return cases
}

// noIdleStateCases are those of hosts without idle states, and of plans that want none.
func noIdleStateCases(withoutStates func(fixture)) checkCases {
	polling := func(f fixture) { f.plan.Power.IdleStates = v1alpha1.IdlePolling }
	return checkCases{
		"no driver": {change: func(f fixture) { withoutStates(f); f.set(settingIdleDriver, "none") }, want: passes},
		"no states": {change: withoutStates, want: isUnknown, wantMessage: "/sys/devices/system/cpu/cpu2/cpuidle"},
		"polling":   {change: func(f fixture) { polling(f); f.boot("idle=poll") }, want: passes},
		"polling on arm64": {
			change: func(f fixture) { polling(f); f.plan.Architecture = "arm64"; f.boot("nohlt") }, want: passes,
		},
		"not polling on arm64": {
			change: func(f fixture) { polling(f); f.plan.Architecture = "arm64"; f.boot("idle=poll") },
			want:   fails, wantMessage: "idle CPUs sleep: the kernel was booted without nohlt",
		},
		"the word of arm64 on x86": {
			change: func(f fixture) { polling(f); f.boot("nohlt") },
			want:   fails, wantMessage: "idle CPUs sleep: the kernel was booted without idle=poll",
		},
		"not polling": {
			change: polling, want: fails, wantMessage: "idle CPUs sleep: the kernel was booted without idle=poll",
		},
		"polling is not told": {
			change: func(f fixture) { polling(f); f.facts.Kernel.CommandLine = absent[string]("/proc/cmdline") },
			want:   isUnknown, wantMessage: "/proc/cmdline",
		},
	}
}
