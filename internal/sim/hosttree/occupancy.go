// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hosttree

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

const (
	statFile      = "/proc/stat"
	schedstatFile = "/proc/schedstat"
)

// occupancy is how long CPUs were at work up to a moment.
type occupancy struct {
	// user and idle are for how long each CPU has worked for programs and not at all, in hundredths of a second.
	user, idle map[int]uint64
	// waited is for how long processes have waited for each CPU, in nanoseconds.
	waited map[int]uint64
}

// stat is /proc/stat as far as it is about CPUs.
func (o occupancy) stat(online cpus.Set) string {
	var text strings.Builder
	for _, cpu := range online.IDs() {
		fmt.Fprintf(&text, "cpu%d %d 0 0 %d 0 0 0 0 0 0\n", cpu, o.user[cpu], o.idle[cpu])
	}
	return text.String()
}

// schedstat is /proc/schedstat without domains.
func (o occupancy) schedstat(online cpus.Set) string {
	text := strings.Builder{}
	text.WriteString("version 15\ntimestamp 4294967296\n")
	for _, cpu := range online.IDs() {
		fmt.Fprintf(&text, "cpu%d 0 0 0 0 0 0 %d %d 0\n", cpu, o.user[cpu]*10_000_000, o.waited[cpu])
	}
	return text.String()
}

// occupy lets processes that run all the time keep their CPUs busy, and wait for each other where there are several; other CPUs are idle.
func (p *period) occupy() {
	if !p.exists(statFile) || !p.exists(schedstatFile) {
		return
	}
	now := occupancy{user: p.column(statFile, 1), idle: p.column(statFile, 4), waited: p.column(schedstatFile, 8)}
	for _, cpu := range p.online.IDs() {
		if p.running[cpu] == 0 {
			now.idle[cpu] += uint64(100 * p.seconds)
			continue
		}
		now.user[cpu] += uint64(100 * p.seconds)
		now.waited[cpu] += uint64(float64(p.running[cpu]-1) * p.seconds * 1e9)
	}
	p.replace(statFile, now.stat(p.online))
	p.replace(schedstatFile, now.schedstat(p.online))
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
