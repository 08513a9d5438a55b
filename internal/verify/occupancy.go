// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"slices"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// Files that tell whose doing it can be what is counted on a CPU.
const (
	fileBusy   = "/proc/stat"
	fileWaited = "/proc/schedstat"
	fileOwners = "/var/lib/kubelet/cpu_manager_state"
)

// greatestShare is for how much of the time between two readings a CPU may have been idle, and threads may have waited for it, while one thread
// keeps it busy: what the kernel takes for itself is far less, and a thread that sleeps, or a second one, far more.
const greatestShare = 0.01

// findOwnersBetween finds the containers that own CPUs now, or owned them at the reading before or at one between the two. Most of them come twice: what the kubelet has answered
// may be older than its state.
func (s *state) findOwnersBetween() []owner {
	all := slices.Clone(s.owned())
	for _, facts := range append([]*host.Facts{s.facts, s.before}, s.meanwhile...) {
		if facts != nil {
			all = append(all, ownersIn(cpuManagerStateOf(facts)).Value...)
		}
	}
	return all
}

// isOwnedBetween reports whether a container owns a CPU or has owned it since the reading before.
func (s *state) isOwnedBetween(cpu int) bool {
	return slices.ContainsFunc(s.ownersBetween(), func(o owner) bool { return o.cpus.Contains(cpu) })
}

// isFree is the opposite of isOwnedBetween.
func (s *state) isFree(cpu int) bool { return !s.isOwnedBetween(cpu) }

// isInputOutputOfOwner reports whether an interrupt comes only when threads of one container read or write: a managed one of a queue that no other CPUs
// have. A kernel with isolcpus=managed_irq puts it nowhere else while these CPUs are online.
func (s *state) isInputOutputOfOwner(route *host.InterruptRoute) bool {
	if !slices.ContainsFunc(route.Actions, isManagedQueue) || !s.isBound(route) {
		return false
	}
	queue := s.onlineOf(route.Affinity.Value)
	return slices.ContainsFunc(s.ownersBetween(), func(o owner) bool { return queue.IsSubsetOf(o.cpus) })
}

// mayBeOfOwner reports whether ticks and calls of other CPUs may be the doing of the container that owns a CPU: its threads slept, or there was more
// than one of them. A tick is to stop where one thread alone is to run (sched_can_stop_tick of kernel/sched/core.c), and who never sleeps is not woken. It is not the owner's
// doing as long as that cannot be told.
func (s *state) mayBeOfOwner(cpu int) bool {
	return s.isOwnedBetween(cpu) && (s.wasIdle(cpu) || s.wasShared(cpu))
}

// wasIdle reports whether a CPU had nothing to do for a while between the readings.
func (s *state) wasIdle(cpu int) bool {
	was, known := s.before.Occupancy.Busy.Value[cpu]
	is, still := s.facts.Occupancy.Busy.Value[cpu]
	if !known || !still || is.All <= was.All || is.Busy < was.Busy {
		return false
	}
	all := float64(is.All - was.All)
	return all-float64(is.Busy-was.Busy) > greatestShare*all
}

// wasShared reports whether threads waited for a CPU between the readings while another one ran there.
func (s *state) wasShared(cpu int) bool {
	const nanosecond = 1e-9
	was, known := s.before.Occupancy.Waited.Value[cpu]
	is, still := s.facts.Occupancy.Waited.Value[cpu]
	seconds, timed := s.elapsed().Get()
	return known && still && timed && is > was && float64(is-was)*nanosecond > greatestShare*seconds
}
