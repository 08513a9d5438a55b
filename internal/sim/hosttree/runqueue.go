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

// schedstat is /proc/schedstat without domains, of which the turns of each CPU count: how often a process got it.
func schedstat(online cpus.Set, turns map[int]uint64) string {
	text := strings.Builder{}
	text.WriteString("version 15\ntimestamp 4294967296\n")
	for _, cpu := range online.IDs() {
		fmt.Fprintf(&text, "cpu%d 0 0 0 0 0 0 0 0 %d\n", cpu, turns[cpu])
	}
	return text.String()
}

// schedule lets processes that run all the time take turns where there are several, and those that sleep wake up a hundred times a second.
func (p *period) schedule() {
	const turnsPerSecond, wakesPerSecond = 300, 100
	if !p.exists(schedstatFile) {
		return
	}
	turns := p.turns()
	for _, cpu := range p.online.IDs() {
		perSecond := wakesPerSecond * p.sleeping[cpu]
		if p.isCrowded(cpu) {
			perSecond += turnsPerSecond
		}
		turns[cpu] += uint64(float64(perSecond) * p.seconds)
	}
	p.replace(schedstatFile, schedstat(p.online, turns))
}

// turns reads the ninth counter of the line of each CPU.
func (p *period) turns() map[int]uint64 {
	const last = 9
	found := map[int]uint64{}
	for line := range strings.Lines(p.text(schedstatFile)) {
		fields := strings.Fields(line)
		if !strings.HasPrefix(line, "cpu") || len(fields) <= last {
			continue
		}
		count, err := strconv.ParseUint(fields[last], 10, 64)
		if err != nil {
			p.fail(schedstatFile, err)
		}
		found[p.number(strings.TrimPrefix(fields[0], "cpu"))] = count
	}
	return found
}
