// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package testrun

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/jitter"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// pingPong is a repetition in which messages of 64 and 1024 bytes took so long, ten more each time.
func pingPong(t *testing.T, path latency.PathState, count int, least int64) *latency.Result {
	t.Helper()
	result := &latency.Result{
		Kind: latency.KindPingPong, Path: latency.Path{State: path, Message: "counted"}, Outcome: latency.Outcome{Verdict: latency.Passed},
		Setup: latency.Setup{Server: latency.Host{Kernel: "6.12\x1b[2J"}},
	}
	for i, bytes := range []int{64, 1024} {
		samples := make([]int64, 0, count)
		for sample := range count {
			samples = append(samples, least+int64(bytes)+10*int64(sample))
		}
		d, err := latency.Distribute(samples)
		if err != nil {
			t.Fatal(err)
		}
		result.Sizes = append(result.Sizes, latency.Size{Bytes: bytes, Lost: uint64(i), Distribution: d})
	}
	return result
}

// lineOf is a time line with one length.
func lineOf(slice int, longest int64) *latency.TimeLine {
	line := &latency.TimeLine{ElapsedNanoseconds: 6e9, LongestNanoseconds: make([]int64, latency.TimeSlices)}
	line.LongestNanoseconds[slice] = longest
	return line
}

// linedRecord is that of a measurement whose sizes have time lines, and the text of a histogram of it.
func linedRecord(t *testing.T) (record qualification.Record, histogram string) {
	t.Helper()
	results := []*latency.Result{pingPong(t, latency.PathKernel, 1000, 5000)}
	results[0].Sizes[0].TimeLine, results[0].Sizes[1].TimeLine = lineOf(0, 800), lineOf(59, 950)
	record, err := TrafficRecord(v1alpha1.LatencyTestPingPong, 3, results, "6.12", "b1")
	if err != nil {
		t.Fatal(err)
	}
	return record, results[0].Sizes[0].Distribution.HDR
}

