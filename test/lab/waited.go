// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Waited is for how long the threads of the machine's emulator have been ready to run and had no CPU of this machine, since the machine was started: the
// sum over the threads that are there (/proc/PID/task/TID/schedstat, Documentation/scheduler/sched-stats.rst). The machine itself cannot know that its
// processors stood still.
func (m *Machine) Waited() (time.Duration, error) {
	all, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", m.process.pid))
	if err != nil {
		return 0, fmt.Errorf("machine %s: %w", m.spec.Name, err)
	}
	var sum time.Duration
	read := 0
	for _, file := range all {
		text, err := os.ReadFile(file)
		if err != nil {
			// A thread of the emulator that has ended since.
			continue
		}
		waited, err := parseWaited(string(text))
		if err != nil {
			return 0, fmt.Errorf("machine %s: %s: %w", m.spec.Name, file, err)
		}
		sum += waited
		read++
	}
	if read == 0 {
		return 0, fmt.Errorf("machine %s: the kernel of this machine does not say for how long its emulator waited", m.spec.Name)
	}
	return sum, nil
}

// parseWaited is the second of the three numbers of a thread's schedstat, in nanoseconds. A kernel that counts nothing says 0 of all three (CONFIG_SCHED_INFO),
// and a thread that has begun has run.
func parseWaited(text string) (time.Duration, error) {
	var ran, waited, times int64
	if n, err := fmt.Sscanf(text, "%d %d %d\n", &ran, &waited, &times); err != nil || n != 3 || min(ran, waited, times) < 0 {
		return 0, fmt.Errorf("these are not three numbers: %.60q", text)
	}
	if ran == 0 && times == 0 {
		return 0, errors.New("the kernel counts nothing")
	}
	return time.Duration(waited), nil
}
