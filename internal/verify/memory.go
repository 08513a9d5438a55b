// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

const (
	settingKSM        = "/sys/kernel/mm/ksm/run"
	settingKSMShared  = "/sys/kernel/mm/ksm/pages_shared"
	settingSwaps      = "/proc/swaps"
	settingSwappiness = "/proc/sys/vm/swappiness"

	settingZoneReclaim = "/proc/sys/vm/zone_reclaim_mode"
)

// memoryChecks ask what the kernel does with memory behind the back of programs.
func memoryChecks() []Check {
	deJittered := []string{v1alpha1.ConditionDeJittered}
	return []Check{
		{
			ID: "memory.numa-balancing", Severity: v1alpha1.SeverityHigh, Impact: ImpactWork, Conditions: deJittered,
			Title:   "Automatic NUMA balancing is as planned",
			Applies: "the plan sets kernel.numa_balancing",
			Why:     "The kernel unmaps pages of every program to see who uses them; each costs a page fault.",
			Reads:   []string{"/proc/sys/kernel/numa_balancing"},
			Fix:     "Set kernel.numa_balancing to 0.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/admin-guide/sysctl/kernel.rst (numa_balancing)",
			owns:    []string{"/proc/sys/kernel/numa_balancing"},
			run:     plannedSysctl("kernel.numa_balancing"),
		},
		{
			ID: transparentCheck, Severity: v1alpha1.SeverityHigh, Impact: ImpactWork, Conditions: deJittered,
			Title:   "Transparent hugepages are as planned",
			Applies: "the plan sets transparent hugepages",
			Why:     "khugepaged copies pages and stalls the program that owns them.",
			Reads:   []string{settingTHP, settingTHPShared, settingTHPSizes, settingTHPShares},
			Fix:     "Write never to the file, and see what set it: a kernel argument (transparent_hugepage=, thp_anon=, thp_shmem=), a udev rule or another TuneD profile.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/admin-guide/mm/transhuge.rst",
			owns:    []string{settingTHP, settingTHPShared, settingTHPSizes, settingTHPShares},
			run:     transparentHugepagesArePlanned,
		},
		{
			ID: "memory.ksm", Severity: v1alpha1.SeverityMedium, Impact: ImpactSpeed, Conditions: deJittered,
			Title:   "Same-page merging does not run",
			Applies: "the plan stops same-page merging",
			Why:     "A merged page costs its writer a page fault and a copy.",
			Reads:   []string{settingKSM, settingKSMShared},
			Fix:     "Write 2 to " + settingKSM + ".",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/admin-guide/mm/ksm.rst",
			owns:    []string{settingKSM},
			run:     samePageMergingIsOff,
		},
		{
			ID: "memory.vmstat", Severity: v1alpha1.SeverityMedium, Impact: ImpactWork, Conditions: deJittered,
			Title:   "Memory statistics are collected at the planned interval",
			Applies: "the plan sets vm.stat_interval",
			Why:     "By default a kernel worker folds the counters of every CPU once a second, on that CPU.",
			Reads:   []string{"/proc/sys/vm/stat_interval"},
			Fix:     "Set vm.stat_interval to the planned number of seconds.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/admin-guide/sysctl/vm.rst (stat_interval)",
			owns:    []string{"/proc/sys/vm/stat_interval"},
			run:     plannedSysctl("vm.stat_interval"),
		},
		{
			ID: "memory.compaction", Severity: v1alpha1.SeverityMedium, Impact: ImpactWork, Conditions: deJittered,
			Title:   "Memory is compacted in advance only as planned",
			Applies: "the plan sets vm.compaction_proactiveness",
			Why:     "Compaction moves pages of running programs and interrupts all CPUs to flush their address caches.",
			Reads:   []string{"/proc/sys/vm/compaction_proactiveness"},
			Fix:     "Set vm.compaction_proactiveness to the planned value.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/admin-guide/sysctl/vm.rst (compaction_proactiveness)",
			owns:    []string{"/proc/sys/vm/compaction_proactiveness"},
			run:     plannedSysctl("vm.compaction_proactiveness"),
		},
		{
			ID: "memory.swap", Severity: v1alpha1.SeverityHigh, Impact: ImpactSpeed, Conditions: deJittered,
			Title:  "There is no swap, or nothing is swapped out and the kernel hardly would",
			Why:    "A page that was swapped out costs its program milliseconds, and microseconds where it was compressed in memory.",
			Reads:  []string{settingSwaps, settingSwappiness},
			Fix:    "Switch swap off (swapoff -a, and in fstab, or mask the swap and zram-generator units); low vm.swappiness alone does not keep the kernel from swapping.",
			Reboot: v1alpha1.RebootNotRequired,
			Source: "kernel: Documentation/admin-guide/sysctl/vm.rst (swappiness); TuneD latency-performance",
			owns:   []string{settingSwaps, settingSwappiness},
			run:    swapIsUnused,
		},
	}
}

