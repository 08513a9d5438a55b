// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package jitter

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
)

// sampled is a sample with two CPUs, 2 and 3.
func sampled(at int64, timer, network, softirq [2]uint64, preemptions uint64) sample {
	line := func(name, description string, counts [2]uint64) host.InterruptLine {
		return host.InterruptLine{Name: name, Description: description, Counts: counts[:]}
	}
	counters := &host.Counters{}
	counters.Interrupts.Columns = []int{2, 3}
	counters.Interrupts.Lines = host.Known([]host.InterruptLine{
		line("142", "PCI-MSI  524288-edge   eth0-rx-0", network), line("LOC", "Local timer interrupts", timer),
		{Name: "ERR", Counts: []uint64{uint64(at)}},
	}, "/proc/interrupts")
	counters.Softirqs.Columns = []int{2, 3}
	counters.Softirqs.Lines = host.Known([]host.InterruptLine{line("NET_RX", "", softirq)}, "/proc/softirqs")
	return sample{BeganNanoseconds: at, EndedNanoseconds: at, Counters: counters, Preemptions: map[int]uint64{3: preemptions}}
}

func TestAttribute(t *testing.T) {
	samples := []sample{
		sampled(1_000, [2]uint64{5, 5}, [2]uint64{0, 0}, [2]uint64{0, 0}, 1),
		sampled(2_000, [2]uint64{9, 6}, [2]uint64{0, 3}, [2]uint64{0, 2}, 2),
		sampled(3_000, [2]uint64{9, 6}, [2]uint64{4, 3}, [2]uint64{0, 2}, 2),
	}
	result := &Result{CPUs: []CPUResult{{CPU: 3, Worst: []Interruption{
		{ClockNanoseconds: 500, LengthNanoseconds: 10},
		{ClockNanoseconds: 1_500, LengthNanoseconds: 100},
		{ClockNanoseconds: 1_900, LengthNanoseconds: 500},
		{ClockNanoseconds: 2_500, LengthNanoseconds: 100},
		{ClockNanoseconds: 2_950, LengthNanoseconds: 100},
	}}}}
	attribute(result, samples)
	network, softirq := counted.Event{Kind: counted.Interrupt, Name: "142 PCI-MSI 524288-edge eth0-rx-0", Count: 3}, counted.Event{Kind: counted.Softirq, Name: "NET_RX", Count: 2}
	timer, preemption := counted.Event{Kind: counted.Interrupt, Name: "LOC Local timer interrupts", Count: 1}, counted.Preemptions(1)
	moved := []counted.Event{preemption, network, timer, softirq}
	want := [][]counted.Event{
		nil,   // before the first sample
		moved, // within two samples
		moved, // across a sample
		nil,   // nothing moved on CPU 3: CPU 2 does not matter
		nil,   // after the last sample
	}
	for i, w := range want {
		if diff := cmp.Diff(w, result.CPUs[0].Worst[i].Causes); diff != "" {
			t.Errorf("interruption %d (-want +got):\n%s", i, diff)
		}
	}
	one := result.CPUs[0]
	if one.InterruptsFrom != "/proc/interrupts" || one.HidesCauses() {
		t.Errorf("interrupts from %q", one.InterruptsFrom)
	}
	if diff := cmp.Diff([]counted.Event{network, softirq, timer, preemption}, one.Counted); diff != "" || one.CountedNanoseconds != 2_000 {
		t.Errorf("over %d ns (-want +got):\n%s", one.CountedNanoseconds, diff)
	}
	if got := one.CountedPerSecond(counted.Interrupt); got != 4/2e-6 {
		t.Errorf("%v interrupts per second", got)
	}
	if got := (&CPUResult{}).CountedPerSecond(counted.Interrupt); got != 0 {
		t.Errorf("%v interrupts per second of nothing", got)
	}
}

// A reader that gets no CPU begins a sample before an interruption and ends it after: it holds what the interruption counted, and
// is neither the one before it nor the one after it.
func TestAttributeAcrossASlowSample(t *testing.T) {
	slow := sampled(2_000, [2]uint64{6, 6}, [2]uint64{}, [2]uint64{}, 2)
	slow.EndedNanoseconds = 9_000
	samples := []sample{
		sampled(1_000, [2]uint64{5, 5}, [2]uint64{}, [2]uint64{}, 1), slow, sampled(10_000, [2]uint64{6, 6}, [2]uint64{}, [2]uint64{}, 2),
	}
	result := &Result{CPUs: []CPUResult{{CPU: 3, Worst: []Interruption{{ClockNanoseconds: 2_100, LengthNanoseconds: 6_800}}}}}
	attribute(result, samples)
	want := []counted.Event{counted.Preemptions(1), {Kind: counted.Interrupt, Name: "LOC Local timer interrupts", Count: 1}}
	if diff := cmp.Diff(want, result.CPUs[0].Worst[0].Causes); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
	if got := result.CPUs[0].CountedNanoseconds; got != 9_000 {
		t.Errorf("counted over %d ns, want 9000", got)
	}
}

