// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build amd64 || arm64

package jitter

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/affinity"
)

// measuring tells this test program that it is the process that measures.
const measuring = "LOWLATENCY_TEST_MEASURE"

func TestMain(m *testing.M) {
	if os.Getenv(measuring) == "" {
		os.Exit(m.Run())
	}
	if err := Serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func itself(ctx context.Context) *exec.Cmd {
	command := exec.CommandContext(ctx, os.Args[0])
	command.Env = append(append(os.Environ(), Environment()...), measuring+"=1")
	return command
}

// someCPUs are a CPU to measure and all CPUs of this process, which go back to it at the end.
func someCPUs(t *testing.T) (measured, control cpus.Set) {
	t.Helper()
	var mask unix.CPUSet
	if err := unix.SchedGetaffinity(0, &mask); err != nil {
		t.Fatal(err)
	}
	var all cpus.Set
	for id := range cpus.MaxCPU {
		if mask.IsSet(id) {
			all = all.Union(cpus.Of(id))
			measured = cpus.Of(id)
		}
	}
	t.Cleanup(func() {
		if err := affinity.KeepTo(all); err != nil {
			t.Error(err)
		}
	})
	if len(all.IDs()) == 1 {
		return measured, all
	}
	return measured, all.Difference(measured)
}

func thisHost(t *testing.T) *host.Host {
	t.Helper()
	h, err := host.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// TestRun measures this machine, whatever it is at: what is certain is that the loop ran, that the kernel's timer is
// among what moved on a CPU that is not isolated, and that the sums agree.
func TestRun(t *testing.T) {
	measured, control := someCPUs(t)
	var passed time.Duration
	result, err := Run(t.Context(), Options{
		Request:   Request{Duration: 500 * time.Millisecond, WarmUp: 50 * time.Millisecond, Threshold: time.Microsecond},
		Placement: Placement{Measured: measured, Control: control},
		Host:      thisHost(t), Command: itself, SampleInterval: 20 * time.Millisecond,
		Progress: func(d time.Duration) { passed = d },
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(result.CPUs) != 1 || result.Scheduling != "SCHED_OTHER" || passed == 0 {
		t.Fatalf("the result is of %d CPUs with %s, progress %s", len(result.CPUs), result.Scheduling, passed)
	}
	one := &result.CPUs[0]
	if one.CPU != measured.IDs()[0] || one.Loops == 0 || one.LoopNanoseconds <= 0 || one.LoopNanoseconds > 1_000 {
		t.Errorf("CPU %d had %d loops of %g ns", one.CPU, one.Loops, one.LoopNanoseconds)
	}
	if one.PreemptionsPerSecond() == nil {
		t.Errorf("nobody knows how often the kernel gave the CPU to something else: %+v", one.Counted)
	}
	checkSums(t, one)
}

// TestIsolationIsReadWithinTheMeasurement: the time that the warm-up took before says nothing of when it ends. A reading after it would count a CPU that is idle.
func TestIsolationIsReadWithinTheMeasurement(t *testing.T) {
	measured, _ := someCPUs(t)
	options := &Options{Request: Request{Duration: 10 * time.Second, WarmUp: 5 * time.Second}, Placement: Placement{Measured: measured}, Host: thisHost(t)}
	var i isolation
	for _, reading := range []struct {
		passed, last time.Duration
	}{{0, 0}, {time.Second - 1, 0}, {time.Second, time.Second}, {2*time.Second - 1, time.Second}, {9 * time.Second, 9 * time.Second}, {10 * time.Second, 9 * time.Second}} {
		if err := i.take(t.Context(), options, reading.passed); err != nil || i.lastAt != reading.last || (i.last != nil) != (reading.last > 0) {
			t.Errorf("after %s the last reading is of %s: %v", reading.passed, i.lastAt, err)
		}
	}
}

// checkSums compares what a result says in several ways.
func checkSums(t *testing.T, one *CPUResult) {
	t.Helper()
	if seconds := float64(one.DurationNanoseconds) / 1e9; seconds < 0.45 || seconds > 2 {
		t.Errorf("the measurement of half a second took %g s of the counter", seconds)
	}
	if counted := inHistogram(one); counted+one.NotRecorded != one.Interruptions {
		t.Errorf("the histogram has %d interruptions of %d", counted, one.Interruptions)
	}
	if len(one.Worst) > 0 && !slices.ContainsFunc(one.Worst, func(i Interruption) bool { return len(i.Causes) > 0 }) {
		t.Errorf("none of %d interruptions of a CPU that other programs use has a cause", len(one.Worst))
	}
}

func inHistogram(one *CPUResult) uint64 {
	var counted uint64
	for _, bucket := range one.Histogram {
		counted += bucket.Count
	}
	return counted
}

func TestRunSaysWhatWentWrong(t *testing.T) {
	measured, control := someCPUs(t)
	good := Options{
		Request:   Request{Duration: 100 * time.Millisecond, Threshold: time.Microsecond},
		Placement: Placement{Measured: measured, Control: control}, Host: thisHost(t), Command: itself,
	}
	program := func(name string, arguments ...string) func(context.Context) *exec.Cmd {
		return func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, name, arguments...) }
	}
	cases := map[string]struct {
		change func(*Options)
		want   string
	}{
		"a request that makes no sense": {func(o *Options) { o.Request.Duration = 0 }, "the duration 0s"},
		"a CPU that is not there":       {func(o *Options) { o.Placement.Measured = cpus.Of(cpus.MaxCPU) }, "moving to CPU"},
		"a control CPU that is not":     {func(o *Options) { o.Placement.Control = cpus.Of(cpus.MaxCPU) }, "keeping this process"},
		"no program":                    {func(o *Options) { o.Command = program("/does/not/exist") }, "starting the process that measures"},
		"a program that dies":           {func(o *Options) { o.Command = program("sh", "-c", "read x; echo no memory >&2; exit 1") }, "the process that measures failed: no memory"},
		"a program that says nothing":   {func(o *Options) { o.Command = program("true") }, "talking to the process that measures"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			options := good
			tc.change(&options)
			_, err := Run(t.Context(), options)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %q", err, tc.want)
			}
		})
	}
}

// TestRunEndsWithItsContext: whoever asked no longer waits, so nothing goes on measuring.
func TestRunEndsWithItsContext(t *testing.T) {
	measured, control := someCPUs(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Run(ctx, Options{
		Request:   Request{Duration: time.Hour, Threshold: time.Microsecond},
		Placement: Placement{Measured: measured, Control: control}, Host: thisHost(t), Command: itself,
		SampleInterval: 10 * time.Millisecond, Progress: func(time.Duration) { cancel() },
	})
	if err == nil {
		t.Error("a measurement that was ended gives a result")
	}
}
