// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package traffic

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
)

// counts writes what a host with the CPUs 0 and 1 has counted.
func counts(t *testing.T, root, interrupts, softirqs string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(root, "proc"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"interrupts": "      CPU0  CPU1\n" + interrupts, "softirqs": "      CPU0  CPU1\n" + softirqs} {
		if err := os.WriteFile(filepath.Join(root, "proc", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// counting opens a host whose CPUs 0 and 1 have counted something, and more after each measurement that moved makes: CPU 1 gets the interrupt of
// a device, and CPU 0 more of everything.
func counting(t *testing.T) (root string, h *host.Host, moved func() (*latency.Result, error)) {
	t.Helper()
	root = t.TempDir()
	counts(t, root, " 24:  10  20  PCI-MSI 1-edge  eth0-rx-0\nLOC:  5  5  Local timer interrupts\n", "NET_RX:  1  1\n")
	h, err := host.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return root, h, func() (*latency.Result, error) {
		counts(t, root, " 24:  99  520  PCI-MSI 1-edge  eth0-rx-0\nLOC:  50  7  Local timer interrupts\n 25:  0  3  new\n", "NET_RX:  900  31\n")
		return &latency.Result{Preemptions: 3}, nil
	}
}

func TestCounting(t *testing.T) {
	_, h, moved := counting(t)
	got, err := Counting(t.Context(), h, 1, moved)
	if err != nil {
		t.Fatal(err)
	}
	want := []counted.Event{
		{Kind: counted.Interrupt, Name: "24 PCI-MSI 1-edge eth0-rx-0", Count: 500}, {Kind: counted.Softirq, Name: "NET_RX", Count: 30},
		{Kind: counted.Interrupt, Name: "LOC Local timer interrupts", Count: 2},
	}
	if diff := cmp.Diff(want, got.Counted); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.CountedNanoseconds <= 0 || got.InterruptsFrom != "/proc/interrupts" || got.Preemptions != 3 {
		t.Errorf("%+v", got)
	}
}

func TestCountingNothing(t *testing.T) {
	root, h, moved := counting(t)
	if got, err := Counting(t.Context(), h, -1, moved); err != nil || got.Counted != nil || got.CountedNanoseconds != 0 {
		t.Errorf("of no CPU it counted %+v, %v", got, err)
	}
	failed := errors.New("no server")
	if _, err := Counting(t.Context(), h, 1, func() (*latency.Result, error) { return nil, failed }); !errors.Is(err, failed) {
		t.Errorf("the error is %v", err)
	}
	if err := os.Remove(filepath.Join(root, "proc/interrupts")); err != nil {
		t.Fatal(err)
	}
	got, err := Counting(t.Context(), h, 1, func() (*latency.Result, error) { return &latency.Result{}, nil })
	if err != nil || got.InterruptsFrom != host.NoInterrupts || len(got.Counted) != 0 {
		t.Errorf("without /proc/interrupts: %+v, %v", got, err)
	}
}

// TestCountingIsolation: a neighbour on the CPU of the client makes threads wait there, and an idle state costs its latency.
func TestCountingIsolation(t *testing.T) {
	root, h, _ := counting(t)
	scheduler := func(waited, entered string) {
		for name, text := range map[string]string{
			"proc/stat":      "cpu1 " + waited + " 0 0 100 0 0 0 0\n",
			"proc/schedstat": "version 15\ntimestamp 1\ncpu0 0 0 0 0 0 0 0 1 0\ncpu1 0 0 0 0 0 0 0 " + waited + " 0\n",
			"sys/devices/system/cpu/cpu1/cpuidle/state0/name": "C1\n", "sys/devices/system/cpu/cpu1/cpuidle/state0/usage": entered + "\n",
		} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	scheduler("100", "7")
	got, err := Counting(t.Context(), h, 1, func() (*latency.Result, error) {
		scheduler("2500", "9")
		return &latency.Result{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	checkTimes(t, got)
	want := &counted.Isolation{CPU: 1, Nanoseconds: got.Isolation.Nanoseconds, IdleNanoseconds: got.Isolation.IdleNanoseconds, WaitedNanoseconds: 2400, BusyTicks: 2400, AllTicks: 2400, IdleStates: []counted.IdleEntries{{State: "C1", Count: 2}}}
	if diff := cmp.Diff(want, got.Isolation); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := os.RemoveAll(filepath.Join(root, "sys")); err != nil {
		t.Fatal(err)
	}
	got, err = Counting(t.Context(), h, 1, func() (*latency.Result, error) { return &latency.Result{}, nil })
	if err != nil || got.Isolation.IdleUnknown == "" || got.Isolation.RunQueueUnknown != "" {
		t.Errorf("without idle states: %+v, %v", got.Isolation, err)
	}
}

// checkTimes wants what is counted to be counted within the time of both readings.
func checkTimes(t *testing.T, of *latency.Result) {
	t.Helper()
	waited, idle := of.Isolation.Nanoseconds, of.Isolation.IdleNanoseconds
	if min(waited, idle) <= 0 || max(waited, idle) > of.CountedNanoseconds {
		t.Errorf("waits over %d ns and idle states over %d ns of %d", waited, idle, of.CountedNanoseconds)
	}
}
