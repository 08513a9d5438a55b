// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// stat is a host whose CPU 1 has counted so much, in the order of /proc/stat.
func stat(counters string) files {
	return files{"proc/version": "Linux", "proc/stat": "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 1 1 1 1 1 1 1 1 1\ncpu1 " + counters + "\nintr 5 1 2\nctxt 7\n"}
}

func TestBusy(t *testing.T) {
	const before = "10 20 30 4000 500 60 70 80 3 2"
	for name, tc := range map[string]struct {
		after     files
		busy, all uint64
		unknown   string
	}{
		"at work of each kind":           {stat("11 22 34 4008 516 92 134 208 3 2"), 1 + 2 + 4 + 32 + 64 + 128, 255, ""},
		"idle":                           {stat("10 20 30 4090 510 60 70 80 3 2"), 0, 100, ""},
		"guests count once":              {stat("40 20 30 4000 500 60 70 80 33 2"), 30, 30, ""},
		"idle time went back":            {stat("40 20 30 3990 500 60 70 80 3 2"), 20, 20, ""},
		"within a tick":                  {stat(before), 0, 0, "/proc/stat: it was read twice within one tick"},
		"work went back":                 {stat("9 20 30 4090 500 60 70 80 3 2"), 0, 0, "/proc/stat: the counters of CPU 1 went back"},
		"the CPU is offline":             {files{"proc/version": "Linux", "proc/stat": "cpu0 1 1 1 1 1 1 1 1\n"}, 0, 0, "/proc/stat has no line of CPU 1"},
		"an old kernel without steal":    {stat("10 20 30 4000 500 60 70"), 0, 0, `/proc/stat: "cpu1 10 20 30 4000 500 60 70\n" is no line of a CPU`},
		"a counter that is none":         {stat("10 20 30 -1 500 60 70 80"), 0, 0, `/proc/stat: "cpu1 10 20 30 -1 500 60 70 80\n" is no line of a CPU`},
		"a CPU that cannot be":           {files{"proc/version": "Linux", "proc/stat": "cpux 1 1 1 1 1 1 1 1\n"}, 0, 0, `/proc/stat: "cpux 1 1 1 1 1 1 1 1\n" is no line of a CPU`},
		"no such file":                   {files{"proc/version": "Linux"}, 0, 0, "/proc/stat: no such file"},
		"a counter that would overflow ": {stat("18446744073709551615 1 1 1 1 1 1 1"), 0, 0, `/proc/stat: "cpu1 18446744073709551615 1 1 1 1 1 1 1\n" is no line of a CPU`},
	} {
		got := isolationIn(t, tc.after, nil).Since(isolationIn(t, stat(before), nil), 1)
		if got.BusyTicks != tc.busy || got.AllTicks != tc.all || got.BusyUnknown != tc.unknown {
			t.Errorf("%s: %d of %d ticks, %q", name, got.BusyTicks, got.AllTicks, got.BusyUnknown)
		}
	}
}

// FuzzBusy: whatever stands in the file, a CPU is one that can be, and was at work for no longer than at all.
func FuzzBusy(f *testing.F) {
	f.Add("cpu0 1 2 3 4 5 6 7 8 9 10\n")
	f.Add("cpu-1 1 2\ncpu")
	f.Fuzz(func(t *testing.T, text string) {
		found, err := parseBusy(text)
		if err != nil && found != nil {
			t.Fatalf("an error and %v", found)
		}
		for cpu, ticks := range found {
			if cpu < 0 || cpu > cpus.MaxCPU || ticks.Busy > ticks.All {
				t.Fatalf("CPU %d: %+v", cpu, ticks)
			}
		}
	})
}
