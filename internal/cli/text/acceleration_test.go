// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/onload"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
)

func TestPoolAcceleration(t *testing.T) {
	number := func(n uint64) *uint64 { return &n }
	told := view.PoolStack{ID: 3, UDPReceivedUserLevel: number(30), UDPReceivedKernel: number(0)}
	partial := view.PoolStack{ID: 12, UDPReceivedUserLevel: number(7)}
	// A container with this verdict holds two NICs of the node.
	pool := func(state onload.State, stacks ...view.PoolStack) view.Pool {
		user := view.PoolUser{
			Namespace: "n", Pod: "p", Container: "c", Acceleration: &view.PoolAcceleration{State: state, Message: "why", Stacks: stacks},
		}
		nics := []view.PoolNIC{{PCIAddress: "0000:3b:00.0", Users: []view.PoolUser{user}}, {PCIAddress: "0000:3b:00.1", Users: []view.PoolUser{user}}}
		return view.Pool{Nodes: []view.PoolNode{{Node: "a", NICs: nics}}}
	}
	unasked := pool(onload.Accelerated)
	unasked.Nodes[0].NICs[0].Users[0].Acceleration = nil
	unasked.Nodes[0].NICs = unasked.Nodes[0].NICs[:1]
	const header = "\nNODE  CONTAINER  ACCELERATION  STACKS  UDP AT USER LEVEL  UDP THROUGH KERNEL  NOT IN STACK\n"
	beside := pool(onload.Accelerated, told)
	for _, nic := range beside.Nodes[0].NICs {
		nic.Users[0].Acceleration.KernelSockets = 2
	}
	cases := map[string]struct {
		pool view.Pool
		want string
	}{
		"kernel sockets":  {beside, header + "a     n/p/c      Accelerated   3       30                 0                   2\n\nAccelerated · a · n/p/c\n    why\n"},
		"not asked for":   {unasked, ""},
		"one stack":       {pool(onload.Accelerated, told), header + "a     n/p/c      Accelerated   3       30                 0                   0\n"},
		"two stacks":      {pool(onload.Accelerated, told, told), header + "a     n/p/c      Accelerated   3,3     60                 0                   0\n"},
		"no kernel count": {pool(onload.Unknown, told, partial), header + "a     n/p/c      Unknown       3,12    37                 ?                   0\n\nUnknown · a · n/p/c\n    why\n"},
		"not known":       {pool(onload.Unknown), header + "a     n/p/c      Unknown       ?       ?                  ?                   ?\n\nUnknown · a · n/p/c\n    why\n"},
		"no stack":        {pool(onload.NoStack), header + "a     n/p/c      NoStack       -       -                  -                   -\n\nNoStack · a · n/p/c\n    why\n"},
		"another stack":   {pool(onload.NotApplicable), "\nNotApplicable\n    why\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, poolAcceleration(tc.pool, NewPalette(false), 110)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPaintState(t *testing.T) {
	palette := NewPalette(true)
	for state, want := range map[onload.State]Paint{
		onload.Accelerated: palette.Good, onload.ReceivesThroughKernel: palette.Bad, onload.NoStack: palette.Bad, onload.HandedToKernel: palette.Bad, onload.Idle: palette.Warn,
		onload.Unknown: palette.Warn,
	} {
		if got := paintState(state, palette)("x"); got != want("x") {
			t.Errorf("%s is painted %q", state, got)
		}
	}
}
