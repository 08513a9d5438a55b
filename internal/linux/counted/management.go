// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package counted

// ManagementInterrupts is how often the firmware took a CPU away from the kernel (system management interrupt, SMI) while something was
// measured there. The kernel does not see one; processors of Intel count them.
type ManagementInterrupts struct {
	Count uint64 `json:"count"`
	// From is what counted them: the perf event msr/smi/, or MSR 0x34; "" when nothing did.
	From string `json:"from,omitempty"`
	// Unknown says why nobody knows how many there were; "" when the count is true.
	Unknown string `json:"unknown,omitempty"`
}

// ManagementInterruptsBetween is what two readings of a counter say. A virtual machine may be stopped by the firmware of the machine below it
// and count nothing: a zero there is no zero.
func ManagementInterruptsBetween(before, after uint64, from, virtualMachine string) ManagementInterrupts {
	switch {
	case after < before:
		return ManagementInterrupts{From: from, Unknown: from + ": the counter went back"}
	case after == before && virtualMachine != "":
		return ManagementInterrupts{From: from, Unknown: from + " counted none, and " + virtualMachine}
	}
	return ManagementInterrupts{Count: after - before, From: from}
}

// Firmware is a system management interrupt that the processor counted.
const Firmware Kind = "Firmware"

// Firmwares are interruptions by the firmware.
func Firmwares(count uint64) Event {
	return Event{Firmware, "SMI (system management interrupt)", count}
}
