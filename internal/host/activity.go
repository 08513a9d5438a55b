// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"context"
	"fmt"
	"slices"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// ReadActivity reads anew what tells what happens on CPUs: /proc/interrupts, /proc/softirqs, /proc/uptime, /proc/schedstat, to whom the
// kubelet's CPU manager gave them, and how often the given CPUs entered their idle states. It returns a copy of the earlier facts of the same host with these;
// the earlier ones stay as they are, and everything else is as old as they are. It is for those who look every half
// minute: it opens a few files and one per idle state, where Read opens tens of thousands.
func (h *Host) ReadActivity(ctx context.Context, earlier *Facts, idle cpus.Set) (*Facts, error) {
	view := h.tree.view()
	defer view.release()
	r := newReader(ctx, view, nil)
	facts := *earlier
	h.readCounters(r, &facts.Interrupts, &facts.Softirqs)
	facts.UptimeSeconds = r.uptime()
	facts.RunQueues = r.runQueues()
	facts.Kubelet.CPUManagerState = r.textFact(cpuStateFile)
	facts.CPUs.List = slices.Clone(earlier.CPUs.List)
	for i := range facts.CPUs.List {
		if cpu := &facts.CPUs.List[i]; idle.Contains(cpu.ID) {
			cpu.IdleStates = r.idleUsage(cpu.IdleStates)
		}
	}
	if r.err != nil {
		return nil, fmt.Errorf("reading the activity of host %s: %w", h.path, r.err)
	}
	return &facts, nil
}

// idleUsage counts the entries into idle states anew. States that are switched off are not entered.
func (r *reader) idleUsage(states []IdleState) []IdleState {
	states = slices.Clone(states)
	for i := range states {
		if state := &states[i]; state.Usage.Known && !state.Disabled.Value {
			state.Usage = read(r, source[uint64]{state.Usage.Source, parseCount})
		}
	}
	return states
}
