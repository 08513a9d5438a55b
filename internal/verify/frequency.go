// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

const (
	settingIntelStatus = "/sys/devices/system/cpu/intel_pstate/status"
	settingAMDStatus   = "/sys/devices/system/cpu/amd_pstate/status"
	settingNoTurbo     = "/sys/devices/system/cpu/intel_pstate/no_turbo"
	settingBoost       = "/sys/devices/system/cpu/cpufreq/boost"

	settingMaximumPercent = "/sys/devices/system/cpu/intel_pstate/max_perf_pct"
)

// frequencyChecks ask how the frequency of the CPUs is chosen.
func frequencyChecks() []Check {
	deJittered := []string{v1alpha1.ConditionDeJittered}
	const byGovernor = "spec.power.governor is Performance"
	return []Check{
		{
			ID: "power.governor", Severity: v1alpha1.SeverityHigh, Impact: ImpactSpeed, Conditions: deJittered,
			Title:   "Isolated CPUs run the performance governor",
			Applies: byGovernor,
			Why:     "Other governors lower the frequency and take tens of microseconds to raise it again.",
			Reads:   []string{"/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"},
			Fix:     "Write performance to scaling_governor of the CPUs named.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/admin-guide/pm/cpufreq.rst",
			owns:    []string{"/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor", "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor"},
			run: where(func(s *state) bool { return s.plan.Power.Governor == v1alpha1.GovernorPerformance }, func(s *state) verdict {
				if s.choosesNoFrequency() {
					return passed(noFrequency)
				}
				return s.cpuTextIs(func(cpu *host.CPU) host.Fact[string] { return cpu.Frequency.Governor }, "performance", "governor")
			}),
		},
		{
			ID: "power.energy-preference", Severity: v1alpha1.SeverityMedium, Impact: ImpactSpeed, Conditions: deJittered,
			Title:   "Isolated CPUs prefer performance over energy",
			Applies: byGovernor + ", spec.power.frequencyDriver is Active",
			Why:     "The processor itself then lowers the frequency of a CPU that seems idle.",
			Reads:   []string{"/sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference"},
			Fix:     "Write performance to energy_performance_preference of the CPUs named.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/admin-guide/pm/intel_pstate.rst, amd-pstate.rst",
			owns: []string{
				"/sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference",
				"/sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference",
			},
			run: where(energyPreferenceApplies, func(s *state) verdict {
				if s.choosesNoFrequency() {
					return passed(noFrequency)
				}
				return s.cpuTextIs(func(cpu *host.CPU) host.Fact[string] { return cpu.Frequency.EnergyPerformancePreference },
					"performance", "energy preference")
			}),
		},
		{
			ID: "power.frequency-driver", Severity: v1alpha1.SeverityMedium, Impact: ImpactSpeed, Conditions: deJittered,
			Title:   "The frequency driver is in the planned mode",
			Applies: "amd64, spec.power.frequencyDriver is not Kept",
			Why:     "The mode decides whether the processor or the kernel chooses frequencies, or neither does.",
			Reads:   []string{settingIntelStatus, settingAMDStatus, "/sys/devices/system/cpu/cpu*/cpufreq/scaling_driver"},
			Fix:     "Boot with the planned intel_pstate= or amd_pstate= argument.",
			Reboot:  v1alpha1.RebootRequired,
			Source:  "kernel: Documentation/admin-guide/pm/intel_pstate.rst, amd-pstate.rst",
			owns:    []string{settingIntelStatus, settingAMDStatus},
			run:     frequencyDriverIsPlanned,
		},
		{
			ID: "power.turbo", Severity: v1alpha1.SeverityMedium, Impact: ImpactSpeed, Conditions: deJittered,
			Title:   "Turbo is as planned",
			Applies: "spec.power.turbo is Enabled or Disabled",
			Why:     "With turbo, the frequency of a core changes with the load and temperature of the others.",
			Reads:   []string{settingNoTurbo, settingBoost},
			Fix:     "Write the planned value to the file named (1 in intel_pstate/no_turbo and 0 in cpufreq/boost switch turbo off), or change the firmware's setting.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/admin-guide/pm/intel_pstate.rst (no_turbo), cpufreq.rst (boost)",
			owns:    []string{settingNoTurbo, settingBoost},
			run:     turboIsPlanned,
		},
		maximumFrequencyCheck(),
	}
}

