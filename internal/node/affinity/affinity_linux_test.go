// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package affinity

import (
	"errors"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// allowed are the CPUs that a thread may use.
func allowed(t *testing.T, thread int) cpus.Set {
	t.Helper()
	var mask unix.CPUSet
	if err := unix.SchedGetaffinity(thread, &mask); err != nil {
		if errors.Is(err, unix.ESRCH) {
			return cpus.Set{}
		}
		t.Fatal(err)
	}
	var ids []int
	for id := range cpus.MaxCPU {
		if mask.IsSet(id) {
			ids = append(ids, id)
		}
	}
	return cpus.Of(ids...)
}

func TestKeepTo(t *testing.T) {
	all := allowed(t, 0)
	t.Cleanup(func() {
		if err := KeepTo(all); err != nil {
			t.Error(err)
		}
	})
	one := cpus.Of(all.Last())
	if err := KeepTo(one); err != nil {
		t.Fatal(err)
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			t.Fatal(err)
		}
		if got := allowed(t, id); !got.IsEmpty() && !got.Equal(one) {
			t.Errorf("thread %d may use CPUs %s, want %s", id, got, one)
		}
	}
}

func TestKeepToToNothing(t *testing.T) {
	if err := KeepTo(cpus.Set{}); err == nil {
		t.Error("no error for an empty set")
	}
}
