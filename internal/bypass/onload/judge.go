// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package onload

import (
	"cmp"
	"fmt"
	"maps"
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
	// Accelerated means that the program has a stack, that packets came by it, and that none came to its sockets through the
	// kernel. It may have sockets beside them that the kernel serves alone.
	Accelerated State = "Accelerated"
	// ReceivesThroughKernel means that the program has a stack, and that packets came through the kernel all the same.
	ReceivesThroughKernel State = "ReceivesThroughKernel"
	// HandedToKernel means that the program has a stack without a socket: Onload gave all of them to the kernel.
	HandedToKernel State = "HandedToKernel"
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
	// KernelSockets are sockets of the program that the kernel serves alone, since the stacks exist: those that Onload handed
	// over, and connections that were accepted through an interface that is not accelerated. What they receive is counted
	// nowhere.
	KernelSockets uint64
	// Stacks are those of the container's processes.
	Stacks []Stack
}

// IsUnaccelerated tells what is certain: the program uses the kernel's network stack.
func (s State) IsUnaccelerated() bool {
	return s == ReceivesThroughKernel || s == HandedToKernel || s == NoStack
}

// Unread is the verdict on counters that could not be read, for a reason that is a sentence with the way out.
func Unread(reason string) Verdict { return Verdict{State: Unknown, Message: reason} }

// Container is what is known of a container besides its stacks.
type Container struct {
	// Namespace is the number of its network namespace; nil when that is not known.
	Namespace *uint64
	// ShowsAll means that the tool could look into every process of the container. A stack that it finds in none of them is
	// then somebody else's, or one whose sockets are all the kernel's.
	ShowsAll bool
}

// NeedsContainer reports whether the stacks alone do not say whose they are: the tool found no process for any of them.
func NeedsContainer(stacks []Stack) bool {
	return len(stacks) > 0 && len(ownStacks(stacks)) == 0
}

// Judge says whether the program of a container is accelerated, from the stacks that the tool sees there. It sees
// those of the whole node that its user may see; the container's are those with a process that it finds in the
// container's /proc. Where it finds none, a stack is surely somebody else's when it is in another network namespace, or
// when the tool could look into all processes of the container.
func Judge(stacks []Stack, in Container) Verdict {
	mine, candidates := ownStacks(stacks), nearStacks(stacks, in.Namespace)
	switch {
	case len(mine) > 0:
		return judgeCounters(mine)
	case len(candidates) > 0 && !in.ShowsAll:
		return unattributed(candidates, in.Namespace)
	}
	return Verdict{State: NoStack, Message: "no process of the container has a socket in a stack of Onload, so its sockets, if it has any, " +
		"are those of the kernel" + near(candidates) + "; see that " + reachable(candidates) + "LD_PRELOAD names libonload.so or that the program is started with " +
		"onload, that a virtual interface (VI) was free when it started, and set EF_NO_FAIL to 0, so that a socket that cannot be " +
		"accelerated is an error"}
}

// near tells of stacks in the container's network namespace that no process of it has open.
func near(stacks []Stack) string {
	if len(stacks) == 0 {
		return ""
	}
	text := fmt.Sprintf(", although stack %d is in its network namespace", stacks[0].ID)
	if handovers := handedOver(stacks); handovers != "" {
		return text + ", which has handed sockets to the kernel (" + handovers + ")"
	}
	return text
}

// reachable is the first way out where sockets were handed over, which may be those of the program.
func reachable(stacks []Stack) string {
	if handedOver(stacks) == "" {
		return ""
	}
	return "the program connects and binds to addresses that the pool's NIC reaches, that "
}

// unattributed is the verdict when a stack may be the container's or not.
func unattributed(stacks []Stack, own *uint64) Verdict {
	if own == nil {
		return Unread("onload_stackdump sees stacks of the node and no process that has one open, and whose they are is not known without " +
			"the container's network namespace; add readlink and ls (coreutils or busybox) to the image")
	}
	return Unread(fmt.Sprintf("onload_stackdump sees stack %d in the container's network namespace and may not look into all processes of "+
		"the container, of which one may have it open; see that the container runs as the user that its program changes to, if it does, "+
		"and that the image has ls", stacks[0].ID))
}

func ownStacks(stacks []Stack) []Stack {
	return filter(stacks, func(s Stack) bool { return len(s.PIDs) > 0 })
}