// writebackChecks ask what the kernel does when memory is short or full of what was written.
func writebackChecks() []Check {
	deJittered := []string{v1alpha1.ConditionDeJittered}
	return []Check{
		{
			ID: "memory.dirty-pages", Severity: v1alpha1.SeverityLow, Impact: ImpactNone, Conditions: deJittered,
			Title:   "Dirty pages are written back as planned",
			Applies: "the plan sets vm.dirty_*",
			Why:     "With many dirty pages, a program that writes a file waits until the kernel has written some of them.",
			Reads:   []string{"/proc/sys/vm/dirty_*"},
			Fix:     "Set the vm.dirty_ parameters to the planned values; a value in bytes and one as a ratio replace each other.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/admin-guide/sysctl/vm.rst (dirty_ratio, dirty_background_ratio)",
			owns:    []string{"/proc/sys/vm/dirty_*"},
			run:     dirtyPagesArePlanned,
		},
		{
			ID: "memory.zone-reclaim", Severity: v1alpha1.SeverityLow, Impact: ImpactSpeed, Conditions: deJittered,
			Title:   "The kernel takes memory of another NUMA node rather than free memory of the own one",
			Applies: "unless the plan sets vm.zone_reclaim_mode otherwise",
			Why:     "With zone reclaim, a program that asks for memory first waits while the kernel frees some on its NUMA node.",
			Reads:   []string{settingZoneReclaim},
			Fix:     "Set vm.zone_reclaim_mode to 0.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/admin-guide/sysctl/vm.rst (zone_reclaim_mode)",
			owns:    []string{settingZoneReclaim},
			run: func(s *state) verdict {
				want, planned := s.sysctl("vm.zone_reclaim_mode")
				if !planned {
					want = "0"
				}
				return s.settingIs(settingZoneReclaim, want)
			},
		},
	}
}

// samePageMergingIsOff accepts 0 (stopped, pages stay merged) and 2 (stopped and unmerged).
func samePageMergingIsOff(s *state) verdict {
	want, ok := s.sysfs(settingKSM)
	if !ok || want == "1" {
		return notApplicable()
	}
	merging := s.facts.Setting(settingKSM)
	if merging.Missing {
		return withoutSetting(settingKSM, want)
	}
	return judge(merging, want, func(found string) verdict {
		if shared, ok := s.facts.Setting(settingKSMShared).Get(); ok && found == "0" && shared != "0" {
			return failed(settingKSM+" is 0, and pages that were merged before stay so", found, want).about(finding.OfFiles(settingKSM))
		}
		if found == "0" || found == "2" {
			return passed(found)
		}
		return failed(fmt.Sprintf("%s is %s: pages of programs are merged", settingKSM, orNone(found)), found, want).
			about(finding.OfFiles(settingKSM))
	})
}

func dirtyPagesArePlanned(s *state) verdict {
	var verdicts []verdict
	for _, sysctl := range s.plan.Sysctls {
		if strings.HasPrefix(sysctl.Name, "vm.dirty_") {
			verdicts = append(verdicts, s.settingIs(host.SysctlPath(sysctl.Name), sysctl.Value))
		}
	}
	return worst(verdicts...)
}
