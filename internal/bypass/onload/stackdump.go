// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package onload reads what Onload's own tools say about its stacks, and judges from it whether the program of a
// container is accelerated. It is pure.
//
// Onload fails open: without the right files, a free virtual interface or a filter in the NIC, a program runs on kernel
// sockets and ends with exit code 0, and even a program with a stack may receive through the kernel. Only the counters
// of the stack tell. They are in memory that the kernel module shares with processes that have its device file, and
// the tool that reads them must be of the module's own build: so it runs in the container, and this package reads its
// output. The output is that of whatever stands under the tool's name in an image, so it is bounded and trusted no
// further than any other input.
package onload

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// MaximumBytes bounds the output of onload_stackdump lots, in bytes. A stack has some 14 kilobytes of it, and each
	// socket one more.
	MaximumBytes = 16 << 20
	// maximumStacks is how many stacks a kernel module may have at all (efab_tcp_helper_get_info of
	// src/lib/efthrm/tcp_helper_ioctl.c).
	maximumStacks = 10000
	// maximumSockets bounds the sockets of one stack: EF_MAX_ENDPOINTS is 8192 unless somebody raises it.
	maximumSockets = 1 << 16
	// maximumProcesses bounds the processes of one stack.
	maximumProcesses = 4096
)

// Stack is one stack of Onload, as onload_stackdump lots prints it (stack_lots of src/tools/ip/libstack.c). What the
// text does not say is nil, and never 0.
type Stack struct {
	ID int
	// Name is what EF_NAME or the program calls the stack; "" for most.
	Name string
	// PIDs are the processes that have the stack open, of those that the tool can see: it looks through /proc, so in a
	// container they are the container's own, with the numbers they have there. Stacks are shown whoever has them.
	PIDs []int
	// Namespace is the number of the network namespace of the stack: 4026531840 of net:[4026531840].
	Namespace *uint64
	// InterfaceVersion is the checksum of the interface between module and user library (uk_intf_ver) of the tool, which
	// the module has accepted.
	InterfaceVersion *string
	Counters
	Sockets []Socket
}

// Counters are those counters of a stack that tell user level from kernel. Those of UDP are sums over the sockets that
// are open now (get_more_stats of src/include/ci/internal/more_stats.h), the others count since the stack exists
// (src/include/ci/internal/stats_def.h).
type Counters struct {
	// UDPReceivedUser and UDPReceivedKernel are datagrams that the sockets received at user level, and through the
	// kernel: udp_tot_recv_pkts_ul and udp_tot_recv_pkts_os.
	UDPReceivedUser, UDPReceivedKernel *uint64
	// UDPSentUser and UDPSentKernel are datagrams that were sent: udp_tot_send_pkts_ul and udp_tot_send_pkts_os. A few
	// through the kernel are normal, because it looks for the neighbour.
	UDPSentUser, UDPSentKernel *uint64
	// TCPAcceptedUser and TCPAcceptedKernel are connections that were accepted at user level, and those that came in
	// through an interface that is not accelerated: ul_accepts and tcp_accept_os.
	TCPAcceptedUser, TCPAcceptedKernel *uint64
	// HandedToKernel are sockets that Onload gave up, and that the kernel serves: the sum of Handovers.
	HandedToKernel *uint64
	// Handovers are the counters tcp_handover_… and udp_handover_… that are not 0, one for each call by which a socket is given
	// up, in the order of the text.
	Handovers []Handover
}

// Handover counts the sockets that one call gave to the kernel.
type Handover struct {
	// Counter is its name with Onload: tcp_handover_connect.
	Counter string
	Sockets uint64
}

// Socket is one socket of a stack.
type Socket struct {
	// Protocol is UDP or TCP.
	Protocol string
	// Local is the address and port that the socket is bound to, as printed: 192.168.7.1:5001.
	Local string
	// ReceivedUser are the datagrams, or segments of TCP, that were received at user level ("rcv: … tot_pkts=").
	ReceivedUser *uint64
	// ReceivedKernel are the datagrams that came through the kernel, and KernelPercent what part of all that is, rounded
	// down ("rcv: os=997(100%)"). TCP has neither: a connection is in the stack as a whole, or not at all.
	ReceivedKernel *uint64
	KernelPercent  *int
	// IsListening means that the socket of TCP waits for connections.
	IsListening bool
	// AcceptedKernel are connections that such a socket got through an interface that is not accelerated ("os=1" behind
	// "a_no_fd="): the kernel serves them.
	AcceptedKernel *uint64
}

