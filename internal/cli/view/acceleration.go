// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package view

import (
	"slices"

	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/onload"
)

// PoolAcceleration says whether the program of a container is accelerated, as the counters of its stacks tell.
type PoolAcceleration struct {
	State   onload.State `json:"state"`
	Message string       `json:"message"`
	// KernelSockets are sockets of the program that the kernel serves alone, since its stacks exist.
	KernelSockets uint64 `json:"kernelSockets"`
	// Stacks are those of the container's processes.
	Stacks []PoolStack `json:"stacks"`
}

// PoolStack is a stack of Onload; what its tool did not say is null.
type PoolStack struct {
	ID                   int          `json:"id"`
	Name                 *string      `json:"name"`
	PIDs                 []int        `json:"pids"`
	NetworkNamespace     *uint64      `json:"networkNamespace"`
	InterfaceVersion     *string      `json:"interfaceVersion"`
	UDPReceivedUserLevel *uint64      `json:"udpReceivedUserLevel"`
	UDPReceivedKernel    *uint64      `json:"udpReceivedKernel"`
	UDPSentUserLevel     *uint64      `json:"udpSentUserLevel"`
	UDPSentKernel        *uint64      `json:"udpSentKernel"`
	TCPAcceptedUserLevel *uint64      `json:"tcpAcceptedUserLevel"`
	TCPAcceptedKernel    *uint64      `json:"tcpAcceptedKernel"`
	HandedToKernel       *uint64      `json:"handedToKernel"`
	Sockets              []PoolSocket `json:"sockets"`
}

// PoolSocket is a socket of a stack of Onload.
type PoolSocket struct {
	Protocol          string  `json:"protocol"`
	LocalAddress      string  `json:"localAddress"`
	ReceivedUserLevel *uint64 `json:"receivedUserLevel"`
	ReceivedKernel    *uint64 `json:"receivedKernel"`
	KernelPercent     *int    `json:"kernelPercent"`
	// AcceptedKernel are connections that a listening socket got through the kernel; null for other sockets.
	AcceptedKernel *uint64 `json:"acceptedKernel"`
}

// OfVerdict is the view of a verdict.
func OfVerdict(verdict onload.Verdict) *PoolAcceleration {
	return &PoolAcceleration{State: verdict.State, Message: verdict.Message, KernelSockets: verdict.KernelSockets, Stacks: each(verdict.Stacks, poolStack)}
}

func poolStack(stack onload.Stack) PoolStack {
	user, kernel := stack.UDPReceived()
	return PoolStack{
		ID: stack.ID, Name: known(stack.Name), PIDs: append([]int{}, stack.PIDs...), NetworkNamespace: stack.Namespace,
		InterfaceVersion: stack.InterfaceVersion, UDPReceivedUserLevel: user, UDPReceivedKernel: kernel,
		UDPSentUserLevel: stack.UDPSentUser, UDPSentKernel: stack.UDPSentKernel,
		TCPAcceptedUserLevel: stack.TCPAcceptedUser, TCPAcceptedKernel: stack.TCPAcceptedKernel, HandedToKernel: stack.HandedToKernel,
		Sockets: each(stack.Sockets, func(s onload.Socket) PoolSocket {
			return PoolSocket{
				Protocol: s.Protocol, LocalAddress: s.Local, ReceivedUserLevel: s.ReceivedUser, ReceivedKernel: s.ReceivedKernel,
				KernelPercent: s.KernelPercent, AcceptedKernel: s.AcceptedKernel,
			}
		}),
	}
}

// Name is the container with its pod and namespace, which is in one cluster but once.
func (u PoolUser) Name() string { return u.Namespace + "/" + u.Pod + "/" + u.Container }

// Containers are the containers that hold NICs of a node, each once: one may hold several.
func (n PoolNode) Containers() []PoolUser {
	var containers []PoolUser
	for _, nic := range n.NICs {
		for _, user := range nic.Users {
			if !slices.ContainsFunc(containers, func(c PoolUser) bool { return c.Name() == user.Name() }) {
				containers = append(containers, user)
			}
		}
	}
	return containers
}

// WithAcceleration is the pool with what the function knows about each container.
func (p Pool) WithAcceleration(of func(PoolUser) *PoolAcceleration) Pool {
	p.Nodes = each(p.Nodes, func(node PoolNode) PoolNode {
		node.NICs = each(node.NICs, func(nic PoolNIC) PoolNIC {
			if nic.Users == nil {
				return nic
			}
			nic.Users = each(nic.Users, func(user PoolUser) PoolUser {
				user.Acceleration = of(user)
				return user
			})
			return nic
		})
		return node
	})
	return p
}

// HasUsers reports whether a container holds a NIC of the pool.
func (p Pool) HasUsers() bool {
	return slices.ContainsFunc(p.Nodes, func(node PoolNode) bool { return len(node.Containers()) > 0 })
}

// IsUnaccelerated reports whether the program of a container uses the kernel's network stack for certain.
func (p Pool) IsUnaccelerated() bool { return p.hasAcceleration(onload.State.IsUnaccelerated) }

// HasUnknownAcceleration reports whether the counters of a container could not be read.
func (p Pool) HasUnknownAcceleration() bool {
	return p.hasAcceleration(func(state onload.State) bool { return state == onload.Unknown })
}

// hasAcceleration reports whether a container is in such a state. Those that were not asked are in none.
func (p Pool) hasAcceleration(is func(onload.State) bool) bool {
	for _, node := range p.Nodes {
		for _, user := range node.Containers() {
			if user.Acceleration != nil && is(user.Acceleration.State) {
				return true
			}
		}
	}
	return false
}
