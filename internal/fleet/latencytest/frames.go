// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencytest

import (
	"fmt"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// largestInFrame is the most bytes of a message that goes as a frame of AF_XDP, as the program of the pod has it: 1500 bytes less the headers of
// IP and UDP.
const largestInFrame = 1472

// hasFrames reports whether pods of a pool send frames of AF_XDP.
func hasFrames(pool *v1alpha1.BypassNICPool) bool { return pool != nil && pool.Spec.Stack.AFXDP != nil }

// framesMissing says why the messages of a test cannot go as frames of AF_XDP; "" when they can, and when neither pool has that stack. A pool is nil for
// none.
func framesMissing(parameters *qualification.Parameters, server, client *v1alpha1.BypassNICPool) string {
	if !hasFrames(server) && !hasFrames(client) {
		return ""
	}
	if !hasFrames(server) || !hasFrames(client) {
		return "only one of spec.traffic.server and spec.traffic.client has a pool with stack AFXDP: name one for both, since frames reach no socket of another stack"
	}
	if transport := parameters.Traffic.Transport; transport != v1alpha1.TransportUDP {
		return fmt.Sprintf("spec.traffic.transport is %s, and over AF_XDP messages go by UDP alone: set it to UDP, or name pools with stack Onload", transport)
	}
	if largest := slices.Max(parameters.Sizes); largest > largestInFrame {
		return fmt.Sprintf("a message of %d bytes is larger than a frame of AF_XDP: leave out sizes of more than %d bytes", largest, largestInFrame)
	}
	for _, pool := range []*v1alpha1.BypassNICPool{server, client} {
		if pool.Spec.Stack.AFXDP.Steering.Type != v1alpha1.SteeringUDPPorts {
			return fmt.Sprintf("spec.stack.afxdp.steering.type of BypassNICPool %s has to be UDPPorts, so that the kernel goes on answering ARP and messages have a port", pool.Name)
		}
		if pool.Spec.NetworkAttachment != nil {
			return fmt.Sprintf("BypassNICPool %s has spec.networkAttachment, and the device plugin gives sockets of NICs that stay in the network of the node", pool.Name)
		}
	}
	return ""
}

// frameArgs tell the pod of an end by which socket its messages go; none when they go by sockets of the C library.
func frameArgs(pool *v1alpha1.BypassNICPool, end *v1alpha1.TestEnd) []string {
	if !hasFrames(pool) {
		return nil
	}
	stack := pool.Spec.Stack.AFXDP
	first := int32(0)
	if stack.Queues.First != nil {
		first = *stack.Queues.First
	}
	args := []string{"--afxdp-pool=" + pool.Name, "--afxdp-ports=" + commas(slices.Sorted(slices.Values(stack.Steering.UDPPorts))), fmt.Sprintf("--afxdp-first-queue=%d", first)}
	if end.Address != "" {
		address, _, _ := strings.Cut(end.Address, "/")
		args = append(args, "--afxdp-address="+address)
	}
	return args
}