func maximumFrequencyCheck() Check {
	return Check{
		ID: "power.maximum-frequency", Severity: v1alpha1.SeverityHigh, Impact: ImpactSpeed, Conditions: []string{v1alpha1.ConditionDeJittered},
		Title:   "Frequencies are capped as planned, and those of isolated CPUs not otherwise",
		Applies: "spec.power caps frequencies, or spec.power.governor is Performance",
		Why:     "A capped CPU does everything more slowly; planned caps share the processor's power budget between isolated and housekeeping CPUs.",
		Reads: []string{
			"/sys/devices/system/cpu/cpu*/cpufreq/{scaling_max_freq,cpuinfo_max_freq,scaling_available_frequencies}", settingMaximumPercent, settingNoTurbo,
		},
		Fix:    "Write the planned frequency in kHz, without one that of cpuinfo_max_freq, to scaling_max_freq of the CPUs named, and 100 to " + settingMaximumPercent + "; find who lowered them: a power manager, the firmware's limit (bios_limit), heat.",
		Reboot: v1alpha1.RebootNotRequired,
		Source: "kernel: Documentation/admin-guide/pm/cpufreq.rst (scaling_max_freq), intel_pstate.rst (max_perf_pct)",
		owns: []string{
			"/sys/devices/system/cpu/cpu*/cpufreq/scaling_max_freq", "/sys/devices/system/cpu/cpufreq/policy*/scaling_max_freq", settingMaximumPercent,
		},
		run: frequenciesAreCapped,
	}
}

// where makes a check that is evaluated only where it applies.
func where(applies func(*state) bool, run func(*state) verdict) func(*state) verdict {
	return func(s *state) verdict {
		if !applies(s) {
			return notApplicable()
		}
		return run(s)
	}
}

func energyPreferenceApplies(s *state) bool {
	return s.plan.Power.Governor == v1alpha1.GovernorPerformance && s.plan.Power.FrequencyDriver == v1alpha1.FrequencyDriverActive
}

// cpuTextIs asks every isolated CPU for a text.
func (s *state) cpuTextIs(read func(*host.CPU) host.Fact[string], want, what string) verdict {
	return s.surveyCPUs(s.plan.CPUs.Isolated, want, func(cpu *host.CPU) answer {
		return about(read(cpu), func(found string) string {
			if found == want {
				return ""
			}
			return fmt.Sprintf("%s %s, not %s", what, orNone(found), want)
		})
	})
}

const noFrequency = "the kernel chooses no frequencies"

// choosesNoFrequency reports whether a kernel has no driver for frequencies at all, as in most virtual machines: there is no
// governor, preference or mode that could be wrong.
func (s *state) choosesNoFrequency() bool {
	for _, file := range []string{settingIntelStatus, settingAMDStatus, settingBoost} {
		if !s.facts.Setting(file).Missing {
			return false
		}
	}
	return !slices.ContainsFunc(s.facts.CPUs.List, func(cpu host.CPU) bool {
		return cpu.Frequency.Driver.Known || cpu.Frequency.Driver.Reason != reasonMissing
	})
}

// frequencyDriverIsPlanned reads the mode of the vendor's driver.
func frequencyDriverIsPlanned(s *state) verdict {
	mode := s.plan.Power.FrequencyDriver
	if s.plan.Architecture == "arm64" || mode == v1alpha1.FrequencyDriverKept || mode == "" {
		return notApplicable()
	}
	if s.choosesNoFrequency() {
		return passed(noFrequency)
	}
	found := s.driverMode()
	if mode == v1alpha1.FrequencyDriverDisabled {
		return s.driverIsDisabled(found)
	}
	want := strings.ToLower(string(mode))
	if other := s.driverIsAnother(want); !found.Known && other.outcome == v1alpha1.OutcomeFailed {
		return other
	}
	return judge(found, want, func(running string) verdict {
		if running == want {
			return passed(found.Source + " is " + running)
		}
		return failed(fmt.Sprintf("%s is %s, not %s", found.Source, running, want), running, want).about(finding.OfFiles(found.Source))
	})
}

