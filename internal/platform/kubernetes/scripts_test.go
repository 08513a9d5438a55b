// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package kubernetes

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func put(t *testing.T, name, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

// script runs a script with programs of the test in place of those that would change the machine.
func script(t *testing.T, content, programs string, environment []string, arguments ...string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script")
	put(t, file, content, 0o755)
	command := exec.CommandContext(t.Context(), "/bin/sh", append([]string{file}, arguments...)...)
	command.Env = append([]string{"PATH=" + programs + ":/usr/bin:/bin"}, environment...)
	out, err := command.CombinedOutput()
	return string(out), err
}

// TestLatencyLimit: the limit is that of the idle state, and 3 where there is none.
func TestLatencyLimit(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/bin/sleep", "#!/bin/sh\n", 0o755)
	put(t, dir+"/sys/devices/system/cpu/cpu0/cpuidle/state1/latency", "18\n", 0o644)
	for state, want := range map[string]string{"1": "0x00000012", "7": "0x00000003"} {
		put(t, dir+"/dev/cpu_dma_latency", "", 0o644)
		out, err := script(t, latencyLimitScript, dir+"/bin", []string{"LOWLATENCY_SYSFS=" + dir + "/sys", "LOWLATENCY_DEVICES=" + dir + "/dev"}, state)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got, err := os.ReadFile(dir + "/dev/cpu_dma_latency"); err != nil || string(got) != want {
			t.Errorf("state %s: wrote %q, %v, want %q", state, got, err, want)
		}
	}
	if out, err := script(t, latencyLimitScript, dir+"/bin", nil); err == nil {
		t.Errorf("runs without a state: %s", out)
	}
}

// TestThreadPriorities: threads of the kernel with the name and a CPU get it, programs that call themselves so do not.
func TestThreadPriorities(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/bin/chrt", "#!/bin/sh\necho \"$@\" >>"+dir+"/calls\n", 0o755)
	for pid, thread := range map[string][2]string{
		"12": {"ksoftirqd/0", "2097152"}, "14": {"ksoftirqd/11", "2097152"}, "15": {"rcuc/1", "2097152"},
		"16": {"ksoftirqd", "2097152"}, "9000": {"ksoftirqd/0", "0"},
	} {
		put(t, dir+"/proc/"+pid+"/comm", thread[0]+"\n", 0o644)
		put(t, dir+"/proc/"+pid+"/stat", pid+" ("+thread[0]+") S 2 0 0 0 0 "+thread[1]+" 0\n", 0o644)
	}
	out, err := script(t, threadPrioritiesScript, dir+"/bin", []string{"LOWLATENCY_PROCFS=" + dir + "/proc"}, "ksoftirqd=2", "rcuc=4")
	if err != nil || !strings.Contains(out, "3 threads") {
		t.Fatalf("%v: %s", err, out)
	}
	calls, err := os.ReadFile(dir + "/calls")
	if want := "--fifo --pid 2 12\n--fifo --pid 2 14\n--fifo --pid 4 15\n"; err != nil || string(calls) != want {
		t.Errorf("calls %q, %v, want %q", calls, err, want)
	}
}
