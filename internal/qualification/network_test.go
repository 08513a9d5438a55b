// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package qualification

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
)

// networkRecord is a record of two sizes, of which the second carries the median alone.
func networkRecord() Record {
	return Record{
		Version: Version, Kind: v1alpha1.LatencyTestPingPong, Kernel: "6.12", BootID: "b1", CPUs: "4", MaximumNanoseconds: 90_000,
		RepetitionMaximums: []int64{90_000, 40_000}, Percentiles: []v1alpha1.LatencyPercentile{{Percentile: v1alpha1.P50, Nanoseconds: 7_000}},
		Histogram: "SElTVA==",
		Network: &NetworkRecord{
			Path: v1alpha1.LatencyPathKernel, PathMessage: "the kernel counted 2 for 2 messages", ServerKernel: "6.12", Medians: []int64{5_000, 6_000},
			Sizes: [][]int64{{64, 3, 1, 20_000, 4_000, 6_000, 500, 40_000, 6_000, 8_000, 20_000}, {1024, 0, 0, 200, 5_000, 7_500, 900, 90_000, 7_000}},
			// The median of the second size has no upper end.
			SizeIntervals: [][]int64{{10_000, 100, 200, 300, 400, 500, 600}, {100, 1_000, -1}},
		},
	}
}

