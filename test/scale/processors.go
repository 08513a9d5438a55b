// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is in what the kernel counts processor time.
const tick = 10 * time.Millisecond

// The parts of the measurement by which processors are used.
const (
	partManager    = "manager"
	partSimulation = "simulation"
	// partRest is what the machine does besides.
	partRest = "other programs"
)

// processors is how much processor time each part has used.
type processors map[string]time.Duration

// minus is what was used since.
func (p processors) minus(before processors) processors {
	used := processors{}
	for part, time := range p {
		used[part] = time - before[part]
	}
	return used
}

// usedProcessors reads how much processor time the parts have used: this process, which is the simulation, the processes that
// it has started, and all others together.
func usedProcessors() (processors, error) {
	all, err := machineTime()
	if err != nil {
		return nil, err
	}
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, fmt.Errorf("looking for processes: %w", err)
	}
	used := processors{partRest: all}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			// The process has ended.
			continue
		}
		one, err := parseProcess(string(text))
		if err != nil {
			return nil, err
		}
		if part := one.part(os.Getpid()); part != "" {
			used[part] += one.used
			used[partRest] -= one.used
		}
	}
	return used, nil
}

// machineTime is how much processor time all programs have used since the machine has started.
func machineTime() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("reading the processor time of the machine: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	// User, nice and system; what follows is idle.
	const programs = 3
	fields := strings.Fields(strings.TrimPrefix(line, "cpu "))
	if len(fields) < programs {
		return 0, fmt.Errorf("/proc/stat begins with %q", line)
	}
	return ticks(fields[:programs])
}

// process is what the kernel tells of one.
type process struct {
	pid, parent int
	name        string
	used        time.Duration
}

// part is that to which a process belongs that this one may have started; "" for others.
func (p *process) part(self int) string {
	switch {
	case p.pid == self:
		return partSimulation
	case p.parent != self:
		return ""
	case strings.Contains(p.name, "operator"):
		return partManager
	default:
		return p.name
	}
}

// parseProcess reads /proc/PID/stat.
func parseProcess(text string) (process, error) {
	before, rest, _ := strings.Cut(text, " (")
	// A name may hold parentheses and spaces.
	end := max(strings.LastIndex(rest, ") "), 0)
	name, fields := rest[:end], strings.Fields(strings.TrimPrefix(rest[end:], ") "))
	const parent, user, system = 1, 11, 12
	if len(fields) <= system {
		return process{}, fmt.Errorf("the kernel tells of a process %q", text)
	}
	used, err := ticks(fields[user : system+1])
	if err != nil {
		return process{}, err
	}
	p := process{name: name, used: used}
	if p.pid, err = strconv.Atoi(before); err != nil {
		return process{}, fmt.Errorf("reading the number of a process: %w", err)
	}
	if p.parent, err = strconv.Atoi(fields[parent]); err != nil {
		return process{}, fmt.Errorf("reading the parent of process %d: %w", p.pid, err)
	}
	return p, nil
}

// ticks adds processor times as the kernel prints them.
func ticks(fields []string) (time.Duration, error) {
	var total time.Duration
	for _, field := range fields {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading a processor time: %w", err)
		}
		total += time.Duration(n) * tick
	}
	return total, nil
}
