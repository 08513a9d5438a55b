// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/onload"
)

func TestWithAcceleration(t *testing.T) {
	feed, orders := PoolUser{Namespace: "n", Pod: "feed", Container: "c"}, PoolUser{Namespace: "n", Pod: "orders", Container: "c"}
	node := PoolNode{Node: "a", NICs: []PoolNIC{
		{PCIAddress: "0000:3b:00.0", Users: []PoolUser{feed, orders}}, {PCIAddress: "0000:3b:00.1", Users: []PoolUser{feed}}, {PCIAddress: "0000:81:00.0"},
	}}
	pool := Pool{Nodes: []PoolNode{node}}
	if diff := cmp.Diff([]PoolUser{feed, orders}, node.Containers()); diff != "" {
		t.Error(diff)
	}
	cases := map[string]struct {
		orders onload.State
		want   bool
	}{
		"accelerated":        {onload.Accelerated, false},
		"not known":          {onload.Unknown, false},
		"idle":               {onload.Idle, false},
		"through the kernel": {onload.ReceivesThroughKernel, true},
		"handed over":        {onload.HandedToKernel, true},
		"no stack":           {onload.NoStack, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := pool.WithAcceleration(func(user PoolUser) *PoolAcceleration {
				if user.Pod == "feed" {
					return OfVerdict(onload.Verdict{State: onload.Accelerated})
				}
				return OfVerdict(onload.Verdict{State: tc.orders, Message: "why", KernelSockets: 3})
			})
			if got.IsUnaccelerated() != tc.want {
				t.Errorf("unaccelerated: %v", got.IsUnaccelerated())
			}
			nics := got.Nodes[0].NICs
			want := &PoolAcceleration{State: tc.orders, Message: "why", KernelSockets: 3, Stacks: []PoolStack{}}
			if diff := cmp.Diff(want, nics[0].Users[1].Acceleration); diff != "" || nics[1].Users[0].Acceleration.State != onload.Accelerated {
				t.Errorf("got %+v\n%s", nics, diff)
			}
			if nics[2].Users != nil {
				t.Error("who holds the third NIC was not known")
			}
		})
	}
	if pool.IsUnaccelerated() || node.NICs[0].Users[0].Acceleration != nil {
		t.Errorf("the pool itself has changed: %+v", pool)
	}
}
