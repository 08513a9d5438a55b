// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"context"
	"fmt"
)

// Counters are what a host counted up to one moment.
type Counters struct {
	// Interrupts has columns and lines only: those of /proc/interrupts or, where a container runtime hides that, of the devices in
	// /sys/kernel/irq, without the kernel's own, such as those of its timer.
	Interrupts Interrupts
	Softirqs   Softirqs
}

// ReadCounters reads /proc/interrupts and /proc/softirqs, or what stands for them, and nothing else, for those who read them often. What the
// host does not have is absent; an error names the table that makes no sense.
func (h *Host) ReadCounters(ctx context.Context) (*Counters, error) {
	view := h.tree.view()
	defer view.release()
	r := newReader(ctx, view, nil)
	counters := &Counters{}
	h.readCounters(r, &counters.Interrupts, &counters.Softirqs)
	if !counters.Interrupts.Lines.Known && counters.Interrupts.Lines.Reason == reasonHidden {
		counters.Interrupts.Columns, counters.Interrupts.Lines = r.deviceInterrupts(&h.deviceInterrupts)
	}
	if r.err != nil {
		return nil, fmt.Errorf("reading the counters of host %s: %w", h.path, r.err)
	}
	return counters, nil
}
