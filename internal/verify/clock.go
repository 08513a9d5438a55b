// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
)

const (
	settingClocksource  = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
	settingClocksources = "/sys/devices/system/clocksource/clocksource0/available_clocksource"
)

// clockChecks ask what reading the time costs.
func clockChecks() []Check {
	deJittered := []string{v1alpha1.ConditionDeJittered}
	return []Check{
		{
			ID: "clock.source", Severity: v1alpha1.SeverityCritical, Impact: ImpactSpeed, Conditions: deJittered,
			Title:  "The clock is read from a processor register",
			Why:    "Reading hpet or acpi_pm takes a microsecond and a system call; reading tsc or arch_sys_counter takes 20 ns.",
			Reads:  []string{settingClocksource},
			Fix:    "See the kernel's log for why it left the fast clock. On amd64 boot with tsc=reliable if the firmware's TSC is sound; on arm64 look at what the firmware says of the timer.",
			Reboot: v1alpha1.RebootRequired,
			Source: "kernel: Documentation/timers/timekeeping.rst, Documentation/virt/kvm/x86/timekeeping.rst",
			run:    clocksourceIsFast,
		},
		{
			ID: "clock.tsc", Severity: v1alpha1.SeverityCritical, Impact: ImpactSpeed, Conditions: deJittered,
			Title:   "The time-stamp counter runs at a constant rate and in all idle states",
			Applies: "amd64, unless a paravirtual clock is in use and the plan does not ask for the TSC",
			Why:     "A counter that stops or changes its rate makes the kernel fall back to a slow clock, and tickless CPUs keep their tick.",
			Reads:   []string{"/proc/cpuinfo (flags constant_tsc, nonstop_tsc)", settingClocksources},
			Fix:     "Use hardware with an invariant TSC; in a virtual machine, let the hypervisor pass the flag on.",
			Reboot:  v1alpha1.RebootRequired,
			Source:  "kernel: arch/x86/kernel/cpu/{intel,amd}.c; kernel/time/tick-sched.c (a stable TSC is needed for nohz_full)",
			run:     tscIsInvariant,
		},
	}
}

// reliableTSCPlanned reports whether the plan asks for the time-stamp counter.
func (s *state) reliableTSCPlanned() bool { return s.planned.Contains("tsc=reliable") }

// paravirtualClocks are clocksources that a hypervisor offers and programs read without a system call.
func paravirtualClocks() []string { return []string{"kvm-clock", "hyperv_clocksource_tsc_page"} }

// fastClocks are the clocksources that the plan accepts: the architecture's register, and in a virtual
// machine those of the hypervisor unless the plan asks for the TSC.
func (s *state) fastClocks() []string {
	if s.plan.Architecture == "arm64" {
		return []string{"arch_sys_counter"}
	}
	if s.hypervisor() != "" && !s.reliableTSCPlanned() {
		return append([]string{"tsc"}, paravirtualClocks()...)
	}
	return []string{"tsc"}
}

func clocksourceIsFast(s *state) verdict {
	accepted := s.fastClocks()
	expected := strings.Join(accepted, " or ")
	return judge(s.facts.Setting(settingClocksource), expected, func(found string) verdict {
		if slices.Contains(accepted, found) {
			return passed(found)
		}
		slow := failed(fmt.Sprintf("the kernel keeps time with %s, not %s", orNone(found), expected), found, expected).
			about(finding.OfFiles(settingClocksource))
		if s.hypervisor() != "" {
			slow.fix = passCounterOn
		}
		return slow
	})
}

func tscIsInvariant(s *state) verdict {
	clock, _ := s.facts.Setting(settingClocksource).Get()
	if s.plan.Architecture == "arm64" || !s.reliableTSCPlanned() && slices.Contains(paravirtualClocks(), clock) {
		return notApplicable()
	}
	wanted := []string{"constant_tsc", "nonstop_tsc"}
	expected := strings.Join(wanted, " and ")
	return judge(s.facts.Processor.Flags, expected, func(flags []string) verdict {
		missing := slices.DeleteFunc(slices.Clone(wanted), func(flag string) bool { return slices.Contains(flags, flag) })
		if len(missing) == 0 {
			return s.tscIsTrusted(clock, expected)
		}
		text := strings.Join(missing, " and ")
		if by := s.hypervisor(); by != "" {
			found := failed(fmt.Sprintf("the virtual machine lacks %s: its hypervisor (%s) does not pass an invariant counter on", text, by), "no "+text, expected)
			found.fix = passCounterOn
			return found
		}
		return failed("the processor lacks "+text, "no "+text, expected)
	})
}

// passCounterOn is what to do about a virtual machine without a stable time-stamp counter.
const passCounterOn = "Let the hypervisor pass an invariant time-stamp counter on (of KVM: processor model host-passthrough with the feature invtsc), " +
	"or set spec.kernel.clocksource to Kept and read the hypervisor's own clock."

// hypervisor names what runs the host as a virtual machine; "" on hardware and where nobody tells.
func (s *state) hypervisor() string { return s.facts.Processor.Hypervisor.Value }

// tscIsTrusted: a counter that the kernel found unstable is no longer among the clocks that it offers.
func (s *state) tscIsTrusted(clock, expected string) verdict {
	offered, ok := s.facts.Setting(settingClocksources).Get()
	if ok && clock != "tsc" && !slices.Contains(strings.Fields(offered), "tsc") {
		found := failed("the kernel found the time-stamp counter unstable: it offers "+orNone(offered)+" only", offered, expected)
		if s.hypervisor() != "" {
			found.fix = passCounterOn
		}
		return found
	}
	return passed(expected)
}
