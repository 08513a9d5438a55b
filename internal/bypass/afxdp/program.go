// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package afxdp

import (
	"encoding/binary"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// Offsets in struct xdp_md of include/uapi/linux/bpf.h.
const (
	contextData    = 0
	contextDataEnd = 4
	contextQueue   = 16
)

// xdpPass is XDP_PASS: the frame goes to the kernel.
const xdpPass = 2

// Labels in the program.
const (
	labelPass     = "pass"
	labelRedirect = "redirect"
	labelNetwork  = "network"
	labelIPv6     = "ipv6"
	labelPorts    = "ports"
)

// The registers that calls leave alone: the context, the frame and its end. scratch registers do not outlive a call.
const (
	registerContext = asm.R6
	registerFrame   = asm.R7
	registerEnd     = asm.R8
	registerType    = asm.R3
	registerPort    = asm.R4
	registerScratch = asm.R5
)

// loadProgram loads the XDP program that redirects the frames of each queue to the sockets in the map which queues
// holds for it. With ports, only UDP datagrams to one of them are redirected.
func loadProgram(queues *ebpf.Map, ports []int32) (*ebpf.Program, error) {
	return ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "ll_afxdp", Type: ebpf.XDP, License: "Apache-2.0", Instructions: instructions(queues.FD(), ports),
	})
}

func instructions(queues int, ports []int32) asm.Instructions {
	program := asm.Instructions{asm.Mov.Reg(registerContext, asm.R1)}
	if len(ports) > 0 {
		program = append(program, filter(ports)...)
	}
	return append(program, redirect(queues)...)
}

// redirect looks up the map of the queue and redirects into it. The lower bits of the flags are the verdict for a
// queue without a socket (since Linux 5.3).
func redirect(queues int) asm.Instructions {
	const key = -4
	return asm.Instructions{
		asm.LoadMem(asm.R2, registerContext, contextQueue, asm.Word).WithSymbol(labelRedirect),
		asm.StoreMem(asm.RFP, key, asm.R2, asm.Word),
		asm.LoadMapPtr(asm.R1, queues),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, key),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, labelPass),
		asm.Mov.Reg(asm.R1, asm.R0),
		asm.LoadMem(asm.R2, registerContext, contextQueue, asm.Word),
		asm.Mov.Imm(asm.R3, xdpPass),
		asm.FnRedirectMap.Call(),
		asm.Return(),
		asm.Mov.Imm(asm.R0, xdpPass).WithSymbol(labelPass),
		asm.Return(),
	}
}

// Numbers of Ethernet and IP, and offsets in the headers.
const (
	ethernetHeader = 14
	ethernetType   = 12
	tagLength      = 4

	typeIPv4       = 0x0800
	typeIPv6       = 0x86dd
	typeTag        = 0x8100
	typeServiceTag = 0x88a8
	protocolUDP    = 17
	udpHeader      = 8
	udpDestination = 2
	ipv4Header     = 20
	ipv4Begin      = 0x45
	ipv4Fragment   = 6
	ipv4Fragmented = 0x3fff
	ipv4Protocol   = 9
	ipv6Header     = 40
	ipv6NextHeader = 6
	lengthWithTag  = ethernetHeader + tagLength
)

// filter lets the frames through to redirect that are UDP datagrams to one of the ports, and the others to labelPass.
func filter(ports []int32) asm.Instructions {
	program := asm.Instructions{
		asm.LoadMem(registerFrame, registerContext, contextData, asm.Word),
		asm.LoadMem(registerEnd, registerContext, contextDataEnd, asm.Word),
	}
	program = append(program, within(lengthWithTag)...)
	program = append(program,
		asm.LoadMem(registerType, registerFrame, ethernetType, asm.Half),
		asm.JEq.Imm(registerType, network(typeTag), "tag"),
		asm.JNE.Imm(registerType, network(typeServiceTag), labelNetwork),
		asm.Add.Imm(registerFrame, tagLength).WithSymbol("tag"),
		asm.LoadMem(registerType, registerFrame, ethernetType, asm.Half),
		asm.Add.Imm(registerFrame, ethernetHeader).WithSymbol(labelNetwork),
		asm.JEq.Imm(registerType, network(typeIPv6), labelIPv6),
		asm.JNE.Imm(registerType, network(typeIPv4), labelPass),
	)
	program = append(program, within(ipv4Header+udpHeader)...)
	program = append(program,
		asm.LoadMem(registerScratch, registerFrame, 0, asm.Byte),
		asm.JNE.Imm(registerScratch, ipv4Begin, labelPass),
		asm.LoadMem(registerScratch, registerFrame, ipv4Fragment, asm.Half),
		asm.And.Imm(registerScratch, network(ipv4Fragmented)),
		asm.JNE.Imm(registerScratch, 0, labelPass),
		asm.LoadMem(registerScratch, registerFrame, ipv4Protocol, asm.Byte),
		asm.JNE.Imm(registerScratch, protocolUDP, labelPass),
		asm.LoadMem(registerPort, registerFrame, ipv4Header+udpDestination, asm.Half),
		asm.Ja.Label(labelPorts),
	)
	ipv6 := within(ipv6Header + udpHeader)
	ipv6[0] = ipv6[0].WithSymbol(labelIPv6)
	program = append(program, ipv6...)
	program = append(program,
		asm.LoadMem(registerScratch, registerFrame, ipv6NextHeader, asm.Byte),
		asm.JNE.Imm(registerScratch, protocolUDP, labelPass),
		asm.LoadMem(registerPort, registerFrame, ipv6Header+udpDestination, asm.Half),
	)
	return append(program, matches(ports)...)
}

// within goes on for a frame that has as many bytes, as the verifier demands before they are read.
func within(length int32) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(registerScratch, registerFrame),
		asm.Add.Imm(registerScratch, length),
		asm.JGT.Reg(registerScratch, registerEnd, labelPass),
	}
}

func matches(ports []int32) asm.Instructions {
	var program asm.Instructions
	for _, port := range ports {
		program = append(program, asm.JEq.Imm(registerPort, network(uint16(port)), labelRedirect))
	}
	program[0] = program[0].WithSymbol(labelPorts)
	return append(program, asm.Ja.Label(labelPass))
}

// network is a number of a header as a load of this machine reads it.
func network(number uint16) int32 {
	return int32(binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, number)))
}
