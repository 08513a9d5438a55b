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
// older than the window, and those that are growing old.
type history struct {
	readings []reading
}

// tooShort tells that the next reading may have nothing to be compared with.
func (h *history) tooShort() bool { return len(h.readings) < 2 }

// before adds a reading and returns the latest earlier one that is at least a window older; nil if there
// is none. Readings of another boot are forgotten: counters begin anew.
func (h *history) before(now reading, window time.Duration) *host.Facts {
	if len(h.readings) > 0 && !sameBoot(h.readings[0].facts, now.facts) {
		h.readings = nil
	}
	old := -1
	for i, earlier := range h.readings {
		if now.at.Sub(earlier.at) >= window {
			old = i
		}
	}
	var before *host.Facts
	if old >= 0 {
		before = h.readings[old].facts
		h.readings = slices.Delete(h.readings, 0, old)
	}
	if last := len(h.readings) - 1; last < 0 || now.at.Sub(h.readings[last].at) >= window {
		h.readings = append(h.readings, now)
	}
	return before
}

// sameBoot compares the boots that two readings are of: by the kernel's boot identifier, and where that
// is not to be read, as on a host tree, by the command line.
func sameBoot(a, b *host.Facts) bool {
	return a.Setting(bootIDPath).Value == b.Setting(bootIDPath).Value &&
		a.Kernel.CommandLine.Value == b.Kernel.CommandLine.Value
}
