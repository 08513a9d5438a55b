// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// procStat is where the kernel counts for how long each CPU was at work. Every program may read it, and no container runtime hides it.
const procStat = "/proc/stat"

// busy reads for how long each CPU was at work. The file has a line for each CPU and for each interrupt.
func (r *reader) busy() Fact[map[int]Ticks] {
	text, err := r.content(procStat, mediumFile)
	if err != nil {
		return Absent[map[int]Ticks](procStat, reasonOf(err))
	}
	found, err := parseBusy(text)
	if err != nil {
		return Absent[map[int]Ticks](procStat, err.Error())
	}
	return Known(found, procStat)
}

// parseBusy reads the lines of CPUs: user, nice, system, idle, iowait, irq, softirq and steal, of which idle and iowait are no work; guest and guest_nice
// are in user and nice already (Documentation/filesystems/proc.rst).
func parseBusy(text string) (map[int]Ticks, error) {
	found := map[int]Ticks{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "cpu" || !strings.HasPrefix(fields[0], "cpu") {
			continue
		}
		cpu, ok := numberIn(fields[0], "cpu", "")
		ticks, counted := parseTicks(fields[1:])
		if !ok || cpu > cpus.MaxCPU || !counted {
			return nil, fmt.Errorf("%q is no line of a CPU", abbreviate(line))
		}
		found[cpu] = ticks
	}
	return found, nil
}

// parseTicks sums up the counters of a CPU; ok is false when one is missing or none.
func parseTicks(fields []string) (ticks Ticks, ok bool) {
	const idle, iowait, counters, bits = 3, 4, 8, 60
	if len(fields) < counters {
		return Ticks{}, false
	}
	for i, field := range fields[:counters] {
		// Eight of so many bits have a sum.
		count, err := strconv.ParseUint(field, 10, bits)
		if err != nil {
			return Ticks{}, false
		}
		ticks.All += count
		if i != idle && i != iowait {
			ticks.Busy += count
		}
	}
	return ticks, true
}

// busySince is for how long a CPU was at work and for how long at all between two readings, or why nobody knows.
func busySince(before, after Fact[map[int]Ticks], cpu int) (busy, all uint64, unknown string) {
	for _, one := range []Fact[map[int]Ticks]{before, after} {
		if !one.Known {
			return 0, 0, procStat + ": " + one.Reason
		}
	}
	was, here := before.Value[cpu]
	is, still := after.Value[cpu]
	switch {
	case !here || !still:
		return 0, 0, fmt.Sprintf("%s has no line of CPU %d", procStat, cpu)
	case is.Busy < was.Busy || is.All < was.All:
		return 0, 0, fmt.Sprintf("%s: the counters of CPU %d went back", procStat, cpu)
	case is.All == was.All:
		return 0, 0, procStat + ": it was read twice within one tick"
	}
	// Idle time may go back a little while work goes on.
	return min(is.Busy-was.Busy, is.All-was.All), is.All - was.All, ""
}
