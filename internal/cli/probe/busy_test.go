// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"errors"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/procfs"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// ticks are those of CPUs, which pass while somebody waits.
type ticks struct {
	// isBusy says in which windows, from 0, a CPU is at work.
	isBusy  map[int64]func(window int) bool
	now     map[int64]procfs.CPUStat
	windows int
}

func (c *ticks) read() (procfs.Stat, error) { return procfs.Stat{CPU: maps.Clone(c.now)}, nil }

func (c *ticks) wait() error {
	for id, of := range c.now {
		of.Idle += 0.25
		if at := c.isBusy[id]; at != nil && at(c.windows) {
			of.User += 0.25
		}
		c.now[id] = of
	}
	c.windows++
	return nil
}

// TestStayBusy: a CPU is busy that is at work in every window, and one that comes to rest is not, however busy another is meanwhile.
func TestStayBusy(t *testing.T) {
	always := func(int) bool { return true }
	for name, tc := range map[string]struct {
		// isBusy says in which windows, from 0, CPUs 2 and 3 are at work.
		isBusy map[int64]func(window int) bool
		// want is what is said, and windows how many are looked at.
		want    string
		windows int
	}{
		"idle":                    {nil, "", 1},
		"at work":                 {map[int64]func(int) bool{2: always}, "CPU 2 is busy for 50 % of the time", busyWindows},
		"its start ends":          {map[int64]func(int) bool{2: func(window int) bool { return window < 3 }}, "", 4},
		"one of two":              {map[int64]func(int) bool{2: func(window int) bool { return window < 3 }, 3: always}, "CPU 3 is busy for 50 % of the time", busyWindows},
		"one, and then the other": {map[int64]func(int) bool{2: func(window int) bool { return window%2 == 0 }, 3: func(window int) bool { return window%2 == 1 }}, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			clock := &ticks{isBusy: tc.isBusy, now: map[int64]procfs.CPUStat{2: {}, 3: {}}}
			said, err := stayBusy(cpus.Of(2, 3), clock.read, clock.wait)
			if diff := cmp.Diff([]any{tc.want, tc.windows}, []any{said, clock.windows}); err != nil || diff != "" {
				t.Errorf("what is said, and the windows (-want +got):\n%s%v", diff, err)
			}
		})
	}
	interrupted := errors.New("interrupted")
	if _, err := stayBusy(cpus.Of(2), func() (procfs.Stat, error) { return procfs.Stat{}, nil }, func() error { return interrupted }); !errors.Is(err, interrupted) {
		t.Errorf("got %v", err)
	}
}