// TestTimeLineIsInTheRecord: of all CPUs at once, of repetitions and sizes one after the other.
func TestTimeLineIsInTheRecord(t *testing.T) {
	repetitions := []*jitter.Result{
		{CPUs: []jitter.CPUResult{measured(t, 4, 1, 900), measured(t, 5, 1, 700)}}, {CPUs: []jitter.CPUResult{measured(t, 4, 1, 500), measured(t, 5, 1, 400)}},
	}
	repetitions[0].CPUs[0].TimeLine, repetitions[0].CPUs[1].TimeLine, repetitions[1].CPUs[1].TimeLine = lineOf(58, 900), lineOf(0, 700), lineOf(0, 400)
	record, err := RecordOf(repetitions, "6.12", "b1")
	if err != nil {
		t.Fatal(err)
	}
	accepted(t, record)
	want := &v1alpha1.LatencyTimeLine{ElapsedNanoseconds: 12e9, LongestNanoseconds: make([]int64, latency.TimeSlices)}
	want.LongestNanoseconds[0], want.LongestNanoseconds[29], want.LongestNanoseconds[30] = 700, 900, 400
	if diff := cmp.Diff(want, record.TimeLine); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	record, _ = linedRecord(t)
	accepted(t, record)
	want.LongestNanoseconds = append(append([]int64{800}, make([]int64, latency.TimeSlices-2)...), 950)
	if diff := cmp.Diff(want, record.TimeLine); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTimeLineGivesWay: where a record has room for one alone it has the histogram, and a time line that makes no room for one stays.
func TestTimeLineGivesWay(t *testing.T) {
	record, histogram := linedRecord(t)
	record.Histogram = ""
	text, err := qualification.Encode(record)
	if err != nil {
		t.Fatal(err)
	}
	const less = 60
	one := record
	one.BootID += strings.Repeat("b", qualification.MaxRecordLength-len(text)-less)
	if one, err = withHistogram(one, []string{histogram}); err != nil || one.TimeLine != nil || one.Histogram == "" {
		t.Errorf("without room for both the record has the time line %v and the histogram %q: %v", one.TimeLine, one.Histogram, err)
	}
	none := record
	none.BootID += strings.Repeat("b", qualification.MaxRecordLength)
	if none, err = withHistogram(none, []string{histogram}); err != nil || none.TimeLine == nil || none.Histogram != "" {
		t.Errorf("without room for a histogram the record has the time line %v and the histogram %q: %v", none.TimeLine, none.Histogram, err)
	}
}

func TestTrafficRecord(t *testing.T) {
	results := []*latency.Result{pingPong(t, latency.PathKernel, 1000, 5000), pingPong(t, latency.PathKernel, 300, 6000)}
	r, err := TrafficRecord(v1alpha1.LatencyTestPingPong, 3, results, "6.12", "b1")
	if err != nil {
		t.Fatal(err)
	}
	text, err := qualification.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	got, err := qualification.Parse(string(text))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if got.Histogram == "" {
		t.Error("the record has no histogram")
	}
	got.Histogram = ""
	// The second repetition has too few samples for 90 %, so that its table has the median alone.
	want := &qualification.Record{
		Version: qualification.Version, Kind: v1alpha1.LatencyTestPingPong, Kernel: "6.12", BootID: "b1", CPUs: "3", MaximumNanoseconds: 16_014,
		RepetitionMaximums: []int64{16_014, 10_014}, Percentiles: []v1alpha1.LatencyPercentile{{Percentile: v1alpha1.P50, Nanoseconds: 11_024}},
		Network: &qualification.NetworkRecord{
			Path: v1alpha1.LatencyPathKernel, PathMessage: "counted", ServerKernel: "6.12 [2J", ServerCounts: v1alpha1.ServerCounts{ServerCPUs: "0"}, Medians: []int64{10_064, 7_564},
			Sizes: [][]int64{{64, 0, 0, 1300, 5064, 10_059, 2888, 15_054, 10_064}, {1024, 2, 0, 1300, 6024, 11_019, 2888, 16_014, 11_024}},
			// Each sample is longer than the one before: so few of them are independent that only both ends of all bound the median.
			SizeIntervals: [][]int64{{300, 1890, 1880}, {300, 1890, 1880}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, tc := range map[string]struct {
		results []*latency.Result
		want    v1alpha1.LatencyPath
	}{
		"different ways":  {[]*latency.Result{pingPong(t, latency.PathKernel, 1, 1), pingPong(t, latency.PathAccelerated, 1, 1)}, v1alpha1.LatencyPathMixed},
		"one is not told": {[]*latency.Result{pingPong(t, latency.PathAccelerated, 1, 1), pingPong(t, latency.PathUnknown, 1, 1)}, v1alpha1.LatencyPathUnknown},
		"accelerated":     {[]*latency.Result{pingPong(t, latency.PathAccelerated, 1, 1)}, v1alpha1.LatencyPathAccelerated},
	} {
		if got := pathOf(tc.results); got != tc.want {
			t.Errorf("%s: the path is %s, want %s", name, got, tc.want)
		}
	}
}

// sweep is a repetition at the rates 1000 and 2000, each with so many answers that took 10 ns more than the one before.
func sweep(t *testing.T, least int64, counts ...int) *latency.Result {
	t.Helper()
	result := pingPong(t, latency.PathKernel, 1000, 5000)
	result.Kind, result.Sizes = latency.KindRateSweep, result.Sizes[:1]
	for i, count := range counts {
		samples := make([]int64, 0, count)
		for sample := range count {
			samples = append(samples, least+10*int64(sample))
		}
		d, err := latency.Distribute(samples)
		if err != nil {
			t.Fatal(err)
		}
		result.Rates = append(result.Rates, latency.Rate{
			PerSecond: uint64(1000 * (i + 1)), AchievedPerSecond: float64(1000*(i+1)) - float64(least)/1000, Bytes: 64,
			Load: latency.Stream{Sent: 2000, Lost: 3, Duplicates: 1, Reordered: 2, Gaps: 1}, Late: 5, MaximumLatenessNanoseconds: least, AnswersLost: 4,
			FromIntended: d, FromActual: d,
		})
	}
	return result
}

func TestRecordOfARateSweep(t *testing.T) {
	// The second repetition ended with the first rate, and has too few samples for 90 %.
	r, err := TrafficRecord(v1alpha1.LatencyTestRateSweep, 3, []*latency.Result{sweep(t, 5000, 1000, 200), sweep(t, 6000, 300)}, "6.12", "b1")
	if err != nil {
		t.Fatal(err)
	}
	accepted(t, r)
	figures := []int64{1300, 5000, 9995, 2888, 14_990, 10_000}
	want := [][]int64{append(append([]int64{1000, 994, 64, 4000, 6, 2, 2, 4, 10, 6000, 8}, figures...), figures...)}
	if diff := cmp.Diff(want, r.Network.Rates); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int64{10_000, 7500}, r.Network.Medians); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRatesWithoutAnswers: that nothing came back is a measurement, of which the budget says what it is worth.
func TestRatesWithoutAnswers(t *testing.T) {
	r, err := TrafficRecord(v1alpha1.LatencyTestRateSweep, 3, []*latency.Result{sweep(t, 5000, 0)}, "6.12", "b1")
	if err != nil {
		t.Fatal(err)
	}
	accepted(t, r)
	if _, err := TrafficRecord(v1alpha1.LatencyTestRateSweep, 3, []*latency.Result{sweep(t, 5000, 100), sweep(t, 5000)}, "6.12", "b1"); err == nil {
		t.Error("a repetition without a rate is a record")
	}
}

// TestWhatEnds: what the figures show is for the operator to judge, and what kept them from being taken is not.
func TestWhatEnds(t *testing.T) {
	for reason, ended := range map[latency.Reason]bool{
		latency.ReasonGeneratorLimit: true, latency.ReasonTooFewSamples: true, latency.ReasonPeerVanished: false, latency.ReasonClockUnsteady: false,
	} {
		err := CheckEnded(&latency.Result{Outcome: latency.Outcome{Verdict: latency.Inconclusive, Reason: reason}})
		if (err == nil) != ended {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

func TestTrafficWithoutAnswers(t *testing.T) {
	_, err := TrafficRecord(v1alpha1.LatencyTestPingPong, 3, []*latency.Result{pingPong(t, latency.PathKernel, 0, 0)}, "6.12", "b1")
	if problem, _ := errors.AsType[Problem](err); problem.Reason != v1alpha1.TestNoAnswer {
		t.Errorf("no answer is %v", err)
	}
	if _, err := TrafficRecord(v1alpha1.LatencyTestPingPong, 3, nil, "6.12", "b1"); err == nil {
		t.Error("no repetition is a record")
	}
}

func TestBusyMachines(t *testing.T) {
	for name, tc := range map[string]struct {
		client, server uint64
		elapsed        time.Duration
		busy           string
	}{
		"threads of the kernel":    {1000, 1000, time.Minute, ""},
		"another program":          {6000, 0, time.Minute, "client"},
		"another program far away": {1000, 6000, time.Minute, "server"},
		"another program at both":  {6000, 6000, time.Minute, "client"},
		"a short measurement":      {40, 40, 100 * time.Millisecond, ""},
		"nobody tells":             {0, 0, time.Minute, ""},
		"no end":                   {6000, 6000, 0, ""},
	} {
		err := CheckQuiet(&latency.Result{Preemptions: tc.client, ServerPreemptions: tc.server, ElapsedNanoseconds: tc.elapsed.Nanoseconds()})
		problem, _ := errors.AsType[Problem](err)
		if (err != nil) != (tc.busy != "") || (tc.busy != "" && (problem.Reason != v1alpha1.TestMachineBusy || !strings.Contains(problem.Message, "CPU of the "+tc.busy))) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBusyMachineSaysWhatWasSeen: which CPU it was, how busy it was, and what the kernel counted there, where anybody knows.
func TestBusyMachineSaysWhatWasSeen(t *testing.T) {
	const often = "to something else 6000 times in 1m0s, more than 50 times a second"
	counted3 := &counted.Isolation{CPU: 3, BusyTicks: 97, AllTicks: 100}
	events := []counted.Event{{Kind: counted.Softirq, Name: "TIMER", Count: 900}, {Kind: counted.Interrupt, Name: "24 eth0", Count: 600}}
	for name, tc := range map[string]struct {
		result latency.Result
		want   string
	}{
		"all is known": {latency.Result{Preemptions: 6000, Isolation: counted3, Counted: events, CountedNanoseconds: 60e9},
			"the kernel gave the CPU of the client (CPU 3) " + often + "; CPU 3 was at work for 97 % of the time, most often the kernel counted Interrupt 24 eth0 10 a second"},
		"its work alone": {latency.Result{Preemptions: 6000, Isolation: counted3}, "(CPU 3) " + often + "; CPU 3 was at work for 97 % of the time"},
		"nothing":        {latency.Result{Preemptions: 6000}, "(CPU 3) " + often},
		"its work is not known": {latency.Result{Preemptions: 6000, Isolation: &counted.Isolation{CPU: 3, BusyUnknown: "no such file"}},
			"(CPU 3) " + often + "; work of CPUs unknown (no such file)"},
		"of the server nothing is asked": {latency.Result{ServerPreemptions: 6000, Isolation: counted3}, "the CPU of the server " + often},
		"all of the server": {latency.Result{ServerPreemptions: 6000, ServerCounts: []latency.Counts{{CountedNanoseconds: 60e9, Counted: events, Isolation: counted3}}},
			"the CPU of the server " + often + "; CPU 3 was at work for 97 % of the time, most often the kernel counted Interrupt 24 eth0 10 a second"},
		"the server has not counted": {latency.Result{ServerPreemptions: 6000, Isolation: counted3, ServerCounts: []latency.Counts{{Unknown: "nobody counts"}}},
			"the CPU of the server " + often + "; what it was is not known, since nothing was counted there: nobody counts"},
	} {
		tc.result.ElapsedNanoseconds = time.Minute.Nanoseconds()
		tc.result.Setup.Client.CPU, tc.result.Setup.Server.CPU = 3, -1
		if err := CheckQuiet(&tc.result); err == nil || !strings.HasSuffix(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBusyBeforehand: an end whose CPU is at work for others is not measured, and is named.
func TestBusyBeforehand(t *testing.T) {
	for _, end := range []string{"Client", "Server"} {
		if err := CheckIdle(end, ""); err != nil {
			t.Error(err)
		}
		problem, _ := errors.AsType[Problem](CheckIdle(end, "CPU 3 is busy for 60 % of the time"))
		want := "the machine of the " + strings.ToLower(end) + " was busy: CPU 3 is busy for 60 % of the time before anything was measured"
		if problem.Reason != v1alpha1.TestMachineBusy || problem.Message != want {
			t.Errorf("%+v", problem)
		}
	}
}
