// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

const settingPlatformProfile = "/sys/firmware/acpi/platform_profile"

// platformChecks ask what the processor and the firmware do besides what the kernel decides.
func platformChecks() []Check {
	deJittered := []string{v1alpha1.ConditionDeJittered}
	return []Check{
		{
			ID: "power.idle-driver", Severity: v1alpha1.SeverityLow, Impact: ImpactSpeed, Conditions: deJittered,
			Title:   "No idle driver is at work where idle CPUs are to poll",
			Applies: "amd64, spec.power.idleStates is Polling",
			Why:     "A driver that was registered all the same lets CPUs sleep.",
			Reads:   []string{settingIdleDriver},
			Fix:     "Boot with idle=poll, as the plan's kernel arguments say.",
			Reboot:  v1alpha1.RebootRequired,
			Source:  "kernel: Documentation/admin-guide/pm/cpuidle.rst (idle=poll disables cpuidle)",
			owns:    []string{settingIdleDriver},
			run: where(func(s *state) bool {
				return s.plan.Architecture == "amd64" && s.plan.Power.IdleStates == v1alpha1.IdlePolling
			}, func(s *state) verdict { return s.settingIs(settingIdleDriver, "none") }),
		},
		{
			ID: "power.uncore", Severity: v1alpha1.SeverityMedium, Impact: ImpactSpeed, Conditions: deJittered,
			Title:   "The frequency of caches and memory controllers is fixed",
			Applies: "Intel, spec.power.idleStates is Polling and spec.power.governor is Performance",
			Why:     "The mesh that connects cores, cache and memory lowers its own frequency when it seems idle; the first packets then take longer.",
			Reads:   []string{"/sys/devices/system/cpu/intel_uncore_frequency/uncore*/{min,max}_freq_khz"},
			Fix:     "Fix the uncore frequency in the firmware, or write the value of max_freq_khz to min_freq_khz of the domains named.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/admin-guide/pm/intel_uncore_frequency_scaling.rst",
			run:     where(wantsFixedUncore, uncoreIsFixed),
		},
		{
			ID: "power.thermal", Severity: v1alpha1.SeverityHigh, Impact: ImpactSpeed, Conditions: deJittered, Window: true,
			Title:   "No isolated CPU was slowed down by heat since the last reading",
			Applies: "Intel",
			Why:     "The processor halves the clock of the core or package for milliseconds.",
			Reads:   []string{"/sys/devices/system/cpu/cpu*/thermal_throttle/{core,package}_throttle_count"},
			Fix:     "Look at fans, air flow, power capping and turbo.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: drivers/thermal/intel/therm_throt.c",
			run:     where(func(s *state) bool { return s.plan.Vendor == "Intel" }, heatIsHarmless),
		},
		{
			ID: "power.platform-profile", Severity: v1alpha1.SeverityLow, Impact: ImpactSpeed, Conditions: deJittered,
			Title:   "The firmware's profile is performance",
			Applies: "spec.power.governor is Performance, and the firmware has profiles",
			Why:     "The firmware limits power and fans by its own profile, whatever the kernel chooses.",
			Reads:   []string{settingPlatformProfile},
			Fix:     "Write performance to " + settingPlatformProfile + ".",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/ABI/testing/sysfs-platform_profile; TuneD latency-performance",
			owns:    []string{settingPlatformProfile},
			run: where(func(s *state) bool {
				profile := s.facts.Setting(settingPlatformProfile)
				return s.plan.Power.Governor == v1alpha1.GovernorPerformance && (profile.Known || profile.Reason != reasonMissing)
			}, func(s *state) verdict { return s.settingIs(settingPlatformProfile, "performance") }),
		},
		{
			ID: "cpu.cache-domains", Severity: v1alpha1.SeverityMedium, Impact: ImpactSpeed, Conditions: deJittered,
			Title:   "Isolated CPUs share no third-level cache with housekeeping CPUs",
			Applies: "a NUMA node has several such caches, and the plan keeps them apart; where it shares them, its finding plan.shared-cache says so",
			Why:     "What housekeeping CPUs read and write evicts the program's data: each access then takes ten times as long.",
			Reads:   []string{"/sys/devices/system/cpu/cpu*/cache/index3/shared_cpu_list"},
			Fix:     "Give housekeeping whole cache domains (spec.cpus), or set spec.cpus.derived.sharedCaches to Allowed.",
			Reboot:  v1alpha1.RebootRequired,
			Source:  "kernel: Documentation/ABI/testing/sysfs-devices-system-cpu (cache); AMD: tuning guides (CCX)",
			run:     cachesAreApart,
		},
	}
}

