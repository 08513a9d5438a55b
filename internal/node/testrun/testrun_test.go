// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package testrun

import (
	"errors"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/jitter"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

func set(t *testing.T, text string) cpus.Set {
	t.Helper()
	found, err := cpus.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestPlace(t *testing.T) {
	cores := []cpus.Set{cpus.Of(0, 4), cpus.Of(1, 5), cpus.Of(2, 6), cpus.Of(3, 7)}
	for name, tc := range map[string]struct {
		allowed      string
		count, asked int
		want         jitter.Placement
		problem      Problem
	}{
		"whole cores first":         {"1-3,5-7", 3, 6, jitter.Placement{Measured: cpus.Of(1, 2, 5), Control: cpus.Of(3, 7)}, Problem{}},
		"one thread of a core":      {"2-3,6-7", 1, 4, jitter.Placement{Measured: cpus.Of(2), Control: cpus.Of(3, 7)}, Problem{}},
		"CPUs that others use, too": {"0-7", 1, 4, jitter.Placement{}, Problem{Reason: v1alpha1.TestNotExclusive}},
		"fewer CPUs than asked":     {"2,6", 1, 4, jitter.Placement{}, Problem{Reason: v1alpha1.TestNotExclusive}},
		"nobody has asked":          {"0-7", 1, 0, jitter.Placement{Measured: cpus.Of(0), Control: cpus.Of(1, 2, 3, 5, 6, 7)}, Problem{}},
		"no core is left":           {"2,6", 1, 2, jitter.Placement{}, Problem{Reason: v1alpha1.TestMeasurementFailed}},
		"too few":                   {"2,6", 3, 2, jitter.Placement{}, Problem{Reason: v1alpha1.TestMeasurementFailed}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Place(set(t, tc.allowed), set(t, "0-7"), cores, tc.count, tc.asked)
			problem, _ := errors.AsType[Problem](err)
			if diff := cmp.Diff(tc.want, got); diff != "" || problem.Reason != tc.problem.Reason {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// measured is one CPU on which interruptions of some lengths were seen.
func measured(t *testing.T, cpu int, stolen float64, lengths ...int64) jitter.CPUResult {
	t.Helper()
	lengthsSeen := hdrhistogram.New(1, 100_000_000_000, 3)
	one := jitter.CPUResult{CPU: cpu, Interruptions: uint64(len(lengths)), StolenPartsPerMillion: stolen}
	for _, length := range lengths {
		if err := lengthsSeen.RecordValue(length); err != nil {
			t.Fatal(err)
		}
		one.MaximumNanoseconds = max(one.MaximumNanoseconds, length)
		one.Worst = append(one.Worst, jitter.Interruption{LengthNanoseconds: length, Causes: []counted.Event{{Kind: counted.Interrupt, Name: "142\teth0"}}})
	}
	for i, percent := range []float64{50, 90, 99, 99.9, 99.99, 99.999} {
		one.OverTime = append(one.OverTime, jitter.Percentile{Percent: percent, Nanoseconds: one.MaximumNanoseconds * int64(i) / 5})
	}
	text, err := lengthsSeen.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	one.HDR = string(text)
	return one
}

// accepted fails the test when the operator would not take what a program leaves behind.
func accepted(t *testing.T, record qualification.Record) {
	t.Helper()
	text, err := qualification.Encode(record)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := qualification.Parse(string(text)); err != nil {
		t.Fatalf("the operator refuses the record: %v: %s", err, text)
	}
}

func TestRecordOf(t *testing.T) {
	results := []*jitter.Result{
		{CPUs: []jitter.CPUResult{measured(t, 4, 1.2, 1000, 5000), measured(t, 5, 0.5, 2000)}},
		{CPUs: []jitter.CPUResult{measured(t, 4, 0, 700), measured(t, 5, 7.01, 8000)}},
	}
	results[1].CPUs[0].InterruptsFrom = host.DeviceInterrupts
	got, err := RecordOf(results, "6.12", "b1")
	if err != nil {
		t.Fatal(err)
	}
	accepted(t, got)
	histogram, err := hdrhistogram.Decode([]byte(got.Histogram))
	if err != nil || histogram.TotalCount() != 5 {
		t.Errorf("the histogram: %v", err)
	}
	got.Histogram = ""
	want := qualification.Record{
		Version: 1, Kind: v1alpha1.LatencyTestJitter, Kernel: "6.12", BootID: "b1", CPUs: "4-5", WorstCPU: new(int32(5)), Interruptions: 5,
		MaximumNanoseconds: 8000, StolenPartsPerMillion: 8, RepetitionMaximums: []int64{5000, 8000}, Causes: []string{"Interrupt 142 eth0"},
		CountedInterrupts: v1alpha1.CountedInterruptsDevices,
	}
	for i, name := range qualification.Percentiles() {
		want.Percentiles = append(want.Percentiles, v1alpha1.LatencyPercentile{Percentile: name, Nanoseconds: 8000 * int64(i) / 5})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCauses: what came with others of the longest interruptions is no cause of the longest one, and what comes with few of them may explain more than what comes
// with all.
func TestCauses(t *testing.T) {
	timer, softirq := counted.Event{Kind: counted.Interrupt, Name: "LOC", Count: 9}, counted.Event{Kind: counted.Softirq, Name: "TIMER", Count: 9}
	network, calls := counted.Event{Kind: counted.Interrupt, Name: "24 eth0", Count: 1}, counted.Event{Kind: counted.Interrupt, Name: "CAL", Count: 8}
	ticks := func(longest ...counted.Event) []jitter.Interruption {
		tick := jitter.Interruption{LengthNanoseconds: 5_000, Causes: []counted.Event{timer, softirq}}
		return []jitter.Interruption{tick, {LengthNanoseconds: 2_000_000, Causes: longest}, tick, tick, tick}
	}
	ticked := ticks(network)
	ticked[0].Causes = []counted.Event{counted.Firmwares(1), softirq}
	for name, tc := range map[string]struct {
		worst []jitter.Interruption
		want  []string
	}{
		"one without a cause":            {nil, nil},
		"none has a cause":               {[]jitter.Interruption{{LengthNanoseconds: 5}, {LengthNanoseconds: 4}}, nil},
		"the longest has none":           {ticks(), []string{qualification.NothingAboutLongest, "Interrupt LOC", "Softirq TIMER"}},
		"the longest has one of its own": {ticks(network), []string{"Interrupt 24 eth0", "Interrupt LOC", "Softirq TIMER"}},
		"firmware in one of the others":  {ticked, []string{"Interrupt 24 eth0", "Firmware SMI (system management interrupt)", "Interrupt LOC", "Softirq TIMER"}},
		"the longest has more than enough": {ticks(counted.Event{Kind: counted.Softirq, Name: "RCU", Count: 900}, timer, calls, counted.Preemptions(1), counted.Firmwares(1)), []string{
			"Firmware SMI (system management interrupt)", "ContextSwitch nonvoluntary_ctxt_switches", "Interrupt LOC", "Interrupt CAL",
		}},
	} {
		// The longest of all counts, whichever CPU and repetition has it.
		quiet := &jitter.CPUResult{Worst: []jitter.Interruption{{LengthNanoseconds: 3}}}
		if diff := cmp.Diff(tc.want, causes([]*jitter.CPUResult{quiet, {Worst: tc.worst}})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestCounted tests that what a repetition has not counted is not claimed of all.
func TestCounted(t *testing.T) {
	const all = "/proc/interrupts"
	for _, c := range []struct {
		from []string
		want v1alpha1.CountedInterrupts
	}{
		{[]string{all, all}, v1alpha1.CountedInterruptsAll}, {[]string{host.DeviceInterrupts, all}, v1alpha1.CountedInterruptsDevices},
		{[]string{all, host.NoInterrupts, host.DeviceInterrupts}, v1alpha1.CountedInterruptsNone},
	} {
		if got := countedInterrupts(c.from); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

func TestQuietNodeHasARecord(t *testing.T) {
	got, err := RecordOf([]*jitter.Result{{CPUs: []jitter.CPUResult{measured(t, 4, 0)}}}, "6.12", "")
	if err != nil {
		t.Fatal(err)
	}
	accepted(t, got)
}

func TestFailed(t *testing.T) {
	text, err := qualification.Encode(Failed(v1alpha1.LatencyTestJitter, v1alpha1.TestMeasurementFailed, errors.New("no\nCPU \x1b[31m")))
	if err != nil {
		t.Fatal(err)
	}
	got, err := qualification.Parse(string(text))
	if err != nil || got.Problem.Message != "no CPU  [31m" {
		t.Errorf("%+v, %v", got, err)
	}
}
