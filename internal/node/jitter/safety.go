// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package jitter

import (
	"fmt"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// Owner is a container that owns CPUs alone.
type Owner struct {
	// Name is namespace/pod/container.
	Name string
	CPUs cpus.Set
}

// Placement says where a measurement runs.
type Placement struct {
	// Measured are the CPUs that are measured, Control those on which everything else of the probe runs.
	Measured, Control cpus.Set
}

// Place decides where the probe runs: control CPUs are online CPUs of no core that is measured, so that the control
// thread does not share a core's resources with the loop. An error says which CPU cannot be measured and why.
func Place(measured, online cpus.Set, cores []cpus.Set, owners []Owner) (Placement, error) {
	if missing := measured.Difference(online); !missing.IsEmpty() {
		return Placement{}, fmt.Errorf("CPU %s is not online; online are %s", missing, online)
	}
	for _, owner := range owners {
		if common := measured.Intersection(owner.CPUs); !common.IsEmpty() {
			return Placement{}, fmt.Errorf("CPU %s belongs to container %s: the probe never runs on CPUs that a pod owns", common, owner.Name)
		}
	}
	near := measured
	for _, core := range cores {
		if !core.Intersection(measured).IsEmpty() {
			near = near.Union(core)
		}
	}
	control := online.Difference(near)
	if control.IsEmpty() {
		return Placement{}, fmt.Errorf("no CPU is left to control the measurement of CPUs %s: leave a core of CPUs %s out", measured, online)
	}
	return Placement{Measured: measured, Control: control}, nil
}

// busyShare is the share of time above which a CPU is busy.
const busyShare = 0.05

// Busy says, from two readings of /proc/stat, which of the CPUs are at work for other programs; "" when none is.
func Busy(measured cpus.Set, before, after procfs.Stat) string {
	var busy []string
	for _, id := range measured.IDs() {
		share, known := workShare(before.CPU[int64(id)], after.CPU[int64(id)])
		if known && share > busyShare {
			busy = append(busy, fmt.Sprintf("CPU %d is busy for %.0f %% of the time", id, 100*share))
		}
	}
	return strings.Join(busy, "; ")
}

// workShare is the share of time in which a CPU ran programs or the kernel.
func workShare(before, after procfs.CPUStat) (float64, bool) {
	work := func(s procfs.CPUStat) float64 {
		return s.User + s.Nice + s.System + s.IRQ + s.SoftIRQ + s.Steal
	}
	all := func(s procfs.CPUStat) float64 { return work(s) + s.Idle + s.Iowait }
	passed := all(after) - all(before)
	if passed <= 0 {
		return 0, false
	}
	return (work(after) - work(before)) / passed, true
}
