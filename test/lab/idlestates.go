// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package lab

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Exit latencies of the idle states that an ACPI table describes, in microseconds: those of a Xeon's C1 and C6.
const (
	shallowExit = 2
	deepExit    = 133
)

// idleTable is the body of a secondary ACPI table (SSDT) by which the kernel's acpi_idle driver offers two idle states on
// each of the CPUs. An emulated processor has none: intel_idle wants sub-states of MWAIT, which QEMU does not emulate. The
// kernel enters both by halting, as it does with every state of type C1 that is no MWAIT state (drivers/acpi/processor_idle.c);
// what differs is how long they claim to take to leave, by which the governor chooses.
//
// QEMU calls its processors \_SB.CPUS.C000 and so on. The encoding is that of chapter 20 of the ACPI specification, the
// object _CST that of its section 8.4.1.1.
func idleTable(cpus int) []byte {
	const packageOp, nameOp, scopeOp, byteOp = 0x12, 0x08, 0x10, 0x0a
	states := sized(packageOp, slices.Concat([]byte{3, byteOp, 2}, idleState(shallowExit), idleState(deepExit)))
	object := slices.Concat([]byte{nameOp}, []byte("_CST"), states)
	const room = 96
	table := make([]byte, 0, room*cpus)
	for cpu := range cpus {
		// A path from the root of three names.
		path := slices.Concat([]byte{'\\', 0x2f, 3}, []byte("_SB_CPUS"), fmt.Appendf(nil, "C%03X", cpu))
		table = append(table, sized(scopeOp, append(path, object...))...)
	}
	return table
}

// idleState is one state of a _CST: its register, its type C1, its exit latency and its power, which the kernel ignores.
func idleState(exit uint16) []byte {
	const packageOp, bufferOp, byteOp, wordOp = 0x12, 0x11, 0x0a, 0x0b
	// A generic register in the address space of the processor, of no width and at no place, and the end of the resources.
	register := []byte{0x82, 12, 0, 0x7f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x79, 0}
	buffer := sized(bufferOp, append([]byte{byteOp, byte(len(register))}, register...))
	latency := binary.LittleEndian.AppendUint16([]byte{wordOp}, exit)
	return sized(packageOp, slices.Concat([]byte{4}, buffer, []byte{byteOp, 1}, latency, []byte{byteOp, 100}))
}

// sized puts an operator and the length of the package before its content. The length counts its own two bytes: four bits
// of it are in the first, which says that one follows.
func sized(operator byte, content []byte) []byte {
	const own = 2
	length := len(content) + own
	return slices.Concat([]byte{operator, 1<<6 | byte(length&0xf), byte(length >> 4)}, content)
}
