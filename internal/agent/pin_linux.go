// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cpus"
)

// PinProcess keeps every thread of this process to a set of CPUs; threads that they start later inherit
// it. It fails where the container may use none of these CPUs.
func PinProcess(set cpus.Set) error {
	var mask unix.CPUSet
	for _, id := range set.IDs() {
		mask.Set(id)
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("listing the threads of this process: %w", err)
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			continue
		}
		err = unix.SchedSetaffinity(id, &mask)
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("keeping thread %d to CPUs %s: %w", id, set, err)
		}
	}
	return nil
}
