// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// Qualification is a measurement of a host that was within the budget.
type Qualification struct {
	// Then is what the host was when it was measured, and Now what it is, from the facts that the other checks judge.
	Then, Now v1alpha1.LatencyFingerprint
	// ManagementInterrupts is how many system management interrupts came while the measurement lasted; absent where nobody
	// counted them, with the reason.
	ManagementInterrupts host.Fact[uint64]
}

// checkManagementInterrupts is skipped where nobody has counted.
const checkManagementInterrupts = "firmware.smi"

// qualificationChecks are for qualification runs.
func qualificationChecks() []Check {
	deJittered := []string{v1alpha1.ConditionDeJittered}
	return []Check{
		{
			ID: checkManagementInterrupts, Severity: v1alpha1.SeverityCritical, Impact: ImpactWork, Conditions: deJittered, Qualification: true,
			Title:  "The firmware interrupted no CPU during the qualification run",
			Why:    "A system management interrupt stops all CPUs of the machine for tens to hundreds of microseconds, and the kernel does not see it.",
			Reads:  []string{"perf event msr/smi/, else MSR 0x34, of the measured CPUs in the qualification run (Intel)"},
			Fix:    "Look for patrol scrub, USB legacy emulation, power capping and error reporting in the firmware's options; ask the vendor for its low-latency guide.",
			Reboot: v1alpha1.RebootRequired,
			Source: "kernel: arch/x86/events/msr.c (PERF_MSR_SMI); Documentation/trace/hwlat_detector.rst",
			run:    firmwareKeepsStill,
		},
		{
			ID: "firmware.fingerprint", Severity: v1alpha1.SeverityHigh, Impact: ImpactNone, Conditions: deJittered, Qualification: true,
			Title:  "Kernel, microcode, firmware, mitigations and NICs are those of the qualification run",
			Why:    "What was measured holds for that machine only: a microcode or a firmware option can add microseconds.",
			Reads:  []string{"/proc/sys/kernel/osrelease", "/proc/cmdline", "/sys/devices/system/cpu/cpu0/microcode/version", "/sys/class/dmi/id/bios_version", "/sys/devices/system/cpu/vulnerabilities/*", "/sys/bus/pci/devices/*/driver", "/sys/bus/pci/devices/*/infiniband/*/fw_ver", "/sys/module/*/version"},
			Fix:    "Take back what was changed, or wait: the LatencyTest measures the node again by itself. Its status says what it waits for.",
			Reboot: v1alpha1.RebootNotRequired,
			Source: "kernel: Documentation/arch/x86/microcode.rst, Documentation/admin-guide/hw-vuln",
			run:    fingerprintIsQualified,
		},
	}
}

func firmwareKeepsStill(s *state) verdict {
	return judge(s.qualification.ManagementInterrupts, "none", func(seen uint64) verdict {
		if seen == 0 {
			return passed("none")
		}
		return failed(fmt.Sprintf("the firmware interrupted all CPUs %s during the qualification run", times(seen)), "some", "none")
	})
}

// fingerprintIsQualified compares as the operator does when it says that a result is stale. A part that the host has told then and
// does not tell now may have changed or not.
func fingerprintIsQualified(s *state) verdict {
	var changed, keys, missing []string
	for _, part := range qualification.HostChanges(s.qualification.Then, s.qualification.Now) {
		if part.Now == "" {
			missing = append(missing, part.Name)
			continue
		}
		changed, keys = append(changed, part.Words()), append(keys, part.Key)
	}
	const expected = "as qualified"
	switch {
	case len(changed) > 0:
		return failed("changed since the qualification run: "+strings.Join(changed, ", "), strings.Join(keys, ", "), expected)
	case len(missing) > 0:
		return unknown(strings.Join(missing, ", "), "the host no longer reports it", expected)
	}
	return passed(expected)
}
