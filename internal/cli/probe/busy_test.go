// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/procfs"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// TestStayBusy: a CPU is busy that is at work in every window, and one that comes to rest is not, however busy another is meanwhile.
func TestStayBusy(t *testing.T) {
	always := func(int) bool { return true }
	for name, tc := range map[string]struct {
		// isBusy says in which windows, from 0, CPUs 2 and 3 are at work.
		isBusy map[int64]func(window int) bool
		// want is a part of what is said; "" for nothing. windows is how many are looked at.
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
			windows := 0
			now := map[int64]procfs.CPUStat{2: {}, 3: {}}
			read := func() (procfs.Stat, error) {
				stat := procfs.Stat{CPU: map[int64]procfs.CPUStat{}}
				for id, of := range now {
					stat.CPU[id] = of
				}
				return stat, nil
			}
			wait := func() error {
				for id, of := range now {
					of.Idle += 0.25
					if at := tc.isBusy[id]; at != nil && at(windows) {
						of.User += 0.25
					}
					now[id] = of
				}
				windows++
				return nil
			}
			said, err := stayBusy(cpus.Of(2, 3), read, wait)
			if err != nil || (said == "") != (tc.want == "") || !strings.Contains(said, tc.want) || windows != tc.windows || strings.Contains(said, "CPU 2") != strings.Contains(tc.want, "CPU 2") {
				t.Errorf("after %d windows, want %d: %q, want %q; %v", windows, tc.windows, said, tc.want, err)
			}
		})
	}
	interrupted := errors.New("interrupted")
	if _, err := stayBusy(cpus.Of(2), func() (procfs.Stat, error) { return procfs.Stat{}, nil }, func() error { return interrupted }); !errors.Is(err, interrupted) {
		t.Errorf("got %v", err)
	}
}
