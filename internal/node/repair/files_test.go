// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package repair_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/repair"
)

const ksm = "/sys/kernel/mm/ksm/run"

func TestPutWritesOneFileOfTheHost(t *testing.T) {
	root := t.TempDir()
	put(t, root, ksm, "1\n")
	if err := (repair.Files{Root: root}).Put(repair.Write{Path: ksm, New: "2"}); err != nil {
		t.Fatal(err)
	}
	if got := content(t, root, ksm); got != "2\n" {
		t.Errorf("the file holds %q", got)
	}
}

// Interfaces and frequency policies are links within /sys.
func TestPutFollowsLinksWithinTheHost(t *testing.T) {
	root := t.TempDir()
	const real, linked = "/sys/devices/system/cpu/cpufreq/policy4/scaling_governor", "/sys/devices/system/cpu/cpu4/cpufreq/scaling_governor"
	put(t, root, real, "powersave\n")
	link(t, "../cpufreq/policy4", filepath.Join(root, filepath.Dir(linked)))
	if err := (repair.Files{Root: root}).Put(repair.Write{Path: linked, New: "performance"}); err != nil {
		t.Fatal(err)
	}
	if got := content(t, root, real); got != "performance\n" {
		t.Errorf("the file holds %q", got)
	}
}

func TestPutRefuses(t *testing.T) {
	cases := map[string]struct {
		prepare func(t *testing.T, root string)
		write   repair.Write
		want    string
	}{
		"a file that starts a program": {
			prepare: has("/proc/sys/kernel/core_pattern"), write: repair.Write{Path: "/proc/sys/kernel/core_pattern", New: "0"},
			want: "is not among the files that may be written",
		},
		"a path with detours": {
			prepare: has("/etc/passwd"), write: repair.Write{Path: "/proc/irq/../../etc/passwd", New: "0"},
			want: "is not among the files that may be written",
		},
		"a value that is none": {
			prepare: has(ksm), write: repair.Write{Path: ksm, New: "2\n1"}, want: `"2\n1" is no value for /sys/kernel/mm/ksm/run`,
		},
		"a file that is missing": {write: repair.Write{Path: ksm, New: "2"}, want: "opening /sys/kernel/mm/ksm/run: no such file"},
		"a link out of the host": {
			prepare: func(t *testing.T, root string) {
				t.Helper()
				outside := filepath.Join(t.TempDir(), "run")
				put(t, "/", outside, "untouched")
				link(t, outside, filepath.Join(root, ksm))
			},
			write: repair.Write{Path: ksm, New: "2"}, want: "opening /sys/kernel/mm/ksm/run: ",
		},
		"a folder in the place of the file": {
			prepare: func(t *testing.T, root string) {
				t.Helper()
				if err := os.MkdirAll(filepath.Join(root, ksm), 0o755); err != nil {
					t.Fatal(err)
				}
			},
			write: repair.Write{Path: ksm, New: "2"}, want: "is a directory",
		},
		"a pipe in the place of the file": {
			prepare: func(t *testing.T, root string) {
				t.Helper()
				has(ksm)(t, root)
				if err := os.Remove(filepath.Join(root, ksm)); err != nil {
					t.Fatal(err)
				}
				if err := unix.Mkfifo(filepath.Join(root, ksm), 0o600); err != nil {
					t.Fatal(err)
				}
			},
			write: repair.Write{Path: ksm, New: "2"}, want: "/sys/kernel/mm/ksm/run: no such device or address",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if tc.prepare != nil {
				tc.prepare(t, root)
			}
			err := (repair.Files{Root: root}).Put(tc.write)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	if err := (repair.Files{Root: "/nowhere"}).Put(repair.Write{Path: ksm, New: "2"}); err == nil || !strings.Contains(err.Error(), "opening the host: no such file") {
		t.Errorf("a root that is missing: %v", err)
	}
}

// TestAllowed: what a plan can set may be written, and what no plan sets may not.
func TestAllowed(t *testing.T) {
	const cpu, pages = "/sys/devices/system/cpu/", "/sys/kernel/mm/transparent_hugepage/"
	cases := map[repair.Write]bool{
		{Path: "/proc/irq/142/smp_affinity_list", New: "0-1,40"}:             true,
		{Path: "/proc/irq/default_smp_affinity", New: "ff,00000003"}:         true,
		{Path: "/sys/devices/virtual/workqueue/cpumask", New: "3"}:           true,
		{Path: "/sys/devices/virtual/workqueue/writeback/cpumask", New: "3"}: true,
		{Path: "/sys/bus/workqueue/devices/writeback/cpumask", New: "3"}:     true,
		{Path: "/sys/class/net/ens7f0/queues/rx-0/rps_cpus", New: "3"}:       true,
		{Path: pages + "enabled", New: "never"}:                              true,
		{Path: pages + "enabled", New: "always"}:                             false,
		{Path: pages + "hugepages-64kB/enabled", New: "never"}:               true,
		{Path: pages + "hugepages-64kB/shmem_enabled", New: "never"}:         true,
		{Path: pages + "hugepages-64kB/enabled", New: "always"}:              false,
		{Path: pages + "hugepages-64kB/../enabled", New: "never"}:            false,
		{Path: pages + "defrag", New: "never"}:                               false,
		{Path: pages + "khugepaged/defrag", New: "0"}:                        false,
		{Path: ksm, New: "2"}: true,
		{Path: ksm, New: "1"}: false,
		{Path: cpu + "cpu4/cpufreq/scaling_governor", New: "performance"}: true,
		{Path: cpu + "cpu4/cpufreq/scaling_governor", New: "powersave"}:   false,
		{Path: cpu + "cpu4/cpufreq/scaling_max_freq", New: "2400000"}:     true,
		{Path: cpu + "cpu4/cpufreq/scaling_min_freq", New: "2400000"}:     false,
		{Path: cpu + "cpufreq/policy4/scaling_max_freq", New: "2400000"}:  false,
		{Path: cpu + "intel_pstate/no_turbo", New: "1"}:                   true,
		{Path: cpu + "cpufreq/boost", New: "0"}:                           true,
		{Path: cpu + "cpu4/online", New: "0"}:                             false,
		{Path: "/proc/sys/kernel/numa_balancing", New: "0"}:               true,
		{Path: "/proc/sys/kernel/sched_rt_runtime_us", New: "-1"}:         true,
		{Path: "/proc/sys/kernel/core_pattern", New: "0"}:                 false,
		{Path: "/proc/sys/vm/stat_interval", New: "10"}:                   true,
		{Path: "/proc/sys/vm/drop_caches", New: "1"}:                      false,
		{Path: "/proc/sys/net/core/rps_default_mask", New: "3"}:           false,
	}
	for write, want := range cases {
		if err := repair.Allowed(write.Path, write.New); (err == nil) != want {
			t.Errorf("writing %s to %s: %v, want it allowed: %v", write.New, write.Path, err, want)
		}
	}
}

func FuzzAllowed(f *testing.F) {
	f.Add("/proc/irq/142/smp_affinity_list", "0-1,4")
	f.Add("/sys/class/net/ens7f0/queues/rx-0/rps_cpus", "ff,00000000")
	f.Add("/proc/sys/kernel/../core_pattern", "|/bin/sh")
	f.Fuzz(func(t *testing.T, path, value string) {
		if repair.Allowed(path, value) != nil {
			return
		}
		if filepath.Clean(path) != path || !strings.HasPrefix(path, "/proc/") && !strings.HasPrefix(path, "/sys/") {
			t.Errorf("%q may be written", path)
		}
		if strings.ContainsAny(value, " \n\x00|/$;") || value == "" {
			t.Errorf("%q may be written to %s", value, path)
		}
	})
}

// has makes a file that Put could write to.
func has(path string) func(*testing.T, string) {
	return func(t *testing.T, root string) {
		t.Helper()
		put(t, root, path, "as it was\n")
	}
}

func put(t *testing.T, root, path, text string) {
	t.Helper()
	file := filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, root, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
