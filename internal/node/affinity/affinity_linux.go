// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package affinity keeps this process to a set of CPUs.
package affinity

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// KeepTo keeps every thread of this process to a set of CPUs; threads that they start later inherit
// it. It fails where the container may use none of these CPUs.
func KeepTo(set cpus.Set) error {
	var mask unix.CPUSet
	for _, id := range set.IDs() {
		mask.Set(id)
	}
	// A thread that has not been reached yet may start another: the second round finds it.
	for range 2 {
		if err := keepThreads(&mask); err != nil {
			return fmt.Errorf("keeping this process to CPUs %s: %w", set, err)
		}
	}
	return nil
}

func keepThreads(mask *unix.CPUSet) error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("listing threads: %w", err)
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			continue
		}
		err = unix.SchedSetaffinity(id, mask)
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("thread %d: %w", id, err)
		}
	}
	return nil
}

// Own are the CPUs that this process may use, which are those of its container.
func Own() (cpus.Set, error) {
	var mask unix.CPUSet
	if err := unix.SchedGetaffinity(0, &mask); err != nil {
		return cpus.Set{}, fmt.Errorf("asking for the CPUs of this process: %w", err)
	}
	var ids []int
	for id := range len(mask) * bits.UintSize {
		if mask.IsSet(id) {
			ids = append(ids, id)
		}
	}
	return cpus.Of(ids...), nil
}
