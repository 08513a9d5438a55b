// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

import "fmt"

// LargestInFrame is the most bytes of a message that goes as a frame of AF_XDP: 1500 bytes of Ethernet less 20 of the header of IPv4 and 8 of that of
// UDP.
const LargestInFrame = 1500 - 20 - 8

// PathState says in one word which way messages went.
type PathState string

const (
	// PathKernel is the kernel's network stack.
	PathKernel PathState = "Kernel"
	// PathAccelerated is past the kernel's network stack.
	PathAccelerated PathState = "Accelerated"
	// PathMixed is one end this way and the other that way, or some messages of one end.
	PathMixed PathState = "Mixed"
	// PathUnknown is where the counters could not be read.
	PathUnknown PathState = "Unknown"
)

// Path is the way that messages really took, from counters.
type Path struct {
	State  PathState `json:"state"`
	Client PathEnd   `json:"client"`
	Server PathEnd   `json:"server"`
	// Message is a sentence for people.
	Message string `json:"message"`
}

// PathEnd is what the kernel counted at one end over the measurement, in the network namespace of the program.
type PathEnd struct {
	State PathState `json:"state"`
	// Messages that the program sent and received, which the kernel counted Counted of: datagrams, or segments of TCP.
	Messages uint64 `json:"messages"`
	Counted  uint64 `json:"counted"`
}

// countedShare is the share of a program's messages below which the kernel saw none of them: what it counts in the same namespace of
// others, of connections that carry the questions of the measurement, and of their acknowledgements.
const countedShare = 0.1

// EndOf judges one end. A path is the kernel's when the kernel counted as much as the program sent and received; it may have counted
// more, of others. TCP may send one segment for two small messages, never with one under way at a time.
func EndOf(messages, counted uint64, known bool) PathEnd {
	end := PathEnd{State: PathUnknown, Messages: messages, Counted: counted}
	switch {
	case !known || messages == 0:
	case float64(counted) < countedShare*float64(messages):
		end.State = PathAccelerated
	case counted >= messages:
		end.State = PathKernel
	default:
		end.State = PathMixed
	}
	return end
}

// PathOf puts both ends together.
func PathOf(client, server PathEnd) Path {
	p := Path{State: PathMixed, Client: client, Server: server}
	switch {
	case client.State == PathUnknown || server.State == PathUnknown:
		p.State = PathUnknown
	case client.State == server.State:
		p.State = client.State
	}
	p.Message = fmt.Sprintf("the kernel counted %s at the client and %s at the server", client.words(), server.words())
	return p
}

// And is the path of one measurement and the next, with the words of the next: Mixed when they went different ways.
func (p Path) And(next Path) Path {
	switch {
	case p.State == PathUnknown || next.State == PathUnknown:
		next.State = PathUnknown
	case p.State != next.State:
		next.State = PathMixed
	}
	return next
}

// WithPart is the path of a whole of which a part has this name: Mixed where the part went another way, and it says which one did. A few messages of many
// do not show in the counts of the whole.
func (p Path) WithPart(name string, part Path) Path {
	if p.State == PathUnknown || part.State == PathUnknown || part.State == p.State {
		return p
	}
	p.State = PathMixed
	p.Message += fmt.Sprintf("; of %s, %d for %d and %d for %d", name, part.Client.Counted, part.Client.Messages, part.Server.Counted, part.Server.Messages)
	return p
}

func (e PathEnd) words() string {
	if e.State == PathUnknown {
		return "what could not be read"
	}
	return fmt.Sprintf("%d for %d messages", e.Counted, e.Messages)
}
