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
// older than the window, and those that are growing old or that show who owned which CPUs meanwhile.
type history struct {
	readings []reading
}

// tooShort tells that the next reading may have nothing to be compared with.
func (h *history) tooShort() bool { return len(h.readings) < 2 }

// before adds a reading and returns the latest earlier one that is at least a window older, nil if there is none, and those
// between the two. Readings of another boot are forgotten: counters begin anew. A reading is kept for later ones when a window has passed since the last one
// that was kept, or when the kubelet has given CPUs to other containers since.
func (h *history) before(now reading, window time.Duration) (before *host.Facts, meanwhile []*host.Facts) {
	if len(h.readings) > 0 && !sameBoot(h.readings[0].facts, now.facts) {
		h.readings = nil
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
		for _, later := range h.readings[1:] {
			meanwhile = append(meanwhile, later.facts)
		}
	}
	last := len(h.readings) - 1
	if last < 0 || now.at.Sub(h.readings[last].at) >= window ||
		now.facts.Kubelet.CPUManagerState.Value != h.readings[last].facts.Kubelet.CPUManagerState.Value {
		h.readings = append(h.readings, now)
	}
	return before, meanwhile
}

// sameBoot compares the boots that two readings are of: by the kernel's boot identifier, and where that
// is not to be read, as on a host tree, by the command line.
func sameBoot(a, b *host.Facts) bool {
	return a.Setting(bootIDPath).Value == b.Setting(bootIDPath).Value &&
		a.Kernel.CommandLine.Value == b.Kernel.CommandLine.Value
}