// driverMode is the mode of intel_pstate or amd_pstate; a driver that is not at work says "off" or
// "disable".
func (s *state) driverMode() host.Fact[string] {
	intel, amd := s.facts.Setting(settingIntelStatus), s.facts.Setting(settingAMDStatus)
	if amd.Known && !intel.Known || s.plan.Vendor == "AMD" {
		return amd
	}
	return intel
}

// driverIsDisabled accepts a vendor's driver that says so, the argument that disables it, and CPUs that
// use another driver. A disabled driver may have no mode to read.
func (s *state) driverIsDisabled(mode host.Fact[string]) verdict {
	if mode.Value == "off" || mode.Value == "disable" {
		return passed(mode.Source + " is " + mode.Value)
	}
	if line, ok := s.running.Get(); ok && (line.Contains("intel_pstate=disable") || line.Contains("amd_pstate=disable")) {
		return passed("disabled on the command line")
	}
	return s.surveyCPUs(s.plan.CPUs.Isolated, "another frequency driver", func(cpu *host.CPU) answer {
		return about(cpu.Frequency.Driver, func(driver string) string {
			if slices.Contains(vendorDrivers(), driver) {
				return "frequency driver " + driver + ", which is to be disabled"
			}
			return ""
		})
	})
}

// vendorDrivers are the frequency drivers made for processors of one vendor, which have modes.
func vendorDrivers() []string {
	return []string{"intel_pstate", "intel_cpufreq", "amd-pstate", "amd-pstate-epp", "amd_pstate", "amd_pstate_epp"}
}

// driverIsAnother finds CPUs whose driver has no mode at all.
func (s *state) driverIsAnother(mode string) verdict {
	return s.surveyCPUs(s.plan.CPUs.Isolated, mode, func(cpu *host.CPU) answer {
		return about(cpu.Frequency.Driver, func(driver string) string {
			if slices.Contains(vendorDrivers(), driver) {
				return ""
			}
			return "frequency driver " + driver + ", which has no mode " + mode
		})
	})
}

// turboIsPlanned reads intel_pstate's no_turbo, else the generic boost file.
func turboIsPlanned(s *state) verdict {
	var wantNoTurbo, wantBoost string
	switch s.plan.Power.Turbo {
	case v1alpha1.TurboEnabled:
		wantNoTurbo, wantBoost = "0", "1"
	case v1alpha1.TurboDisabled:
		wantNoTurbo, wantBoost = "1", "0"
	default:
		return notApplicable()
	}
	if s.facts.Setting(settingNoTurbo).Known {
		return s.settingIs(settingNoTurbo, wantNoTurbo)
	}
	return s.settingIs(settingBoost, wantBoost)
}

func frequenciesAreCapped(s *state) verdict {
	power := s.plan.Power
	return worst(s.cap(s.plan.CPUs.Isolated, int64(power.IsolatedMaximum)), s.cap(s.plan.CPUs.Housekeeping, int64(power.HousekeepingMaximum)),
		s.isolatedAreUncapped(), s.driverIsUncapped())
}

