// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hosttree

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

const schedstatFile = "/proc/schedstat"

// runQueues are what the scheduler has counted on CPUs.
type runQueues struct {
	// waited is for how long processes have waited for each CPU, in nanoseconds, and turns how often one got it.
	waited, turns map[int]uint64
}

// text is /proc/schedstat without domains.
func (q runQueues) text(online cpus.Set) string {
	text := strings.Builder{}
	text.WriteString("version 15\ntimestamp 4294967296\n")
	for _, cpu := range online.IDs() {
		fmt.Fprintf(&text, "cpu%d 0 0 0 0 0 0 0 %d %d\n", cpu, q.waited[cpu], q.turns[cpu])
	}
	return text.String()
}

// schedule lets processes that run all the time wait for each other where there are several, and take turns; those that sleep wake up a hundred times a second.
func (p *period) schedule() {
	const waited, turns, nanosecond, turnsPerSecond, wakesPerSecond = 8, 9, 1e-9, 300, 100
	if !p.exists(schedstatFile) {
		return
	}
	now := runQueues{waited: p.column(schedstatFile, waited), turns: p.column(schedstatFile, turns)}
	for _, cpu := range p.online.IDs() {
		if p.isCrowded(cpu) {
			now.waited[cpu] += uint64(float64(p.running[cpu]-1) * p.seconds / nanosecond)
			now.turns[cpu] += uint64(turnsPerSecond * p.seconds)
		}
		now.turns[cpu] += uint64(float64(wakesPerSecond*p.sleeping[cpu]) * p.seconds)
	}
	p.replace(schedstatFile, now.text(p.online))
}

// column is a field of the lines of CPUs, by CPU. The first field is the name of the CPU.
func (p *period) column(file string, field int) map[int]uint64 {
	found := map[int]uint64{}
	for line := range strings.Lines(p.text(file)) {
		fields := strings.Fields(line)
		if !strings.HasPrefix(line, "cpu") || len(fields) <= field {
			continue
		}
		count, err := strconv.ParseUint(fields[field], 10, 64)
		if err != nil {
			p.fail(file, err)
		}
		found[p.number(strings.TrimPrefix(fields[0], "cpu"))] = count
	}
	return found
}
