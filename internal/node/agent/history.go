// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"slices"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// bootIDPath tells one boot of a host from the next.
const bootIDPath = "/proc/sys/kernel/random/boot_id"

// reading is what the host said at one moment.
type reading struct {
	at    time.Time
	facts *host.Facts
}

// history keeps the readings that later ones are compared with, the oldest first: at most one that is
// older than the window, and those that are growing old. Of the readings besides it keeps who owned which CPUs.
type history struct {
	readings []reading
	// states are those of the kubelet's CPU manager since the first of the readings, and the one before, each when it was new.
	states []managerState
}

// managerState is what the kubelet's CPU manager kept from a moment on.
type managerState struct {
	at   time.Time
	kept host.Fact[string]
}

// tooShort tells that the next reading may have nothing to be compared with.
func (h *history) tooShort() bool { return len(h.readings) < 2 }

// before adds a reading and returns the latest earlier one that is at least a window older, nil if there is none, and what the kubelet's CPU manager
// kept between the two. Readings of another boot are forgotten: counters begin anew.
func (h *history) before(now reading, window time.Duration) (before *host.Facts, meanwhile []host.Fact[string]) {
	if len(h.readings) > 0 && !sameBoot(h.readings[0].facts, now.facts) {
		h.readings, h.states = nil, nil
	}
	old := -1
	for i, earlier := range h.readings {
		if now.at.Sub(earlier.at) >= window {
			old = i
		}
	}
	if old >= 0 {
		before = h.readings[old].facts
		h.readings = slices.Delete(h.readings, 0, old)
		meanwhile = h.keptSince(h.readings[0].at)
	}
	if last := len(h.readings) - 1; last < 0 || now.at.Sub(h.readings[last].at) >= window {
		h.readings = append(h.readings, now)
	}
	if last := len(h.states) - 1; last < 0 || h.states[last].kept.Value != now.facts.Kubelet.CPUManagerState.Value {
		h.states = append(h.states, managerState{now.at, now.facts.Kubelet.CPUManagerState})
	}
	return before, meanwhile
}

// keptSince are the states of the CPU manager since a reading began, and the one before: a reading of the whole host takes a while, and counts what happens on CPUs before it
// asks whose they are. Older ones are forgotten: no reading is compared with one before that time any more.
func (h *history) keptSince(from time.Time) []host.Fact[string] {
	first := slices.IndexFunc(h.states, func(s managerState) bool { return !s.at.Before(from) })
	if first < 0 {
		first = len(h.states)
	}
	h.states = slices.Delete(h.states, 0, max(0, first-1))
	kept := make([]host.Fact[string], 0, len(h.states))
	for _, s := range h.states {
		kept = append(kept, s.kept)
	}
	return kept
}

// sameBoot compares the boots that two readings are of: by the kernel's boot identifier, and where that
// is not to be read, as on a host tree, by the command line.
func sameBoot(a, b *host.Facts) bool {
	return a.Setting(bootIDPath).Value == b.Setting(bootIDPath).Value &&
		a.Kernel.CommandLine.Value == b.Kernel.CommandLine.Value
}