// isolatedAreUncapped judges isolated CPUs of which the plan wants the full speed. A kernel that does not choose frequencies,
// as in most virtual machines, caps none.
func (s *state) isolatedAreUncapped() verdict {
	isolated := s.plan.CPUs.Isolated
	scales := func(id int) bool {
		cpu, ok := s.cpuByID[id]
		return ok && (cpu.Frequency.Driver.Known || cpu.Frequency.ScalingMaximum.Known || cpu.Frequency.ScalingMaximum.Reason != reasonMissing)
	}
	if s.plan.Power.IsolatedMaximum != 0 || s.plan.Power.Governor != v1alpha1.GovernorPerformance || isolated.Filter(scales).IsEmpty() {
		return notApplicable()
	}
	full := s.fullFrequencies()
	return s.surveyCPUs(isolated, "no cap", func(cpu *host.CPU) answer {
		if !cpu.Frequency.HardwareMaximum.Known {
			return about(cpu.Frequency.HardwareMaximum, func(int64) string { return "" })
		}
		return about(cpu.Frequency.ScalingMaximum, func(found int64) string {
			if want := full(cpu); found < want {
				return fmt.Sprintf("maximum frequency %d kHz (scaling_max_freq), while the CPU can run at %d kHz", found, want)
			}
			return ""
		})
	})
}

// fullFrequencies tells what scaling_max_freq of a CPU is where nobody capped it: the frequency of the hardware; the highest
// of the table, for drivers with one; without turbo, less than the hardware's by what only the processor knows
// (intel_pstate_get_max_freq of drivers/cpufreq/intel_pstate.c), so that the highest of its kind of CPU counts.
func (s *state) fullFrequencies() func(*host.CPU) int64 {
	withoutTurbo := s.facts.Setting(settingNoTurbo).Value == "1"
	highest := map[int64]int64{}
	for i := range s.facts.CPUs.List {
		f := s.facts.CPUs.List[i].Frequency
		highest[f.HardwareMaximum.Value] = max(highest[f.HardwareMaximum.Value], f.ScalingMaximum.Value)
	}
	return func(cpu *host.CPU) int64 {
		hardware := cpu.Frequency.HardwareMaximum.Value
		if table, ok := cpu.Frequency.TableMaximum.Get(); ok {
			return min(table, hardware)
		}
		if withoutTurbo {
			return highest[hardware]
		}
		return hardware
	}
}

// driverIsUncapped judges intel_pstate's limit of all CPUs, in percent of what the hardware can do. It must leave room for
// what the plan allows to isolated CPUs.
func (s *state) driverIsUncapped() verdict {
	limit := parseSetting(s.facts.Setting(settingMaximumPercent), parseMicros)
	if s.plan.Power.Governor != v1alpha1.GovernorPerformance && s.plan.Power.IsolatedMaximum == 0 || !limit.Known && limit.Reason == reasonMissing {
		return notApplicable()
	}
	return judge(limit, "100", func(percent int64) verdict {
		if percent >= 100 || s.leavesRoom(percent) {
			return passed(fmt.Sprintf("%s is %d", settingMaximumPercent, percent))
		}
		return failed(fmt.Sprintf("%s is %d: no CPU runs faster than %d %% of what it can", settingMaximumPercent, percent, percent),
			strconv.FormatInt(percent, 10), "100").about(finding.OfFiles(settingMaximumPercent))
	})
}

// leavesRoom reports whether a limit of all CPUs is above the planned cap of isolated ones.
func (s *state) leavesRoom(percent int64) bool {
	want := int64(s.plan.Power.IsolatedMaximum)
	return want != 0 && !slices.ContainsFunc(s.plan.CPUs.Isolated.IDs(), func(id int) bool {
		cpu, ok := s.cpuByID[id]
		return !ok || cpu.Frequency.HardwareMaximum.Value*percent/100 < want
	})
}

// cap judges the cap of a set of CPUs; zero is no cap.
func (s *state) cap(set cpus.Set, want int64) verdict {
	if want == 0 {
		return notApplicable()
	}
	expected := fmt.Sprintf("%d kHz", want)
	return s.surveyCPUs(set, expected, func(cpu *host.CPU) answer {
		return about(cpu.Frequency.ScalingMaximum, func(found int64) string {
			if found == want {
				return ""
			}
			return fmt.Sprintf("maximum frequency %d kHz, not %d kHz", found, want)
		})
	})
}