func TestNetworkRecordsAreReadAsTheyAreWritten(t *testing.T) {
	want := networkRecord()
	got, err := Parse(encoded(t, want))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	m := got.Network.Measurement("node-2")
	if m.Server != "node-2" || len(m.Sizes) != 2 || m.Sizes[0].Lost != 3 || len(m.Sizes[1].Percentiles) != 1 || m.Sizes[0].Percentiles[2].Percentile != v1alpha1.P99 {
		t.Errorf("%+v", m)
	}
	for i := range m.Sizes {
		if diff := cmp.Diff(want.Network.Sizes[i], SizeRow(&m.Sizes[i])); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want.Network.SizeIntervals[i], IntervalRow(&m.Sizes[i].LatencyFigures)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestIntervalsOfRecords(t *testing.T) {
	record := networkRecord()
	m := record.Network.Measurement("node-2")
	intervals := []v1alpha1.LatencyInterval{*IntervalOf(&m.Sizes[0].LatencyFigures, v1alpha1.P99), *IntervalOf(&m.Sizes[1].LatencyFigures, v1alpha1.P50)}
	if diff := cmp.Diff([]v1alpha1.LatencyInterval{{LowNanoseconds: 19_500, HighNanoseconds: new(int64(20_600))}, {LowNanoseconds: 6_000}}, intervals); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if IntervalOf(&m.Sizes[1].LatencyFigures, v1alpha1.P90) != nil {
		t.Error("a percentile that is not carried has an interval")
	}
}

// countedServer is what was counted on CPU 7 of a server.
func countedServer() v1alpha1.ServerCounts {
	return v1alpha1.ServerCounts{
		ServerCPUs: "7", ServerCauses: []string{"Interrupt 9 sdb 60 a second"}, ServerCountedInterrupts: v1alpha1.CountedInterruptsAll,
		ServerIsolation: IsolationOf([]counted.Isolation{{CPU: 7, Nanoseconds: 1e9, WaitedNanoseconds: 5e6, BusyTicks: 1, AllTicks: 2}}),
	}
}

// uncountedServer is what is known where nobody counted at a server.
func uncountedServer() v1alpha1.ServerCounts {
	return v1alpha1.ServerCounts{
		ServerCPUs: "7", ServerCountedInterrupts: v1alpha1.CountedInterruptsNone, ServerIsolation: IsolationOf([]counted.Isolation{counted.Uncounted(7, "nobody counts")}),
	}
}

// TestServersInRecords: what was counted at a server arrives, and what none of ours leaves is refused.
func TestServersInRecords(t *testing.T) {
	for name, server := range map[string]v1alpha1.ServerCounts{"counted": countedServer(), "not counted": uncountedServer(), "not asked": {ServerCPUs: "7"}, "on no CPU": {}} {
		record := networkRecord()
		record.Network.ServerCounts = server
		got, err := Parse(encoded(t, record))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(server, got.Network.Measurement("n2").ServerCounts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.ServerCounts)
		want   string
	}{
		"no CPUs":            {func(s *v1alpha1.ServerCounts) { s.ServerCPUs = "\x1b" }, "was kept to no single CPU"},
		"two CPUs":           {func(s *v1alpha1.ServerCounts) { s.ServerCPUs = "7-8" }, "was kept to no single CPU"},
		"nobody was asked":   {func(s *v1alpha1.ServerCounts) { s.ServerCountedInterrupts = "" }, "a server that was not asked"},
		"unknown interrupts": {func(s *v1alpha1.ServerCounts) { s.ServerCountedInterrupts = "Some" }, "counted interrupts that are not known"},
		"many causes":        {func(s *v1alpha1.ServerCounts) { s.ServerCauses = []string{"a", "b", "c", "d", "e"} }, "names 5 causes, more than 4"},
		"a cause to obey":    {func(s *v1alpha1.ServerCounts) { s.ServerCauses[0] = "\x1b[2J" }, "a cause has characters"},
		"no scheduler":       {func(s *v1alpha1.ServerCounts) { s.ServerIsolation.RunQueue.State = "Quiet" }, "a state of the run queue that is not known"},
	} {
		record := networkRecord()
		record.Network.ServerCounts = countedServer()
		tc.change(&record.Network.ServerCounts)
		if _, err := Parse(encoded(t, record)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: the error is %v, want %q", name, err, tc.want)
		}
	}
}

// TestRecordsShareTheirRoom: where a record has no room for all, both ends give up the same, and the record that is printed from does not change.
func TestRecordsShareTheirRoom(t *testing.T) {
	four := []string{strings.Repeat("c", 90), strings.Repeat("d", 90), strings.Repeat("e", 90), strings.Repeat("f", 90)}
	full := func(fill int) Record {
		r := networkRecord()
		r.Network.ServerCounts, r.Isolation = countedServer(), IsolationOf([]counted.Isolation{{CPU: 4, Nanoseconds: 1e9}})
		r.Causes, r.Network.ServerCauses, r.BootID = four, four, strings.Repeat("b", fill)
		return r
	}
	type left struct {
		Client, Server      int
		Isolation, AtServer bool
	}
	for fill, want := range map[int]left{100: {4, 4, true, true}, 2600: {2, 2, true, true}, 2950: {0, 0, true, true}, 3350: {0, 0, false, false}} {
		r := full(fill)
		got := Record{}
		if err := json.Unmarshal([]byte(encoded(t, r)), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, left{len(got.Causes), len(got.Network.ServerCauses), got.Isolation != nil, got.Network.ServerIsolation != nil}); diff != "" {
			t.Errorf("with %d bytes taken (-want +got):\n%s", fill, diff)
		}
		if diff := cmp.Diff(full(fill), r); diff != "" {
			t.Errorf("the record has changed (-want +got):\n%s", diff)
		}
	}
}

// TestFailuresNameTheEnd: each end is named with what was counted there, and a server that has not counted is none that was quiet.
func TestFailuresNameTheEnd(t *testing.T) {
	const failed = "1024 bytes: the maximum is 90µs, and the budget has 89.999µs"
	const client = "; on CPU 4 of the client the kernel counted Interrupt LOC 3 a second"
	for name, tc := range map[string]struct {
		causes []string
		server v1alpha1.ServerCounts
		want   string
	}{
		"both ends": {[]string{"Interrupt LOC 3 a second"}, countedServer(), failed + client +
			"; on CPU 7 of the server the kernel counted Interrupt 9 sdb 60 a second; over the whole measurement at the server: threads waited 5 ms a second in the run queue of CPU 7"},
		"the server alone": {nil, v1alpha1.ServerCounts{ServerCPUs: "7", ServerCauses: []string{"Interrupt 9 sdb 60 a second"}, ServerCountedInterrupts: v1alpha1.CountedInterruptsAll},
			failed + "; on CPU 7 of the server the kernel counted Interrupt 9 sdb 60 a second"},
		"a server that has not counted": {[]string{"Interrupt LOC 3 a second"}, uncountedServer(), failed + client + "; at the server nothing was counted (nobody counts)"},
		"a server that was not asked":   {[]string{"Interrupt LOC 3 a second"}, v1alpha1.ServerCounts{}, failed + client},
	} {
		if diff := cmp.Diff(tc.want, failedMessage(tc.causes, tc.server)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	long := countedServer()
	long.ServerCauses = slices.Repeat([]string{strings.Repeat("x", v1alpha1.MaxTestCauseLength)}, v1alpha1.MaxTestCauses)
	got := failedMessage(long.ServerCauses, long)
	if !strings.Contains(got, "; on CPU 4 of the client the kernel counted x") || !strings.Contains(got, "; on CPU 7 of the server the kernel counted x") || len(got) > v1alpha1.MaxTestMessageLength {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

// failedMessage is that of a measurement which is beyond its budget.
func failedMessage(causes []string, server v1alpha1.ServerCounts) string {
	record := networkRecord()
	measured := &v1alpha1.LatencyMeasurement{CPUs: "4", MaximumNanoseconds: 90_000, Causes: causes, Network: record.Network.Measurement("n2")}
	measured.Network.ServerCounts = server
	return Judge(measured, &v1alpha1.LatencyBudget{MaximumNanoseconds: 89_999, LossPartsPerMillion: new(int32(1000))}).Message
}

func TestHostileNetworkRecordsAreRefused(t *testing.T) {
	const noIntervals = "the intervals of the record do not hold the percentiles of its sizes"
	const rising = "the latencies of a size of the record do not rise towards its longest"
	for name, tc := range map[string]struct {
		change func(*Record)
		want   string
	}{
		"jitter that was measured over the network": {func(r *Record) { r.Kind = v1alpha1.LatencyTestJitter }, "the record is of one kind and has what another one measures"},
		"a ping-pong without a network":             {func(r *Record) { r.Network = nil }, "the record is of one kind and has what another one measures"},
		"two CPUs":                                  {func(r *Record) { r.CPUs = "4-5" }, "the record has what measurements over the network do not measure"},
		"stolen time":                               {func(r *Record) { r.StolenPartsPerMillion = 1 }, "the record has what measurements over the network do not measure"},
		"another path":                              {func(r *Record) { r.Network.Path = "Fast" }, "the record names a path that is not known"},
		"a path in red":                             {func(r *Record) { r.Network.PathMessage = "\x1b[31m" }, "the path has characters in the record that cannot be printed"},
		"no kernel of the server":                   {func(r *Record) { r.Network.ServerKernel = "" }, "the kernel of the server is missing in the record"},
		"a median less":                             {func(r *Record) { r.Network.Medians = r.Network.Medians[:1] }, "the record has 1 medians of 2 repetitions"},
		"a median above all":                        {func(r *Record) { r.Network.Medians[0] = 90_001 }, "a repetition of the record has a latency above the longest"},
		"no size":                                   {func(r *Record) { r.Network.Sizes = nil }, "the record has 0 sizes, not 1 to 20"},
		"too many sizes":                            {func(r *Record) { r.Network.Sizes = make([][]int64, 21) }, "the record has 21 sizes, not 1 to 20"},
		"a short row":                               {func(r *Record) { r.Network.Sizes[0] = r.Network.Sizes[0][:7] }, "the figures of a size of the record are 4 numbers"},
		"a long row":                                {func(r *Record) { r.Network.Sizes[0] = make([]int64, 15) }, "the figures of a size of the record are 12 numbers"},
		"a negative number":                         {func(r *Record) { r.Network.Sizes[0][2] = -1 }, "a number of a size of the record is out of its bounds"},
		"a giant message":                           {func(r *Record) { r.Network.Sizes[0][0] = 1 << 40 }, "a number of a size of the record is out of its bounds"},
		"a percentile that falls":                   {func(r *Record) { r.Network.Sizes[0][9] = 5_999 }, rising},
		"a median below the shortest":               {func(r *Record) { r.Network.Sizes[0][8] = 3_999 }, rising},
		"a percentile above the longest":            {func(r *Record) { r.Network.Sizes[0][10] = 40_001 }, rising},
		"a mean above the longest":                  {func(r *Record) { r.Network.Sizes[0][5] = 40_001 }, "the mean of a size of the record is not between its latencies"},
		"a percentile of too few samples":           {func(r *Record) { r.Network.Sizes[0][3] = 9_999 }, "a size of the record has a percentile that its samples do not carry"},
		"a longest of no size":                      {func(r *Record) { r.MaximumNanoseconds = 90_001 }, "the longest latency and the percentiles of the record are not the worst of its sizes or rates"},
		"an interval less":                          {func(r *Record) { r.Network.SizeIntervals[0] = r.Network.SizeIntervals[0][:5] }, noIntervals},
		"intervals of one size alone":               {func(r *Record) { r.Network.SizeIntervals = r.Network.SizeIntervals[:1] }, noIntervals},
		"no samples of a size":                      {func(r *Record) { r.Network.SizeIntervals[0] = nil }, noIntervals},
		"more samples than there are":               {func(r *Record) { r.Network.SizeIntervals[1][0] = 201 }, noIntervals},
		"an interval from below the shortest":       {func(r *Record) { r.Network.SizeIntervals[1][1] = 2_001 }, noIntervals},
		"an interval to above the longest":          {func(r *Record) { r.Network.SizeIntervals[0][6] = 20_001 }, noIntervals},
		"an interval beside its percentile":         {func(r *Record) { r.Network.SizeIntervals[0][2] = -2 }, noIntervals},
		"intervals of no rate":                      {func(r *Record) { r.Network.RateIntervals = [][]int64{{1}} }, "the record has intervals of 1 rates, and 0 rates"},
		"percentiles of no size":                    {func(r *Record) { r.Percentiles[0].Nanoseconds = 1 }, "the longest latency and the percentiles of the record are not the worst of its sizes or rates"},
	} {
		t.Run(name, func(t *testing.T) {
			r := networkRecord()
			tc.change(&r)
			if _, err := Parse(encoded(t, r)); err == nil || err.Error() != tc.want {
				t.Errorf("refused with %v, want %s", err, tc.want)
			}
		})
	}
}

func TestJudgeNetwork(t *testing.T) {
	record := networkRecord()
	measured := &v1alpha1.LatencyMeasurement{MaximumNanoseconds: record.MaximumNanoseconds, Network: record.Network.Measurement("node-2")}
	at := func(name v1alpha1.PercentileName, bound int64) []v1alpha1.LatencyPercentile {
		return []v1alpha1.LatencyPercentile{{Percentile: name, Nanoseconds: bound}}
	}
	figures := "64 bytes: median 6 µs, longest 40 µs; 1024 bytes: median 7 µs, longest 90 µs; to a server on node node-2, path Kernel"
	for name, tc := range map[string]struct {
		budget *v1alpha1.LatencyBudget
		want   Verdict
	}{
		"no budget": {nil, Verdict{v1alpha1.LatencyInconclusive, v1alpha1.TestNoBudget, "measured, but spec.budget does not say what is good enough: " + figures}},
		"at the bound": {
			&v1alpha1.LatencyBudget{MaximumNanoseconds: 90_000, Percentiles: at(v1alpha1.P50, 7_000), LossPartsPerMillion: new(int32(150))},
			Verdict{v1alpha1.LatencyPassed, v1alpha1.TestWithinBudget, "within the budget: " + figures},
		},
		"one beyond the longest": {
			&v1alpha1.LatencyBudget{MaximumNanoseconds: 89_999, LossPartsPerMillion: new(int32(150))},
			Verdict{v1alpha1.LatencyFailed, v1alpha1.TestOverBudget, "1024 bytes: the maximum is 90µs, and the budget has 89.999µs"},
		},
		"loss is beyond any longest": {
			&v1alpha1.LatencyBudget{MaximumNanoseconds: 90_000},
			Verdict{v1alpha1.LatencyFailed, v1alpha1.TestLoss, "64 bytes: 3 of 20003 messages were lost, so that not all of them came within 90µs"},
		},
		"a percentile of the second size": {
			&v1alpha1.LatencyBudget{Percentiles: at(v1alpha1.P50, 6_999)},
			Verdict{v1alpha1.LatencyFailed, v1alpha1.TestOverBudget, "1024 bytes: 50 % is 7µs, and the budget has 6.999µs"},
		},
		"a percentile that is not carried": {
			&v1alpha1.LatencyBudget{Percentiles: at(v1alpha1.P99, 50_000)},
			Verdict{v1alpha1.LatencyInconclusive, v1alpha1.TestTooFewSamples, "1024 bytes: 200 samples do not carry 99 %, which takes 10000"},
		},
		"loss": {
			&v1alpha1.LatencyBudget{LossPartsPerMillion: new(int32)},
			Verdict{v1alpha1.LatencyFailed, v1alpha1.TestLoss, "64 bytes: 3 of 20003 messages were lost, and the budget has 0 parts per million"},
		},
		"through the kernel": {
			&v1alpha1.LatencyBudget{Path: v1alpha1.LatencyPathAccelerated, MaximumNanoseconds: 1},
			Verdict{v1alpha1.LatencyInconclusive, v1alpha1.TestNotAccelerated, "the path was not accelerated: the kernel counted 2 for 2 messages"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Judge(measured, tc.budget)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	measured.CPUs, measured.Causes = "3", []string{"Interrupt 24 eth0 1200 a second", "Softirq NET_RX 9 a second"}
	want := "1024 bytes: the maximum is 90µs, and the budget has 89.999µs; on CPU 3 of the client the kernel counted Interrupt 24 eth0 1200 a second, Softirq NET_RX 9 a second"
	if got := Judge(measured, &v1alpha1.LatencyBudget{MaximumNanoseconds: 89_999, LossPartsPerMillion: new(int32(150))}); got.Message != want {
		t.Errorf("a failure is blamed on: %s", got.Message)
	}
	if got := Judge(measured, &v1alpha1.LatencyBudget{MaximumNanoseconds: 90_000, LossPartsPerMillion: new(int32(150))}); strings.Contains(got.Message, "counted") {
		t.Errorf("a pass is blamed on something: %s", got.Message)
	}
	measured.Network.Path = v1alpha1.LatencyPathMixed
	if got := Judge(measured, &v1alpha1.LatencyBudget{Path: v1alpha1.LatencyPathKernel}); got.Reason != v1alpha1.TestNotThroughKernel {
		t.Errorf("%+v", got)
	}
}

// rateRecord is a record of two rates, of which the client missed the second.
func rateRecord() Record {
	r := networkRecord()
	r.Kind, r.RepetitionMaximums, r.MaximumNanoseconds = v1alpha1.LatencyTestRateSweep, []int64{90_000, 50_000}, 90_000
	r.Percentiles = []v1alpha1.LatencyPercentile{{Percentile: v1alpha1.P50, Nanoseconds: 9_000}}
	r.Network.Sizes, r.Network.SizeIntervals = r.Network.Sizes[:1], r.Network.SizeIntervals[:1]
	r.Network.Rates = [][]int64{
		{10_000, 10_000, 64, 200_000, 2, 1, 0, 0, 40, 60_000, 3, 20_000, 4_000, 6_000, 500, 50_000, 6_500, 8_000, 20_000, 20_000, 4_000, 5_500, 500, 40_000, 6_000, 7_000, 9_000},
		{50_000, 41_000, 64, 1_000_000, 0, 0, 1, 4, 900_000, 80_000, 0, 300, 4_000, 9_000, 500, 90_000, 9_000, 300, 4_000, 6_000, 500, 30_000, 6_000},
	}
	r.Network.RateIntervals = [][]int64{{10_000, 10, 20, 30, 40, 50, 60}, {100, 5_000, -1}}
	return r
}

func TestRateRecordsAreReadAsTheyAreWritten(t *testing.T) {
	want := rateRecord()
	got, err := Parse(encoded(t, want))
	if err != nil {
		t.Fatal(err)
	}
	m := got.Network.Measurement("node-2")
	for i := range m.Rates {
		if diff := cmp.Diff(want.Network.Rates[i], RateRow(&m.Rates[i])); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	for i, want := range want.Network.RateIntervals {
		if diff := cmp.Diff(want, IntervalRow(&m.Rates[i].FromIntended)); diff != "" || len(m.Rates[i].FromSent.Intervals) != 0 {
			t.Errorf("%+v (-want +got):\n%s", m.Rates[i].FromSent, diff)
		}
	}
	first := &m.Rates[0]
	if first.Late != 40 || first.AnswersLost != 3 || first.FromIntended.Percentiles[2].Nanoseconds != 20_000 || first.FromSent.Percentiles[2].Nanoseconds != 9_000 {
		t.Errorf("%+v", first)
	}
}

func TestHostileRateRecordsAreRefused(t *testing.T) {
	const contradiction = "the counts of a rate of the record contradict each other"
	for name, tc := range map[string]struct {
		change func(*Record)
		want   string
	}{
		"intervals of one rate alone": {func(r *Record) { r.Network.RateIntervals = r.Network.RateIntervals[:1] }, "the intervals of the record do not hold the percentiles of its rates"},
		"no rate":                     {func(r *Record) { r.Network.Rates = nil }, "the record of kind RateSweep has 0 rates"},
		"rates of a ping-pong":        {func(r *Record) { r.Kind = v1alpha1.LatencyTestPingPong }, "the record of kind PingPong has 2 rates"},
		"too many rates":              {func(r *Record) { r.Network.Rates = make([][]int64, 9) }, "the record of kind RateSweep has 9 rates"},
		"a short row":                 {func(r *Record) { r.Network.Rates[0] = r.Network.Rates[0][:11] }, "the figures of a rate of the record are 0 numbers"},
		"an odd row":                  {func(r *Record) { r.Network.Rates[0] = r.Network.Rates[0][:26] }, "a rate of the record has 26 numbers"},
		"a rate of nothing":           {func(r *Record) { r.Network.Rates[0][0] = 0 }, "a number of a rate of the record is out of its bounds"},
		"a rate beyond all":           {func(r *Record) { r.Network.Rates[0][0] = 5_000_001 }, "a number of a rate of the record is out of its bounds"},
		"a negative count":            {func(r *Record) { r.Network.Rates[0][7] = -1 }, "a number of a rate of the record is out of its bounds"},
		"more lost than sent":         {func(r *Record) { r.Network.Rates[0][4] = 200_001 }, contradiction},
		"more late than sent":         {func(r *Record) { r.Network.Rates[0][8] = 200_001 }, contradiction},
		"more gaps than losses":       {func(r *Record) { r.Network.Rates[0][5] = 3 }, contradiction},
		"samples that differ":         {func(r *Record) { r.Network.Rates[0][19] = 20_001 }, contradiction},
		"a percentile too many":       {func(r *Record) { r.Network.Rates[0][11] = 9_999 }, "a rate of the record has a percentile that its samples do not carry"},
		"a mean above all":            {func(r *Record) { r.Network.Rates[1][19] = 30_001 }, "the mean of a rate of the record is not between its latencies"},
		"a longest of the sizes":      {func(r *Record) { r.MaximumNanoseconds, r.RepetitionMaximums[0] = 90_001, 90_001 }, "the longest latency and the percentiles of the record are not the worst of its sizes or rates"},
	} {
		t.Run(name, func(t *testing.T) {
			r := rateRecord()
			tc.change(&r)
			if _, err := Parse(encoded(t, r)); err == nil || err.Error() != tc.want {
				t.Errorf("refused with %v, want %s", err, tc.want)
			}
		})
	}
}

func TestJudgeRates(t *testing.T) {
	record := rateRecord()
	measured := &v1alpha1.LatencyMeasurement{MaximumNanoseconds: record.MaximumNanoseconds, Network: record.Network.Measurement("node-2")}
	missed := Verdict{v1alpha1.LatencyInconclusive, v1alpha1.TestGeneratorLimit, "50000 messages a second: the generator was the limit: it sent 41000"}
	at := func(name v1alpha1.PercentileName, bound int64) *v1alpha1.LatencyBudget {
		return &v1alpha1.LatencyBudget{Percentiles: []v1alpha1.LatencyPercentile{{Percentile: name, Nanoseconds: bound}}}
	}
	for name, tc := range map[string]struct {
		rates  int
		budget *v1alpha1.LatencyBudget
		want   Verdict
	}{
		"no budget": {1, nil, Verdict{v1alpha1.LatencyInconclusive, v1alpha1.TestNoBudget, "measured, but spec.budget does not say what is good enough: " +
			"10000 a second: median 6.5 µs, longest 50 µs, 2 lost; to a server on node node-2, path Kernel"}},
		"at the bound": {1, at(v1alpha1.P99, 20_000), Verdict{v1alpha1.LatencyPassed, v1alpha1.TestWithinBudget, "within the budget: " +
			"10000 a second: median 6.5 µs, longest 50 µs, 2 lost; to a server on node node-2, path Kernel"}},
		// From when messages left, 99 % is 9 µs: what the client was late itself must not be hidden.
		"from the intended time": {1, at(v1alpha1.P99, 19_999), Verdict{v1alpha1.LatencyFailed, v1alpha1.TestOverBudget,
			"10000 messages a second: 99 % is 20µs, and the budget has 19.999µs"}},
		"a rate that was missed":            {2, at(v1alpha1.P50, 20_000), missed},
		"what failed before a missed rate":  {2, at(v1alpha1.P50, 6_499), Verdict{v1alpha1.LatencyFailed, v1alpha1.TestOverBudget, "10000 messages a second: 50 % is 6.5µs, and the budget has 6.499µs"}},
		"a missed rate proves no late send": {2, &v1alpha1.LatencyBudget{LatePartsPerMillion: new(int32(200))}, missed},
		"loss": {1, &v1alpha1.LatencyBudget{LossPartsPerMillion: new(int32(9))},
			Verdict{v1alpha1.LatencyFailed, v1alpha1.TestLoss, "10000 messages a second: 2 of 200000 messages were lost, and the budget has 9 parts per million"}},
		"late": {1, &v1alpha1.LatencyBudget{LatePartsPerMillion: new(int32(199))},
			Verdict{v1alpha1.LatencyFailed, v1alpha1.TestLateSends, "10000 messages a second: 40 of 200000 messages left late, the latest by 60µs, and the budget has 199 parts per million"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := measured.DeepCopy()
			m.Network.Rates = m.Network.Rates[:tc.rates]
			if diff := cmp.Diff(tc.want, Judge(m, tc.budget)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestParametersOfTraffic: what is measured decides about the hash, and that of jitter is as it was before there was anything else.
func TestParametersOfTraffic(t *testing.T) {
	if got, want := ParametersOf(&v1alpha1.LatencyTestSpec{Kind: v1alpha1.LatencyTestJitter}).Hash(), hashOf("Jitter 1m0s 1 1 500ns"); got != want {
		t.Errorf("the hash of jitter is %s, want %s", got, want)
	}
	const former = "PingPong 1m0s 1 1 500ns [64 1 32 128 256 512 1024 1472] {Transport:Multicast Waiting:Spin Server:{Placement:SameNode NodeNames:[] " +
		"TestEnd:{BypassNICPool: Address:}} Client:{BypassNICPool: Address:}}"
	old := v1alpha1.LatencyTestSpec{Kind: v1alpha1.LatencyTestPingPong, Traffic: &v1alpha1.TestTraffic{
		Transport: v1alpha1.TransportMulticast, Server: v1alpha1.TestServer{Placement: v1alpha1.ServerOnSameNode},
	}}
	if got, want := ParametersOf(&old).Hash(), hashOf(former); got != want {
		t.Errorf("the hash of a test without the fields that came later is %s, want %s", got, want)
	}
	spec := func(change func(*v1alpha1.LatencyTestSpec)) string {
		s := v1alpha1.LatencyTestSpec{Kind: v1alpha1.LatencyTestPingPong, Traffic: &v1alpha1.TestTraffic{Transport: v1alpha1.TransportUDP}}
		change(&s)
		return ParametersOf(&s).Hash()
	}
	base := spec(func(*v1alpha1.LatencyTestSpec) {})
	for name, change := range map[string]func(*v1alpha1.LatencyTestSpec){
		"transport": func(s *v1alpha1.LatencyTestSpec) { s.Traffic.Transport = v1alpha1.TransportTCP },
		"group":     func(s *v1alpha1.LatencyTestSpec) { s.Traffic.MulticastGroup = "239.192.1.7" },
		"waiting":   func(s *v1alpha1.LatencyTestSpec) { s.Traffic.Waiting = v1alpha1.WaitingBlock },
		"messages":  func(s *v1alpha1.LatencyTestSpec) { s.PingPong = &v1alpha1.PingPongTest{MessagesPerSize: 999_999} },
		"sizes":     func(s *v1alpha1.LatencyTestSpec) { s.PingPong = &v1alpha1.PingPongTest{Sizes: []int32{1}} },
		"server":    func(s *v1alpha1.LatencyTestSpec) { s.Traffic.Server.NodeNames = []string{"a"} },
		"client":    func(s *v1alpha1.LatencyTestSpec) { s.Traffic.Client = &v1alpha1.TestEnd{BypassNICPool: "x2"} },
	} {
		if spec(change) == base {
			t.Errorf("another %s measures the same", name)
		}
	}
	sweep := func(value v1alpha1.RateSweepTest) string {
		return spec(func(s *v1alpha1.LatencyTestSpec) { s.Kind, s.RateSweep = v1alpha1.LatencyTestRateSweep, &value })
	}
	for name, value := range map[string]v1alpha1.RateSweepTest{
		"rate": {MessagesPerSecond: []int32{1}}, "size": {Bytes: 65}, "number of answers": {AnswersPerRate: 1000},
	} {
		if sweep(value) == sweep(v1alpha1.RateSweepTest{}) {
			t.Errorf("another %s measures the same", name)
		}
	}
	search := func(value v1alpha1.LoadSearchTest) string {
		return spec(func(s *v1alpha1.LatencyTestSpec) { s.Kind, s.LoadSearch = v1alpha1.LatencyTestLoadSearch, &value })
	}
	for name, value := range map[string]v1alpha1.LoadSearchTest{
		"size": {Bytes: 65}, "lowest rate": {LowestMessagesPerSecond: 1}, "loss": {LossPartsPerMillion: new(int32(1))}, "number of retries": {Retries: new(int32)},
		"growth": {Growth: &v1alpha1.LatencyGrowth{Percentile: v1alpha1.P50, MaximumPercent: 200}}, "confirmation": {ConfirmSeconds: 61},
	} {
		if search(value) == search(v1alpha1.LoadSearchTest{}) {
			t.Errorf("another %s measures the same", name)
		}
	}
	inForce := func(s *v1alpha1.LatencyTestSpec) {
		s.Traffic.Waiting, s.PingPong = v1alpha1.WaitingSpin, &v1alpha1.PingPongTest{MessagesPerSize: 1_000_000}
	}
	if spec(inForce) != base {
		t.Error("the value in force measures something else when it is written")
	}
}
