// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package lab

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestParseWaited(t *testing.T) {
	for text, want := range map[string]time.Duration{"448374 111515 2\n": 111515, "1 0 1\n": 0, "0 7 1\n": 7} {
		if got, err := parseWaited(text); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{"": "not three numbers", "1 2\n": "not three numbers", "a b c\n": "not three numbers", "1 -2 3\n": "not three numbers", "0 0 0\n": "counts nothing"} {
		if got, err := parseWaited(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}

func FuzzParseWaited(f *testing.F) {
	for _, text := range []string{"448374 111515 2\n", "0 0 0\n", "", "1 2 9223372036854775808\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := parseWaited(text); got < 0 || err != nil && got != 0 {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	})
}

// TestWaited reads what the kernel says of a process that runs, and says so of one that is gone.
func TestWaited(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// Two that want one CPU: each waits for the other.
	const spin = "while :; do :; done"
	command := exec.CommandContext(ctx, "taskset", "-c", "0", "sh", "-c", spin)
	rival := exec.CommandContext(ctx, "taskset", "-c", "0", "sh", "-c", spin)
	for _, one := range []*exec.Cmd{command, rival} {
		if err := one.Start(); err != nil {
			t.Fatal(err)
		}
	}
	m := &Machine{spec: machineSpec(), process: &process{pid: command.Process.Pid}}
	var waited time.Duration
	for begin := time.Now(); waited < 20*time.Millisecond && time.Since(begin) < 20*time.Second; time.Sleep(10 * time.Millisecond) {
		var err error
		if waited, err = m.Waited(); err != nil {
			t.Fatal(err)
		}
	}
	if waited < 20*time.Millisecond {
		t.Errorf("one of two processes on a CPU waited for %s", waited)
	}
	cancel()
	for _, one := range []*exec.Cmd{command, rival} {
		// They were killed, and that is an error.
		_ = one.Wait()
	}
	if waited, err := m.Waited(); err == nil || !strings.Contains(err.Error(), "does not say for how long") {
		t.Errorf("a process that is gone waited for %s, %v", waited, err)
	}
}
