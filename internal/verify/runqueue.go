// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"slices"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// Files that tell whose doing it can be what is counted on a CPU.
const (
	fileRunQueues = "/proc/schedstat"
	fileOwners    = "/var/lib/kubelet/cpu_manager_state"
)

// eventsPerTurn is how many ticks, timers or calls of other CPUs a thread may bring each time that it gets its CPU: the timer that wakes it, the call of the
// CPU that does, and ticks until the kernel sees that it runs alone (sched_can_stop_tick of kernel/sched/core.c). Threads that share a CPU are
// given turns by the tick, every third to tenth one.
const eventsPerTurn = 10

// findOwnersBetween finds the containers that own CPUs now, or owned them at the reading before or at one between the two. Most of them come twice: what the kubelet has answered
// may be older than its state.
func (s *state) findOwnersBetween() []owner {
	all := slices.Clone(s.owned())
	for _, text := range append([]host.Fact[string]{s.facts.Kubelet.CPUManagerState, s.before.Kubelet.CPUManagerState}, s.meanwhile...) {
		all = append(all, ownersIn(cpuManagerStateOf(text)).Value...)
	}
	return all
}

// isFree reports whether no container owns a CPU or has owned it since the reading before.
func (s *state) isFree(cpu int) bool {
	return !slices.ContainsFunc(s.ownersBetween(), func(o owner) bool { return o.cpus.Contains(cpu) })
}

// isInputOutputOfOwner reports whether an interrupt comes only when threads of one container read or write: a managed one of a queue that no other CPUs
// have. A kernel with isolcpus=managed_irq puts it nowhere else while these CPUs are online.
func (s *state) isInputOutputOfOwner(route *host.InterruptRoute) bool {
	if !slices.ContainsFunc(route.Actions, isManagedQueue) || !s.isBound(route) {
		return false
	}
	queue := s.onlineOf(route.Affinity.Value)
	return slices.ContainsFunc(s.ownersBetween(), func(o owner) bool { return queue.IsSubsetOf(o.cpus) })
}

// ownEvents is how many ticks, timers or calls of other CPUs since the reading before may be the doing of the container that owns a CPU: its threads slept and were woken, or
// took turns. It is 0 for a CPU of nobody, and where nobody counts the turns.
func (s *state) ownEvents(cpu int) uint64 {
	was, known := s.before.RunQueues.Value[cpu]
	is, still := s.facts.RunQueues.Value[cpu]
	if !known || !still || is.Turns < was.Turns || s.isFree(cpu) {
		return 0
	}
	return eventsPerTurn * (is.Turns - was.Turns)
}
