// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package jitter

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// smiEventName is how messages name the event by which the kernel counts system management interrupts (arch/x86/events/msr.c, PERF_MSR_SMI).
const smiEventName = "perf event msr/smi/"

// msrSMICount is the register in which processors of Intel count system management interrupts (MSR_SMI_COUNT of arch/x86/include/asm/msr-index.h).
const msrSMICount = 0x34

// smiProcessor says why a processor counts no system management interrupts, and why its zero is none: "" when it is.
func smiProcessor(all []procfs.CPUInfo) (virtualMachine string, err error) {
	if len(all) == 0 || all[0].VendorID != "GenuineIntel" {
		return "", errors.New("only processors of Intel count them, and this is none")
	}
	if slices.Contains(all[0].Flags, "hypervisor") {
		return "this is a virtual machine, which does not see those of the machine below", nil
	}
	return "", nil
}

// parseSMIEvent reads the files type and events/smi of the kernel's PMU msr, such as 11 and event=0x04.
func parseSMIEvent(kind, event string) (pmu uint32, config uint64, err error) {
	number, err := strconv.ParseUint(strings.TrimSpace(kind), 10, 32)
	if err != nil {
		return 0, 0, fmt.Errorf("%s: its type is %q", smiEventName, strings.TrimSpace(kind))
	}
	hex, found := strings.CutPrefix(strings.TrimSpace(event), "event=0x")
	config, err = strconv.ParseUint(hex, 16, 64)
	if !found || err != nil {
		return 0, 0, fmt.Errorf("%s: it is %q", smiEventName, strings.TrimSpace(event))
	}
	return uint32(number), config, nil
}