// reasonMissing is how host says that a file does not exist.
const reasonMissing = "no such file"

func wantsFixedUncore(s *state) bool {
	power := s.plan.Power
	return s.plan.Vendor == "Intel" && power.IdleStates == v1alpha1.IdlePolling && power.Governor == v1alpha1.GovernorPerformance
}

func uncoreIsFixed(s *state) verdict {
	const expected = "minimum equal to maximum"
	return judge(s.facts.UncoreDomains, expected, func(domains []host.UncoreDomain) verdict {
		if len(domains) == 0 {
			return unsaid(s.facts.UncoreDomains.Source, "it lists no domain", expected)
		}
		verdicts := make([]verdict, 0, len(domains))
		for _, domain := range domains {
			verdicts = append(verdicts, judge(domain.Minimum, expected, func(low int64) verdict {
				return judge(domain.Maximum, expected, func(high int64) verdict {
					if low == high {
						return passed(fmt.Sprintf("%s: %d kHz", domain.Name, low))
					}
					return failed(fmt.Sprintf("%s runs at %d to %d kHz", domain.Name, low, high), domain.Name, expected)
				})
			}))
		}
		return worst(verdicts...)
	})
}

func heatIsHarmless(s *state) verdict {
	earlier := map[int]*host.CPU{}
	for i := range s.before.CPUs.List {
		earlier[s.before.CPUs.List[i].ID] = &s.before.CPUs.List[i]
	}
	return s.surveyCPUs(s.plan.CPUs.Isolated, noIncrease, func(cpu *host.CPU) answer {
		before, ok := earlier[cpu.ID]
		if !ok {
			return answer{absent: true, source: cpu.CoreThrottles.Source, reason: "not read before"}
		}
		if found := grew(cpu.CoreThrottles, before.CoreThrottles, "its core was slowed down by heat"); found != (answer{}) {
			return found
		}
		return grew(cpu.PackageThrottles, before.PackageThrottles, "its package was slowed down by heat")
	})
}

// grew compares a counter with what it was.
func grew(now, before host.Fact[uint64], wrong string) answer {
	if !before.Known {
		return answer{absent: true, source: before.Source, reason: before.Reason}
	}
	return about(now, func(count uint64) string {
		if count > before.Value {
			return wrong
		}
		return ""
	})
}

// cachesAreApart judges NUMA nodes with several caches of level 3; where a NUMA node has one, sharing it cannot be
// avoided.
func cachesAreApart(s *state) verdict {
	if s.plan.CPUs.SharedCaches == v1alpha1.CacheSharingAllowed {
		return notApplicable()
	}
	domains, verdicts := s.cacheDomains()
	for _, node := range s.facts.NUMANodes {
		verdicts = append(verdicts, s.nodeCachesAreApart(node, domains)...)
	}
	return worst(sorted(verdicts)...)
}

// cacheDomains are the caches of level 3 by their CPUs, and what is not known about those of isolated CPUs.
func (s *state) cacheDomains() (domains map[string]cpus.Set, missing []verdict) {
	domains = map[string]cpus.Set{}
	for i := range s.facts.CPUs.List {
		cpu := &s.facts.CPUs.List[i]
		for _, cache := range cpu.Caches {
			if cache.Level.Value != 3 {
				continue
			}
			if shared, ok := cache.SharedCPUs.Get(); ok {
				domains[shared.String()] = shared
			} else if s.plan.CPUs.Isolated.Contains(cpu.ID) {
				missing = append(missing, unknown(cache.SharedCPUs.Source, cache.SharedCPUs.Reason, "no shared cache"))
			}
		}
	}
	return domains, missing
}

func (s *state) nodeCachesAreApart(node host.NUMANode, domains map[string]cpus.Set) []verdict {
	var verdicts []verdict
	for _, domain := range domains {
		if !domain.Overlaps(node.CPUs.Value) {
			continue
		}
		isolated, housekeeping := domain.Intersection(s.plan.CPUs.Isolated), domain.Intersection(s.plan.CPUs.Housekeeping)
		if isolated.IsEmpty() || housekeeping.IsEmpty() {
			verdicts = append(verdicts, passed(""))
			continue
		}
		verdicts = append(verdicts, failed(fmt.Sprintf("isolated %s %s a third-level cache with housekeeping %s",
			isolated.Name(), shareOrShares(isolated), housekeeping.Name()), isolated.String(), "no shared cache").
			about(finding.OfCPUs(isolated)))
	}
	if len(verdicts) < 2 {
		return nil
	}
	return verdicts
}

func shareOrShares(set cpus.Set) string {
	if set.Len() == 1 {
		return "shares"
	}
	return "share"
}
