// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/jitter"
)

func TestJitter(t *testing.T) {
	cause := func(name string, count uint64) counted.Event { return counted.Event{Name: name, Count: count} }
	result := &jitter.Result{
		CounterHertz: 2.6e9, CalibrationPartsPerMillion: 0.04, ThresholdNanoseconds: 500, MemoryLocked: "locked", Scheduling: "SCHED_FIFO 1",
		CPUs: []jitter.CPUResult{
			{
				CPU: 4, LoopNanoseconds: 6.92, Interruptions: 3, NotRecorded: 1, InterruptionsPerSecond: 0.3, StolenPartsPerMillion: 12.34, MaximumNanoseconds: 7_920_090,
				OverInterruptions: []jitter.Percentile{{Percent: 50, Nanoseconds: 900}, {Percent: 99, Nanoseconds: 7_920_090}, {Percent: 99.9, Nanoseconds: 7_920_090}},
				OverTime:          []jitter.Percentile{{Percent: 99.99, Nanoseconds: 1_234}},
				Counted:           []counted.Event{{Kind: counted.Interrupt, Name: "LOC", Count: 12}, {Kind: counted.Softirq, Name: "TIMER", Count: 3}, counted.Preemptions(0)}, CountedNanoseconds: 2e9,
				Worst: []jitter.Interruption{
					{AtNanoseconds: 1_000_000, LengthNanoseconds: 900},
					{AtNanoseconds: 2_500_000_000, LengthNanoseconds: 7_920_090, Causes: []counted.Event{
						cause("LOC Local timer interrupts", 7), cause("a", 6), cause("b", 5), cause("c", 4), cause("d", 3), cause("e", 2), cause("f", 1),
					}},
				},
			},
			{CPU: 5, LoopNanoseconds: 7, OverInterruptions: []jitter.Percentile{{Percent: 50, Nanoseconds: 800}, {Percent: 99.9, Nanoseconds: 7_920_090}}},
		},
	}
	const want = `interruptions of 500ns and longer · SCHED_FIFO 1 · records locked
counter 2600.0 MHz, 0.0 ppm from the kernel's clock

CPU  LOOP    PER SECOND  STOLEN (ppm)  MEDIAN  P99  P99.9   MAXIMUM  P99.99 OF TIME
4    6.9 ns  0.3         ≥12.3         -       -    -       ≥7.92ms  ≥1.23µs
5    7.0 ns  0.0         0.0           800ns   -    7.92ms  0s       -

CPU 4, what the kernel counted, per second: 6 interrupts, 1.5 softirqs, 0 preemptions
CPU 4, the longest (1 interruptions had no room in the record)
LENGTH  AT     WHAT THE KERNEL COUNTED MEANWHILE
7.92ms  +2.5s  LOC Local timer interrupts ×7, a ×6, b ×5, c ×4, d ×3, and 2 more
900ns   +1ms   nothing: firmware (SMI), the hypervisor or the hardware

CPU 5, the longest: none
`
	if diff := cmp.Diff(want, Jitter(result, NewPalette(false), 120)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestJitterBlamesNobodyForWhatIsHidden: where interrupts are not all counted, an interruption without a cause may be one of them.
func TestJitterBlamesNobodyForWhatIsHidden(t *testing.T) {
	const blamed, hidden = "nothing: firmware (SMI), the hypervisor or the hardware", "nothing that is seen here: the kernel's own interrupts, firmware (SMI)"
	for from, want := range map[string][]string{
		"":                    {blamed},
		"/proc/interrupts":    {blamed},
		host.DeviceInterrupts: {hidden, "/proc/interrupts is hidden here", "0 interrupts of devices,"},
		host.NoInterrupts:     {hidden, "interrupts unknown, 0 softirqs"},
	} {
		result := &jitter.Result{CPUs: []jitter.CPUResult{{CPU: 4, InterruptsFrom: from, CountedNanoseconds: 1e9, Worst: []jitter.Interruption{{LengthNanoseconds: 900}}}}}
		got := Jitter(result, NewPalette(false), 160)
		for _, sentence := range []string{blamed, hidden, "/proc/interrupts is hidden here", "interrupts unknown, 0 softirqs", "0 interrupts of devices,"} {
			if strings.Contains(got, sentence) != slices.Contains(want, sentence) {
				t.Errorf("interrupts from %q, %q:\n%s", from, sentence, got)
			}
		}
	}
}

// TestJitterPairWithoutAll: what is of some interruptions alone is told from what is of all.
func TestJitterPairWithoutAll(t *testing.T) {
	of := func(notRecorded uint64) *jitter.Result {
		return &jitter.Result{ThresholdNanoseconds: 500, CPUs: []jitter.CPUResult{{
			CPU: 9, Interruptions: 900, NotRecorded: notRecorded, InterruptionsPerSecond: 90, StolenPartsPerMillion: 12.5, MaximumNanoseconds: 7_000,
			OverInterruptions: []jitter.Percentile{{Percent: 50, Nanoseconds: 900}}, CountedNanoseconds: 1e9,
		}}}
	}
	const want = `interruptions of 500ns and longer before, of 500ns and longer after

CPU          PER SECOND  STOLEN (ppm)  MEDIAN  P99  MAXIMUM  COUNTED BY THE KERNEL, PER SECOND
9    before  90.0        12.5          900ns   -    7µs      0 interrupts, 0 softirqs, preemptions unknown
9    after   90.0        ≥12.5         -       -    ≥7µs     0 interrupts, 0 softirqs, preemptions unknown
after, CPU 9: 700 of 900 interruptions had no room in the record: what is shown of lengths and of stolen time is of the others alone
`
	if diff := cmp.Diff(want, JitterPair(of(0), of(700), NewPalette(false), 120)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestJitterPair(t *testing.T) {
	before := &jitter.Result{ThresholdNanoseconds: 500, CPUs: []jitter.CPUResult{
		{
			CPU: 9, InterruptionsPerSecond: 250.4, StolenPartsPerMillion: 1234.5, MaximumNanoseconds: 7_920_090,
			OverInterruptions:  []jitter.Percentile{{Percent: 50, Nanoseconds: 900}, {Percent: 99, Nanoseconds: 7_000_000}},
			CountedNanoseconds: 1e9, Counted: []counted.Event{{Kind: counted.Interrupt, Name: "LOC", Count: 250}, counted.Preemptions(4)},
		},
		{CPU: 10},
	}}
	after := &jitter.Result{ThresholdNanoseconds: 500, CPUs: []jitter.CPUResult{{CPU: 9, CountedNanoseconds: 1e9}}}
	const want = `interruptions of 500ns and longer before, of 500ns and longer after

CPU          PER SECOND  STOLEN (ppm)  MEDIAN  P99  MAXIMUM  COUNTED BY THE KERNEL, PER SECOND
9    before  250.4       1234.5        900ns   7ms  7.92ms   250 interrupts, 0 softirqs, 4 preemptions
9    after   0.0         0.0           -       -    0s       0 interrupts, 0 softirqs, preemptions unknown
10   before  0.0         0.0           -       -    0s       -
`
	if diff := cmp.Diff(want, JitterPair(before, after, NewPalette(false), 120)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestManagementInterruptsOfJitter(t *testing.T) {
	for name, tc := range map[string]struct {
		counted *counted.ManagementInterrupts
		want    string
	}{
		"not asked": {nil, ""},
		"none":      {&counted.ManagementInterrupts{}, "CPU 4, firmware: no system management interrupt\n"},
		"some":      {&counted.ManagementInterrupts{Count: 3}, "CPU 4, firmware: system management interrupts of CPU 4: 3\n"},
		"unknown":   {&counted.ManagementInterrupts{Unknown: "no rights"}, "CPU 4, firmware: system management interrupts unknown (no rights)\n"},
	} {
		one := jitter.CPUResult{CPU: 4, CountedNanoseconds: 1e9, ManagementInterrupts: tc.counted}
		if got := managementOf(&one); got != tc.want || !strings.Contains(worst(&one, NewPalette(false), 120), tc.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestIsolationOfJitter(t *testing.T) {
	one := jitter.CPUResult{CPU: 4, CountedNanoseconds: 1e9, Isolation: &counted.Isolation{CPU: 4, Nanoseconds: 1e9, RunQueueUnknown: "/proc/schedstat: no such file"}}
	const line = "CPU 4, run queue and idle states: run queue unknown (/proc/schedstat: no such file), no idle state was entered\n"
	if got := isolationOf(&one); got != line {
		t.Errorf("%q", got)
	}
	one.Isolation = nil
	if got := isolationOf(&one); got != "" {
		t.Errorf("a result that was saved before says %q", got)
	}
}
