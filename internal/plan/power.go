// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"fmt"
	"slices"
	"strconv"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// Vendors as topology names them.
const (
	vendorIntel = "Intel"
	vendorAMD   = "AMD"
)

// planPower decides frequency and idle behaviour as far as this host can have it.
func (p *planner) planPower() {
	w := p.spec.Power
	p.plan.Power = PowerPlan{
		IdleStates:          w.IdleStates,
		FrequencyDriver:     p.frequencyDriver(),
		Governor:            w.Governor,
		IsolatedMaximum:     w.IsolatedMaximumFrequencyKilohertz,
		HousekeepingMaximum: w.HousekeepingMaximumFrequencyKilohertz,
		Origin:              p.origin("spec.power.preset"),
	}
	p.plan.Power.Turbo = p.turbo()
	p.checkFrequency("spec.power.isolatedMaximumFrequencyKilohertz", w.IsolatedMaximumFrequencyKilohertz)
	p.checkFrequency("spec.power.housekeepingMaximumFrequencyKilohertz", w.HousekeepingMaximumFrequencyKilohertz)
}

// frequencyDriver is Kept where there is no driver with modes: on arm64, as the API says, and for
// processors of other vendors, about which checkArchitecture has spoken. Guided exists on AMD only
// (Documentation/admin-guide/pm/amd-pstate.rst).
func (p *planner) frequencyDriver() v1alpha1.FrequencyDriverMode {
	mode := p.spec.Power.FrequencyDriver
	switch {
	case p.topology.Vendor == vendorAMD && p.topology.Architecture == architectureAMD64:
		if mode == v1alpha1.FrequencyDriverRecommended {
			return v1alpha1.FrequencyDriverGuided
		}
		return mode
	case p.topology.Vendor != vendorIntel || p.topology.Architecture != architectureAMD64:
		return v1alpha1.FrequencyDriverKept
	case mode == v1alpha1.FrequencyDriverGuided:
		p.report(v1alpha1.SeverityHigh, ruleFrequencyDriver, "spec.power.frequencyDriver",
			"Choose Active or Passive, or select AMD nodes only.",
			"intel_pstate has no guided mode, so the driver is left as the kernel chooses it")
		return v1alpha1.FrequencyDriverKept
	case mode == v1alpha1.FrequencyDriverRecommended:
		return p.recommendedIntelDriver()
	}
	return mode
}

// recommendedIntelDriver is what TuneD recommends, by the generation instead of by the name that the kernel has for its
// counters (function_intel_recommended_pstate.py): with HWP in active mode, processors before Ice Lake were seen to jitter.
func (p *planner) recommendedIntelDriver() v1alpha1.FrequencyDriverMode {
	const family = 6
	switch {
	case p.topology.Family == 0:
		p.report(v1alpha1.SeverityLow, ruleFrequencyDriver, "spec.power.frequencyDriver",
			"Choose Active or Disabled, or let the agent report the node again.",
			"the host does not report the family of its processor, so Active is taken for what is recommended")
		return v1alpha1.FrequencyDriverActive
	case p.topology.Family == family && slices.Contains(modelsBeforeIceLake(), p.topology.ModelNumber):
		return v1alpha1.FrequencyDriverDisabled
	}
	return v1alpha1.FrequencyDriverActive
}

// modelsBeforeIceLake are the models of family 6 from Sandy Bridge, the first that intel_pstate knows, to the last with
// Skylake's core (arch/x86/include/asm/intel-family.h).
func modelsBeforeIceLake() []int {
	return []int{
		0x2a, 0x2d, // Sandy Bridge
		0x3a, 0x3e, // Ivy Bridge
		0x3c, 0x3f, 0x45, 0x46, // Haswell
		0x3d, 0x47, 0x4f, 0x56, // Broadwell
		0x4e, 0x5e, 0x55, // Skylake; 0x55 is also Cascade Lake and Cooper Lake
		0x8e, 0x9e, 0xa5, 0xa6, // Kaby Lake, Comet Lake
	}
}

// turbo is Kept where it is not known which file switches it.
func (p *planner) turbo() v1alpha1.TurboMode {
	mode := p.spec.Power.Turbo
	if mode == v1alpha1.TurboKept || p.turboSetting(mode) != (Setting{}) {
		return mode
	}
	p.report(v1alpha1.SeverityMedium, ruleTurbo, "spec.power.turbo", "Set it in the firmware.",
		"the processor's vendor is %q, so it is not known how to switch turbo", p.topology.Vendor)
	return v1alpha1.TurboKept
}

// turboSetting is the file that switches turbo: intel_pstate has one of its own with the opposite meaning
// (Documentation/admin-guide/pm/intel_pstate.rst), all other drivers share cpufreq/boost.
func (p *planner) turboSetting(mode v1alpha1.TurboMode) Setting {
	const intel, shared = "/sys/devices/system/cpu/intel_pstate/no_turbo", "/sys/devices/system/cpu/cpufreq/boost"
	origin := p.origin("spec.power.turbo")
	enabled := mode == v1alpha1.TurboEnabled
	switch {
	case p.topology.Architecture == architectureARM64, p.topology.Vendor == vendorAMD,
		p.topology.Vendor == vendorIntel && p.plan.Power.FrequencyDriver == v1alpha1.FrequencyDriverDisabled:
		return Setting{shared, bit(enabled), origin}
	case p.topology.Vendor == vendorIntel:
		return Setting{intel, bit(!enabled), origin}
	}
	return Setting{}
}

func bit(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// checkFrequency holds a frequency cap against the hardware's range.
func (p *planner) checkFrequency(field string, wanted int32) {
	low, high := p.topology.MinimumFrequency, p.topology.MaximumFrequency
	switch {
	case wanted == 0:
	case low == 0 || high == 0:
		p.report(v1alpha1.SeverityLow, ruleFrequencyRange, field, "Check the cap against the processor's data sheet.",
			"the host does not report the frequency range of its processor, so %d kHz cannot be checked", wanted)
	case int64(wanted) < low || int64(wanted) > high:
		p.critical(ruleFrequencyRange, field, fmt.Sprintf("Choose a value from %d to %d.", low, high),
			"%d kHz is outside the processor's range of %d to %d kHz", wanted, low, high)
	}
}

// frequencyCaps limit each CPU. scaling_max_freq of a CPU is its policy's, whatever the number of the
// policy's folder (Documentation/admin-guide/pm/cpufreq.rst).
func (p *planner) frequencyCaps() []Setting {
	var settings []Setting
	for _, group := range []struct {
		field   string
		maximum int32
		cpus    cpus.Set
	}{
		{"spec.power.housekeepingMaximumFrequencyKilohertz", p.plan.Power.HousekeepingMaximum, p.plan.CPUs.Housekeeping},
		{"spec.power.isolatedMaximumFrequencyKilohertz", p.plan.Power.IsolatedMaximum, p.plan.CPUs.Isolated},
	} {
		if group.maximum == 0 {
			continue
		}
		for _, id := range group.cpus.IDs() {
			settings = append(settings, Setting{
				Name:   "/sys/devices/system/cpu/cpu" + strconv.Itoa(id) + "/cpufreq/scaling_max_freq",
				Value:  strconv.Itoa(int(group.maximum)),
				Origin: p.origin(group.field),
			})
		}
	}
	return settings
}
