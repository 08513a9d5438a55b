// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// Qualification is what a qualification run on a host measured.
type Qualification struct {
	// Fingerprint of the host when it was qualified.
	Fingerprint Fingerprint
	// ManagementInterrupts is how many system management interrupts came while the run lasted; absent where the
	// processor does not count them.
	ManagementInterrupts host.Fact[uint64]
}

// Fingerprint is what decides about the latency of a host and changes only with its kernel, firmware or hardware. A
// part that the host does not report is "".
type Fingerprint struct {
	Kernel, CommandLine, Microcode, Firmware, Mitigations, NICs string
}

// FingerprintOf returns the fingerprint of a host.
func FingerprintOf(facts *host.Facts) Fingerprint {
	const vulnerabilities = "/sys/devices/system/cpu/vulnerabilities/"
	var mitigations []string
	nics := make([]string, 0, len(facts.NICs))
	for _, file := range slices.Sorted(maps.Keys(facts.Settings)) {
		if name, ok := strings.CutPrefix(file, vulnerabilities); ok {
			mitigations = append(mitigations, name+": "+facts.Settings[file].Value)
		}
	}
	for i := range facts.NICs {
		nic := &facts.NICs[i]
		nics = append(nics, fmt.Sprintf("%s %s:%s %s", nic.PCIAddress, nic.Vendor.Value, nic.Device.Value, nic.Driver.Value))
	}
	return Fingerprint{
		Kernel: facts.Kernel.Release.Value, CommandLine: facts.Kernel.CommandLine.Value, Microcode: facts.Processor.Microcode.Value,
		Firmware:    strings.TrimSpace(facts.Firmware.Vendor.Value + " " + facts.Firmware.BIOSVersion.Value),
		Mitigations: strings.Join(mitigations, "; "), NICs: strings.Join(nics, "; "),
	}
}

// qualificationChecks are for qualification runs.
func qualificationChecks() []Check {
	deJittered := []string{v1alpha1.ConditionDeJittered}
	return []Check{
		{
			ID: "firmware.smi", Severity: v1alpha1.SeverityCritical, Impact: ImpactWork, Conditions: deJittered, Qualification: true,
			Title:  "The firmware interrupted no CPU during the qualification run",
			Why:    "A system management interrupt stops all CPUs of the machine for tens to hundreds of microseconds, and the kernel does not see it.",
			Reads:  []string{"perf event msr/smi/ of the qualification run (Intel; no other source leaves isolated CPUs alone)"},
			Fix:    "Look for patrol scrub, USB legacy emulation, power capping and error reporting in the firmware's options; ask the vendor for its low-latency guide.",
			Reboot: v1alpha1.RebootRequired,
			Source: "kernel: arch/x86/events/msr.c (PERF_MSR_SMI); Documentation/trace/hwlat_detector.rst",
			run:    firmwareKeepsStill,
		},
		{
			ID: "firmware.fingerprint", Severity: v1alpha1.SeverityHigh, Impact: ImpactNone, Conditions: deJittered, Qualification: true,
			Title:  "Kernel, microcode, firmware, mitigations and NICs are those of the qualification run",
			Why:    "What was measured holds for that machine only: a microcode or a firmware option can add microseconds.",
			Reads:  []string{"/proc/sys/kernel/osrelease", "/proc/cmdline", "/sys/devices/system/cpu/cpu0/microcode/version", "/sys/class/dmi/id/bios_version", "/sys/devices/system/cpu/vulnerabilities/*", "/sys/bus/pci/devices/*/driver"},
			Fix:    "Qualify the node again.",
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

// fingerprintIsQualified names the parts that differ, not their values: a command line fills a page.
func fingerprintIsQualified(s *state) verdict {
	now, then := FingerprintOf(s.facts), s.qualification.Fingerprint
	var changed, missing []string
	for _, part := range []struct{ name, now, then string }{
		{"kernel", now.Kernel, then.Kernel}, {"command line", now.CommandLine, then.CommandLine},
		{"microcode", now.Microcode, then.Microcode}, {"firmware", now.Firmware, then.Firmware},
		{"mitigations", now.Mitigations, then.Mitigations}, {"NICs", now.NICs, then.NICs},
	} {
		switch {
		case part.now != part.then && part.now != "":
			changed = append(changed, part.name)
		case part.now != part.then:
			missing = append(missing, part.name)
		}
	}
	const expected = "as qualified"
	switch {
	case len(changed) > 0:
		return failed("changed since the qualification run: "+strings.Join(changed, ", "), strings.Join(changed, ", "), expected)
	case len(missing) > 0:
		return unknown(strings.Join(missing, ", "), "the host no longer reports it", expected)
	}
	return passed(expected)
}