// ParseStackdump reads what onload_stackdump lots prints: one stack after the other, and nothing when there is none.
// Text that begins otherwise, numbers that are none and more than a kernel module can have are errors. Lines that say
// nothing of what Stack holds are passed over: releases add and drop some.
func ParseStackdump(text string) ([]Stack, error) {
	if len(text) > MaximumBytes {
		return nil, fmt.Errorf("the output has more than %d bytes", MaximumBytes)
	}
	var p parser
	number := 0
	for line := range strings.Lines(text) {
		number++
		if err := p.line(strings.TrimRight(line, "\r\n")); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	return p.stacks, nil
}

// parser holds what was read up to a line.
type parser struct {
	stacks []Stack
	// inSocket means that lines belong to the last socket of the last stack.
	inSocket bool
	// listing means that the line before ended in the midst of PIDs.
	listing bool
}

// line takes in one line.
func (p *parser) line(line string) error {
	continues := p.listing
	p.listing = false
	if rest, ok := strings.CutPrefix(line, "ci_netif_dump_to_logger: stack="); ok {
		return p.startStack(rest)
	}
	switch {
	case len(p.stacks) == 0:
		return beforeStacks(line)
	case continues && strings.HasPrefix(line, " "):
		return p.processes(line)
	case strings.HasPrefix(line, "pids:"):
		return p.processes(line[len("pids:"):])
	case strings.HasPrefix(line, "UDP ") || strings.HasPrefix(line, "TCP "):
		return p.startSocket(line)
	case strings.HasPrefix(line, "---"):
		p.inSocket = false
		return nil
	case p.inSocket:
		return p.socketLine(strings.TrimSpace(line))
	default:
		return p.stackLine(line)
	}
}

// beforeStacks takes what comes before the first stack: nothing that says something.
func beforeStacks(line string) error {
	if strings.Trim(line, "= ") != "" {
		return fmt.Errorf("%s is not what onload_stackdump prints", quote(line))
	}
	return nil
}

// startStack reads "4 name=feed", the rest of a stack's first line.
func (p *parser) startStack(rest string) error {
	id, name, named := strings.Cut(rest, " name=")
	number, err := integer(id, maximumStacks)
	if err != nil || !named {
		return fmt.Errorf("%s names no stack", quote(rest))
	}
	if name, err = printable(name); err != nil {
		return err
	}
	if slices.ContainsFunc(p.stacks, func(s Stack) bool { return s.ID == number }) {
		return fmt.Errorf("stack %d comes twice", number)
	}
	p.stacks = append(p.stacks, Stack{ID: number, Name: name})
	p.inSocket = false
	return nil
}

// processes reads "1104,1105", or the part of it that has room on one line.
func (p *parser) processes(list string) error {
	stack := p.last()
	list = strings.TrimSpace(list)
	p.listing = strings.HasSuffix(list, ",")
	for pid := range strings.SplitSeq(strings.TrimSuffix(list, ","), ",") {
		if pid == "" {
			continue
		}
		number, err := integer(pid, maximumPID)
		if err != nil {
			return fmt.Errorf("a process of stack %d: %w", stack.ID, err)
		}
		if len(stack.PIDs) == maximumProcesses {
			return fmt.Errorf("stack %d has more than %d processes", stack.ID, maximumProcesses)
		}
		stack.PIDs = append(stack.PIDs, number)
	}
	return nil
}

// stackLine reads a line about a stack.
func (p *parser) stackLine(line string) error {
	stack := p.last()
	trimmed := strings.TrimSpace(line)
	if number, ok := strings.CutPrefix(trimmed, "namespace=net:["); ok {
		return set(&stack.Namespace, strings.TrimSuffix(number, "]"))
	}
	if version, ok := strings.CutPrefix(trimmed, "uk_intf_ver="); ok {
		return stack.setInterface(version)
	}
	name, value, ok := strings.Cut(line, ": ")
	if !ok {
		return nil
	}
	if counter := stack.counter(name); counter != nil {
		return set(counter, value)
	}
	if isHandover(name) {
		return stack.addHandover(name, value)
	}
	return nil
}

// startSocket reads "UDP 0:2047 lcl=192.168.7.1:5001 rmt=0.0.0.0:0 UDP".
func (p *parser) startSocket(line string) error {
	stack := p.last()
	fields := strings.Fields(line)
	if len(fields) < 3 || !strings.HasPrefix(fields[1], fmt.Sprintf("%d:", stack.ID)) {
		return fmt.Errorf("%s names no socket of stack %d", quote(line), stack.ID)
	}
	local, ok := strings.CutPrefix(fields[2], "lcl=")
	if !ok {
		return fmt.Errorf("%s names no local address", quote(line))
	}
	local, err := printable(local)
	if err != nil {
		return err
	}
	if len(stack.Sockets) == maximumSockets {
		return fmt.Errorf("stack %d has more than %d sockets", stack.ID, maximumSockets)
	}
	isListening := fields[0] == protocolTCP && slices.Contains(fields[3:], "LISTEN")
	stack.Sockets = append(stack.Sockets, Socket{Protocol: fields[0], Local: local, IsListening: isListening})
	p.inSocket = true
	return nil
}

// socketLine reads a line about a socket.
func (p *parser) socketLine(line string) error {
	stack := p.last()
	socket := &stack.Sockets[len(stack.Sockets)-1]
	if socket.IsListening && strings.HasPrefix(line, "a_loop2_closed=") {
		return socket.setAccepted(line)
	}
	rest, ok := strings.CutPrefix(line, "rcv: ")
	if !ok {
		return nil
	}
	if kernel, ok := strings.CutPrefix(rest, "os="); ok {
		return socket.setKernel(kernel)
	}
	for field := range strings.FieldsSeq(rest) {
		if value, ok := strings.CutPrefix(field, "tot_pkts="); ok {
			return socket.setUser(value)
		}
	}
	return nil
}

func (p *parser) last() *Stack { return &p.stacks[len(p.stacks)-1] }
