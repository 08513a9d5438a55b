// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

// Occupancy is how long CPUs were at work since the host was started, and how long threads have waited for them. Of two readings it tells a CPU that one
// thread kept busy from one that slept, or that threads shared.
type Occupancy struct {
	// Busy is how long each CPU was at work, from /proc/stat.
	Busy Fact[map[int]Ticks]
	// Waited is how long threads have waited in the run queue of each CPU, in nanoseconds, from /proc/schedstat.
	Waited Fact[map[int]uint64]
}

func readOccupancy(r *reader, f *Facts) { f.Occupancy = r.occupancy() }

func (r *reader) occupancy() Occupancy { return Occupancy{Busy: r.busy(), Waited: r.waited()} }
