// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencytest

import (
	"fmt"
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// goesAsFrames reports whether messages of an end go as frames of AF_XDP: by the stack of its pool, unless it is to have the kernel's sockets.
func goesAsFrames(pool *v1alpha1.BypassNICPool, end *v1alpha1.TestEnd) bool {
	return pool != nil && pool.Spec.Stack.AFXDP != nil && end.Sockets != v1alpha1.TestSocketsKernel
}

// framesMissing says why the messages of a test cannot go as frames of AF_XDP; "" when they can, and when they are not to. The pools are those of the
// ends whose messages do.
func framesMissing(parameters *qualification.Parameters, pools []*v1alpha1.BypassNICPool) string {
	switch len(pools) {
	case 0:
		return ""
	case 1:
		return "only one of the client and the server has a pool with stack AFXDP: name one for both, since frames reach no socket of another stack"
	}
	if transport := parameters.Traffic.Transport; transport != v1alpha1.TransportUDP {
		return fmt.Sprintf("spec.traffic.transport is %s, and over AF_XDP messages go by UDP alone: set it to UDP, or name pools with stack Onload", transport)
	}
	if largest := slices.Max(parameters.Sizes); largest > latency.LargestInFrame {
		return fmt.Sprintf("a message of %d bytes is larger than a frame of AF_XDP: leave out sizes of more than %d bytes", largest, latency.LargestInFrame)
	}
	for _, pool := range pools {
		if pool.Spec.Stack.AFXDP.Steering.Type != v1alpha1.SteeringUDPPorts {
			return fmt.Sprintf("spec.stack.afxdp.steering.type of BypassNICPool %s has to be UDPPorts, so that the kernel goes on answering ARP and messages have a port", pool.Name)
		}
		if pool.Spec.NetworkAttachment != nil {
			return fmt.Sprintf("BypassNICPool %s has spec.networkAttachment, and the device plugin gives sockets of NICs that stay in the network of the node", pool.Name)
		}
	}
	return ""
}

// frameArgs tell the pod of an end by which socket of a pool its frames go.
func frameArgs(pool *v1alpha1.BypassNICPool, end *v1alpha1.TestEnd) []string {
	stack := pool.Spec.Stack.AFXDP
	first := int32(0)
	if stack.Queues.First != nil {
		first = *stack.Queues.First
	}
	args := []string{"--afxdp-pool=" + pool.Name, "--afxdp-ports=" + commas(slices.Sorted(slices.Values(stack.Steering.UDPPorts))), fmt.Sprintf("--afxdp-first-queue=%d", first)}
	if end.Address != "" {
		args = append(args, "--afxdp-address="+qualification.AddressOf(end))
	}
	return args
}

// besideNIC says that the messages of an end would not go by the NIC of its pool; "" when they do, or nobody says so. A NIC whose sockets of AF_XDP are
// handed out stays in the network of the node, so that sockets of the kernel reach it from there alone.
func besideNIC(side *qualification.Side, pool *v1alpha1.BypassNICPool, end *v1alpha1.TestEnd) string {
	if side.Path == "" || pool == nil || pool.Spec.Stack.AFXDP == nil || goesAsFrames(pool, end) || (side.IsOnHost && side.IsServerOnHost) {
		return ""
	}
	return fmt.Sprintf("side %s has the kernel's sockets and BypassNICPool %s, whose NICs stay in the network of the node: set network Host at both ends, so that its messages go by these "+
		"NICs, or leave out bypassNICPool, to compare with the pods' own network", side.Name, pool.Name)
}

// nicArgs tell the pod of an end that has to reach the other by a NIC of its pool; none where it need not. The program looks, and measures nothing by another one.
func (w *World) nicArgs(side *qualification.Side, end *v1alpha1.TestEnd) []string {
	pool, _ := w.poolOf(end)
	if !side.IsServerOnHost || pool == nil || pool.Spec.Stack.AFXDP == nil || goesAsFrames(pool, end) {
		return nil
	}
	return []string{"--nic-of-pool=" + pool.Name}
}
