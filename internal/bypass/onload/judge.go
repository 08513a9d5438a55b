// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package onload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

const (
	protocolUDP = "UDP"
	protocolTCP = "TCP"
)

// State says in one word whether the program of a container is accelerated.
type State string

const (
	// Accelerated means that the program has a stack, that packets came by it, and that none came through the kernel.
	Accelerated State = "Accelerated"
	// ReceivesThroughKernel means that the program has a stack, and that packets came through the kernel all the same.
	ReceivesThroughKernel State = "ReceivesThroughKernel"
	// NoStack means that no process of the container has a stack: all its sockets are those of the kernel.
	NoStack State = "NoStack"
	// Idle means that the program has a stack that has received nothing yet.
	Idle State = "Idle"
	// Unknown means that the counters could not be read.
	Unknown State = "Unknown"
	// NotApplicable means that the program does not use Onload.
	NotApplicable State = "NotApplicable"
)

// Verdict is what is known about the program of one container.
type Verdict struct {
	State State
	// Message is one sentence: what was found, and the way out where it is not what the container is for.
	Message string
	// Stacks are those of the container's processes.
	Stacks []Stack
}

// IsUnaccelerated tells what is certain: the program uses the kernel's network stack.
func (s State) IsUnaccelerated() bool { return s == ReceivesThroughKernel || s == NoStack }

// Unread is the verdict on counters that could not be read, for a reason that is a sentence with the way out.
func Unread(reason string) Verdict { return Verdict{State: Unknown, Message: reason} }

// NeedsNamespace reports whether the stacks alone do not say whose they are: the tool found no process for any of them.
func NeedsNamespace(stacks []Stack) bool {
	return len(stacks) > 0 && len(ownStacks(stacks)) == 0
}

// Judge says whether the program of a container is accelerated, from the stacks that the tool sees there. It sees
// those of the whole node that its user may see; the container's are those with a process that it finds in the
// container's /proc. Where it finds none, a stack in another network namespace than the container's own is surely
// somebody else's; own is nil when that namespace is not known.
func Judge(stacks []Stack, own *uint64) Verdict {
	mine := ownStacks(stacks)
	switch foreign := foreignStacks(stacks, own); {
	case len(mine) > 0:
		return judgeCounters(mine)
	case len(foreign) < len(stacks):
		return unattributed(stacks, own)
	}
	return Verdict{State: NoStack, Message: "no process of the container has a stack of Onload, so its sockets, if it has any, are those of " +
		"the kernel; see that LD_PRELOAD names libonload.so or that the program is started with onload, and set EF_NO_FAIL to 0, so " +
		"that a socket that cannot be accelerated is an error"}
}

// unattributed is the verdict when a stack may be the container's or not.
func unattributed(stacks []Stack, own *uint64) Verdict {
	if own == nil {
		return Unread("onload_stackdump sees stacks of the node and no process that has one open, and whose they are is not known without " +
			"the container's network namespace; add readlink (coreutils or busybox) to the image")
	}
	at := slices.IndexFunc(stacks, func(s Stack) bool { return !isForeign(s, own) })
	return Unread(fmt.Sprintf("onload_stackdump sees stack %d, and not which process has it open; see that containers run as the user "+
		"that their program changes to, if it does, and that the pod does not use the network of the node", stacks[at].ID))
}

func ownStacks(stacks []Stack) []Stack {
	return filter(stacks, func(s Stack) bool { return len(s.PIDs) > 0 })
}

func foreignStacks(stacks []Stack, own *uint64) []Stack {
	return filter(stacks, func(s Stack) bool { return isForeign(s, own) })
}

func isForeign(s Stack, own *uint64) bool {
	return len(s.PIDs) == 0 && own != nil && s.Namespace != nil && *s.Namespace != *own
}

func filter(stacks []Stack, keep func(Stack) bool) []Stack {
	var kept []Stack
	for _, stack := range stacks {
		if keep(stack) {
			kept = append(kept, stack)
		}
	}
	return kept
}

