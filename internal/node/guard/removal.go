// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard

import (
	"context"

	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
)

// removalFile tells that root has asked for the host as it was before all plans while another one was on trial: that one is left first, and the
// host may have to reboot in between.
const removalFile = StateFolder + "/removal"

// removal is what that file holds: that it is there says everything.
type removal struct{}

// defaultDeadlineSeconds is for the removal, which nobody has given a deadline.
const defaultDeadlineSeconds = 600

// Remove brings the host back to what it was before all plans. What is being tried is taken back first. Where that alone takes a reboot,
// ContinueRemoval goes on after it.
func (g *Guard) Remove(ctx context.Context) (Next, error) {
	h, err := g.load()
	if err != nil {
		return Nothing, err
	}
	if !h.isChanging() {
		return g.remove(ctx)
	}
	if h.inForce != nil {
		if err := g.writeState(removalFile, removal{}); err != nil {
			return Nothing, err
		}
	}
	next, err := g.TakeBack(ctx, instruction.ReasonWithdrawn, "it was asked for")
	if err != nil || h.inForce == nil || next == Reboot {
		return next, err
	}
	return g.remove(ctx)
}

// remove tries the host without any plan. That it was asked for is forgotten before: a host that comes back from this to its plan does not try
// it again at each start.
func (g *Guard) remove(ctx context.Context) (Next, error) {
	if err := g.forgetRemoval(); err != nil {
		return Nothing, err
	}
	return g.Apply(ctx, Wanted{DeadlineSeconds: defaultDeadlineSeconds})
}

// forgetRemoval is for a host that goes another way from here.
func (g *Guard) forgetRemoval() error {
	if err := hostfile.RemoveLeftover(g.disk, removalFile); err != nil {
		return err
	}
	return g.removeFile(removalFile)
}

// IsToBeRemoved reports whether root has asked for the host as it was before, and the guard goes on with that after the next start of the host.
func (g *Guard) IsToBeRemoved() (bool, error) {
	asked, err := g.disk.Read(removalFile)
	return err == nil && asked.Type == hostfile.Regular, err
}

// ContinueRemoval goes on with what Remove has begun before the host was started again. It reports whether there was anything to go on with.
func (g *Guard) ContinueRemoval(ctx context.Context) (next Next, continued bool, err error) {
	asked, err := g.IsToBeRemoved()
	if err != nil || !asked {
		return Nothing, false, err
	}
	h, err := g.load()
	if err != nil || h.isChanging() || h.current != nil && h.current.bootID() == h.bootID {
		return Nothing, false, err
	}
	g.tell("The plan that is in force is taken back, as root has asked for before this start.")
	next, err = g.remove(ctx)
	return next, true, err
}
