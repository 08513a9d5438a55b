// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import (
	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

func faultsOfPower() []fault {
	return []fault{
		{
			name: "the governor is powersave",
			harm: func(n *node) { n.write(cpu(n.isolated(), "cpufreq/scaling_governor"), "powersave") },
			want: "power.governor", says: []string{"powersave"},
		},
		{
			name: "the frequency of an isolated CPU is capped",
			harm: func(n *node) { n.write(cpu(n.isolated(), "cpufreq/scaling_max_freq"), "1600000") },
			want: "power.maximum-frequency", says: []string{"1600000 kHz (scaling_max_freq)"},
		},
		{
			name: "intel_pstate caps all CPUs", on: []string{xeon},
			harm: func(n *node) { n.write("/sys/devices/system/cpu/intel_pstate/max_perf_pct", "70") },
			want: "power.maximum-frequency", says: []string{"max_perf_pct is 70"},
		},
		{
			name: "the clock is read from the HPET", on: x86(),
			harm: func(n *node) { n.write("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet") },
			want: "clock.source", says: []string{"hpet"},
		},
		{
			name: "heat slowed an isolated CPU down", on: []string{xeon},
			during: func(n *node) { n.put(cpu(n.isolated(), "thermal_throttle/core_throttle_count"), "3\n") },
			want:   "power.thermal",
		},
	}
}

func variationsOfPower() []variation {
	return []variation{
		{
			name:   "housekeeping CPUs are capped",
			change: func(n *node) { n.write(cpu(n.housekeeping(), "cpufreq/scaling_max_freq"), "1600000") },
		},
		{
			name: "turbo is off, and the limit of all CPUs shows it", on: []string{xeon},
			change: func(n *node) {
				n.write("/sys/devices/system/cpu/intel_pstate/no_turbo", "1")
				n.writeEach("/sys/devices/system/cpu/cpu*/cpufreq/scaling_max_freq", "2400000")
			},
		},
		{
			name: "housekeeping CPUs were slowed down by heat", on: []string{xeonNoSMT},
			during: func(n *node) { n.put(cpu(n.housekeeping(), "thermal_throttle/core_throttle_count"), "3\n") },
		},
		{
			name: "the kernel counts no throttling", on: []string{xeon},
			change:  func(n *node) { n.remove("/sys/devices/system/cpu/cpu*/thermal_throttle") },
			unknown: map[v1alpha1.CheckID]string{"power.thermal": "the host does not say whether heat slowed it down"},
		},
	}
}