// nearStacks are those that nobody is known to have open and that may be in a network namespace.
func nearStacks(stacks []Stack, namespace *uint64) []Stack {
	return filter(stacks, func(s Stack) bool {
		isElsewhere := namespace != nil && s.Namespace != nil && *s.Namespace != *namespace
		return len(s.PIDs) == 0 && !isElsewhere
	})
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

// judgeCounters judges the stacks of one container together. Sockets that the kernel serves alone are said, and decide
// only where no other socket received anything: a program may be probed or log through another interface, while the
// sockets that matter are accelerated.
func judgeCounters(stacks []Stack) Verdict {
	total := sum(stacks)
	verdict := Verdict{Stacks: stacks, KernelSockets: total.handed + total.accepted}
	beside := besideThem(stacks, total)
	switch {
	case total.kernel > 0:
		verdict.State = ReceivesThroughKernel
		verdict.Message = fmt.Sprintf("%d of %d datagrams came through the kernel%s; see that the socket is bound to an address of the pool's "+
			"NIC and that the NIC takes the filter (the kernel's log names one that it does not), and with Onload on AF_XDP that the "+
			"NIC has one channel (ethtool -L INTERFACE combined 1)", total.kernel, total.kernel+total.user, busiest(stacks)) + beside
	case total.user > 0 || total.segments > 0 || total.connections > 0:
		verdict.State = Accelerated
		verdict.Message = fmt.Sprintf("%s, %s and %s came at user level", plural(total.user, "datagram", "datagrams"),
			plural(total.segments, "segment of TCP", "segments of TCP"),
			plural(total.connections, "accepted connection", "accepted connections")) + cmp.Or(beside, ", and none through the kernel")
	case total.accepted > 0:
		verdict.State = ReceivesThroughKernel
		verdict.Message = "nothing came at user level" + beside
	case total.handed > 0 && total.sockets == 0:
		verdict.State = HandedToKernel
		verdict.Message = "the program's stack has no socket" + beside
	case !total.isKnown:
		verdict.State = Unknown
		verdict.Message = "the output of onload_stackdump lots does not say what a stack received; see that it is whole"
	default:
		verdict.State = Idle
		verdict.Message = "nothing was received by now; ask again when traffic flows" + beside
	}
	return verdict
}

// besideThem says which sockets the kernel serves alone, and why that happens; "" when there are none.
func besideThem(stacks []Stack, total received) string {
	var text string
	if total.accepted > 0 {
		text += fmt.Sprintf("; %s came in through an interface that is not accelerated%s: see that peers connect to an address of the "+
			"pool's NIC, unless it is only a probe of the kubelet or somebody who reads metrics",
			plural(total.accepted, "connection of TCP", "connections of TCP"), listeners(stacks))
	}
	if total.handed > 0 {
		text += fmt.Sprintf("; Onload has handed %s to the kernel (%s), as it does with one that is bound or connected to an address "+
			"that no accelerated NIC reaches: what such sockets receive is counted nowhere",
			plural(total.handed, "socket", "sockets"), handedOver(stacks))
	}
	return text
}

// listeners names the sockets that got connections through the kernel.
func listeners(stacks []Stack) string {
	var names []string
	for _, stack := range stacks {
		for _, socket := range stack.Sockets {
			if value(socket.AcceptedKernel) > 0 {
				names = append(names, fmt.Sprintf("%d to %s", *socket.AcceptedKernel, socket.Local))
			}
		}
	}
	return inBrackets(names, "more listening sockets")
}

// handedOver are the counters of calls that gave sockets to the kernel.
func handedOver(stacks []Stack) string {
	counts := map[string]uint64{}
	for _, stack := range stacks {
		for _, handover := range stack.Handovers {
			counts[handover.Counter] += handover.Sockets
		}
	}
	texts := make([]string, 0, len(counts))
	for _, counter := range slices.Sorted(maps.Keys(counts)) {
		texts = append(texts, fmt.Sprintf("%s %d", counter, counts[counter]))
	}
	return strings.Join(texts[:min(len(texts), shownNames)], ", ")
}

// received is what some stacks received.
type received struct {
	// user and kernel are datagrams; segments are those of open connections of TCP; connections and accepted are those
	// that were accepted at user level and through the kernel; handed are sockets that the kernel serves now; sockets are
	// those of the stacks.
	user, kernel, segments, connections, accepted, handed, sockets uint64
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
		total.sockets += uint64(len(stack.Sockets))
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
	names := make([]string, 0, len(through))
	for _, socket := range through {
		names = append(names, fmt.Sprintf("%d to %s", *socket.ReceivedKernel, socket.Local))
	}
	return inBrackets(names, "more sockets")
}

// shownNames is how many sockets or counters a sentence names.
const shownNames = 3

// inBrackets are the first names, and how many more there are; "" for none.
func inBrackets(names []string, more string) string {
	if len(names) == 0 {
		return ""
	}
	if count := len(names) - shownNames; count > 0 {
		names = append(names[:shownNames:shownNames], fmt.Sprintf("%d %s", count, more))
	}
	return " (" + strings.Join(names, ", ") + ")"
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