// TestAttributeToFirmware: an interrupt by the firmware that the processor counted about the time of an interruption is named before what the kernel
// counted, and is none of the events that the kernel counted on the CPU.
func TestAttributeToFirmware(t *testing.T) {
	smis := func(s sample, count uint64) sample {
		s.ManagementInterrupts = &count
		return s
	}
	quiet, ticked := sampled(0, [2]uint64{}, [2]uint64{}, [2]uint64{}, 0), sampled(2_000, [2]uint64{0, 7}, [2]uint64{}, [2]uint64{}, 0)
	tick, smi := counted.Event{Kind: counted.Interrupt, Name: "LOC Local timer interrupts", Count: 7}, counted.Event{Kind: counted.Firmware, Name: "SMI (system management interrupt)", Count: 2}
	for name, tc := range map[string]struct {
		before, after sample
		want          []counted.Event
	}{
		"two came":                {smis(quiet, 5), smis(ticked, 7), []counted.Event{smi, tick}},
		"none came":               {smis(quiet, 5), smis(ticked, 5), []counted.Event{tick}},
		"nobody counted":          {quiet, ticked, []counted.Event{tick}},
		"nobody counted at first": {quiet, smis(ticked, 7), []counted.Event{tick}},
		"nobody counted at last":  {smis(quiet, 5), ticked, []counted.Event{tick}},
		"the counter went back":   {smis(quiet, 5), smis(ticked, 4), []counted.Event{tick}},
	} {
		result := &Result{CPUs: []CPUResult{{CPU: 3, Worst: []Interruption{{ClockNanoseconds: 1_000, LengthNanoseconds: 100}}}}}
		attribute(result, []sample{tc.before, tc.after})
		if diff := cmp.Diff(tc.want, result.CPUs[0].Worst[0].Causes); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff([]counted.Event{tick, counted.Preemptions(0)}, result.CPUs[0].Counted); diff != "" {
			t.Errorf("%s, on the CPU (-want +got):\n%s", name, diff)
		}
	}
}

func TestAttributeWithoutInterrupts(t *testing.T) {
	without := sampled(0, [2]uint64{}, [2]uint64{}, [2]uint64{}, 0)
	without.Counters.Interrupts.Lines = host.Absent[[]host.InterruptLine]("/proc/interrupts", "no such file")
	result := &Result{CPUs: []CPUResult{{CPU: 3}}}
	attribute(result, []sample{without})
	if one := result.CPUs[0]; one.InterruptsFrom != host.NoInterrupts || !one.HidesCauses() || one.DevicesOnly() || CountedWords(&one) != "interrupts unknown, 0 softirqs, preemptions unknown" {
		t.Errorf("interrupts from %q: %s", one.InterruptsFrom, CountedWords(&one))
	}
}

// TestPreemptionsThatNobodyCounted: a thread that could not be read at first or at last was not preempted so and so often since then: nobody knows.
func TestPreemptionsThatNobodyCounted(t *testing.T) {
	at := func(when int64, preemptions map[int]uint64) sample {
		s := sampled(when, [2]uint64{}, [2]uint64{}, [2]uint64{}, 0)
		s.Preemptions = preemptions
		return s
	}
	for name, tc := range map[string]struct {
		before, after map[int]uint64
		causes        []counted.Event
		perSecond     *float64
	}{
		"none":                {map[int]uint64{3: 7}, map[int]uint64{3: 7}, nil, new(0.0)},
		"some":                {map[int]uint64{3: 7}, map[int]uint64{3: 9}, []counted.Event{counted.Preemptions(2)}, new(2.0)},
		"not read at first":   {map[int]uint64{2: 7}, map[int]uint64{3: 9}, nil, nil},
		"not read at last":    {map[int]uint64{3: 7}, nil, nil, nil},
		"of another thread":   {map[int]uint64{3: 7}, map[int]uint64{3: 6}, nil, nil},
		"never read, as ever": {nil, nil, nil, nil},
	} {
		result := &Result{CPUs: []CPUResult{{CPU: 3, Worst: []Interruption{{ClockNanoseconds: 1_000, LengthNanoseconds: 100}}}}}
		attribute(result, []sample{at(0, tc.before), at(1e9, tc.after)})
		one := &result.CPUs[0]
		if diff := cmp.Diff(tc.causes, one.Worst[0].Causes); diff != "" {
			t.Errorf("%s, causes (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tc.perSecond, one.PreemptionsPerSecond()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAttributeToACPUThatCameOnline(t *testing.T) {
	before, after := sampled(0, [2]uint64{}, [2]uint64{}, [2]uint64{}, 0), sampled(100, [2]uint64{1, 1}, [2]uint64{}, [2]uint64{}, 0)
	before.Counters.Interrupts.Columns = []int{2}
	result := &Result{CPUs: []CPUResult{{CPU: 3, Worst: []Interruption{{ClockNanoseconds: 50, LengthNanoseconds: 1}}}}}
	attribute(result, []sample{before, after})
	if causes := result.CPUs[0].Worst[0].Causes; causes != nil {
		t.Errorf("a CPU without an earlier count has the causes %v", causes)
	}
}