// judgeCounters judges the stacks of one container together.
func judgeCounters(stacks []Stack) Verdict {
	total := sum(stacks)
	verdict := Verdict{Stacks: stacks}
	switch {
	case total.kernel > 0:
		verdict.State = ReceivesThroughKernel
		verdict.Message = fmt.Sprintf("%d of %d datagrams came through the kernel%s; see that the socket is bound to an address of the pool's "+
			"NIC and that the NIC takes the filter (the kernel's log names one that it does not), and with Onload on AF_XDP that the "+
			"NIC has one channel (ethtool -L INTERFACE combined 1)", total.kernel, total.kernel+total.user, busiest(stacks))
	case total.accepted > 0:
		verdict.State = ReceivesThroughKernel
		verdict.Message = fmt.Sprintf("%s came in through an interface that is not accelerated; see that peers connect to an address of the "+
			"pool's NIC", plural(total.accepted, "connection of TCP", "connections of TCP"))
	case total.user > 0 || total.segments > 0 || total.connections > 0:
		verdict.State = Accelerated
		verdict.Message = fmt.Sprintf("%s, %s and %s came at user level, and none through the kernel",
			plural(total.user, "datagram", "datagrams"), plural(total.segments, "segment of TCP", "segments of TCP"),
			plural(total.connections, "accepted connection", "accepted connections"))
	case !total.isKnown:
		verdict.State = Unknown
		verdict.Message = "the output of onload_stackdump lots does not say what a stack received; see that it is whole"
	default:
		verdict.State = Idle
		verdict.Message = "nothing was received by now; ask again when traffic flows" + handed(total.handed)
	}
	return verdict
}

// received is what some stacks received.
type received struct {
	// user and kernel are datagrams; segments are those of open connections of TCP; connections and accepted are those
	// that were accepted at user level and through the kernel; handed are sockets that the kernel serves now.
	user, kernel, segments, connections, accepted, handed uint64
	// isKnown means that no stack lacks a counter of datagrams.
	isKnown bool
}

func sum(stacks []Stack) received {
	total := received{isKnown: true}
	for _, stack := range stacks {
		user, kernel := stack.UDPReceived()
		total.isKnown = total.isKnown && user != nil && kernel != nil
		total.user += value(user)
		total.kernel += value(kernel)
		total.connections += value(stack.TCPAcceptedUser)
		total.accepted += value(stack.TCPAcceptedKernel)
		total.handed += value(stack.HandedToKernel)
		for _, socket := range stack.Sockets {
			if socket.Protocol == protocolTCP {
				total.segments += value(socket.ReceivedUser)
			}
		}
	}
	return total
}

// UDPReceived are the datagrams that the stack's sockets received at user level and through the kernel: the larger of
// the stack's counter and the sum over its sockets, because the latter has the datagrams of the kernel that took a
// longer way there, too (os_slow), and an output may end before the former. Nil when neither is known.
func (s Stack) UDPReceived() (user, kernel *uint64) {
	user, kernel = s.UDPReceivedUser, s.UDPReceivedKernel
	var ofSockets received
	sockets := 0
	for _, socket := range s.Sockets {
		if socket.Protocol != protocolUDP {
			continue
		}
		if socket.ReceivedUser == nil || socket.ReceivedKernel == nil {
			return user, kernel
		}
		sockets++
		ofSockets.user += *socket.ReceivedUser
		ofSockets.kernel += *socket.ReceivedKernel
	}
	if sockets == 0 {
		return user, kernel
	}
	return larger(user, ofSockets.user), larger(kernel, ofSockets.kernel)
}

func larger(counter *uint64, count uint64) *uint64 {
	if counter != nil && *counter > count {
		return counter
	}
	return &count
}

// busiest names the sockets that received most through the kernel: a program has sockets that nobody wants
// accelerated, such as those that ask for names.
func busiest(stacks []Stack) string {
	var through []Socket
	for _, stack := range stacks {
		for _, socket := range stack.Sockets {
			if value(socket.ReceivedKernel) > 0 {
				through = append(through, socket)
			}
		}
	}
	slices.SortStableFunc(through, func(a, b Socket) int { return cmp.Compare(*b.ReceivedKernel, *a.ReceivedKernel) })
	const shown = 3
	names := make([]string, 0, shown)
	for _, socket := range through[:min(shown, len(through))] {
		names = append(names, fmt.Sprintf("%d to %s", *socket.ReceivedKernel, socket.Local))
	}
	if len(names) == 0 {
		return ""
	}
	if more := len(through) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more sockets", more))
	}
	return " (" + strings.Join(names, ", ") + ")"
}

func handed(sockets uint64) string {
	if sockets == 0 {
		return ""
	}
	return fmt.Sprintf("; Onload has handed %s to the kernel, as it does with one that is bound or connected to an address that "+
		"no accelerated NIC has", plural(sockets, "socket", "sockets"))
}

func plural(count uint64, one, many string) string {
	if count == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", count, many)
}

func value(counter *uint64) uint64 {
	if counter == nil {
		return 0
	}
	return *counter
}

// NotUsed is the verdict on a program of another stack than Onload: it has no kernel socket to fall back to.
func NotUsed(stack string) Verdict {
	return Verdict{State: NotApplicable, Message: "a program on " + stack + " has no kernel socket to fall back to: without the NIC it fails at start"}
}
