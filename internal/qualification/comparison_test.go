// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package qualification

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// compares are the parameters of a test that compares so often.
func compares(repetitions int32) *Parameters {
	p := ParametersOf(&v1alpha1.LatencyTestSpec{
		Kind: v1alpha1.LatencyTestContainerVersusHost, Repetitions: repetitions,
		Traffic: &v1alpha1.TestTraffic{Transport: v1alpha1.TransportUDP, Client: &v1alpha1.TestEnd{BypassNICPool: "x2", Address: "192.0.2.31/24"}},
	})
	return &p
}

// runRecord is what a run leaves behind whose median of 64 bytes is given, and whose 1024 bytes carry the median alone.
func runRecord(median int64, path v1alpha1.LatencyPath) *Record {
	r := &Record{
		Version: Version, Kind: v1alpha1.LatencyTestContainerVersusHost, Kernel: "6.12", BootID: "b1", CPUs: "4", MaximumNanoseconds: 9 * median,
		RepetitionMaximums: []int64{9 * median}, Percentiles: []v1alpha1.LatencyPercentile{{Percentile: v1alpha1.P50, Nanoseconds: 2 * median}},
		Histogram: fmt.Sprint("of", median),
		Network: &NetworkRecord{
			Path: path, PathMessage: "the kernel counted 2 for 2 messages", ServerKernel: "6.12", Medians: []int64{median},
			Sizes: [][]int64{{64, 1, 0, 20_000, median / 2, median, 10, 8 * median, median, 2 * median, 3 * median}, {1024, 0, 0, 200, median, 2 * median, 10, 9 * median, 2 * median}},
		},
	}
	return r
}

// runsOf are the records of all runs: of a host whose medians are given, and of a container that takes so many parts per thousand of that.
func runsOf(p *Parameters, parts int64, hosts ...int64) []*Record {
	records := make([]*Record, 0, p.Runs())
	for run := range p.Runs() {
		median := hosts[run/2]
		if !p.SideOf(run).IsOnHost {
			median = median * parts / 1000
		}
		records = append(records, runRecord(median, v1alpha1.LatencyPathKernel))
	}
	return records
}

// TestSidesTakeTurns: the order turns round, so that what becomes slower meanwhile favours no side.
func TestSidesTakeTurns(t *testing.T) {
	p := compares(5)
	order := make([]string, 0, p.Runs())
	for run := range p.Runs() {
		order = append(order, string(p.SideOf(run).Name[0]))
	}
	if got := strings.Join(order, ""); got != "CHHCCHHCCH" {
		t.Errorf("the order is %s", got)
	}
	container, host := p.SideOf(0), p.SideOf(1)
	if host.Client.BypassNICPool != "x2" || host.Client.Address != "" || container.Client.Address == "" || container.IsOnHost || !host.IsOnHost {
		t.Errorf("%+v and %+v", container, host)
	}
	if got := compares(0); got.Repetitions != 6 || got.RepetitionsOfRun() != 1 {
		t.Errorf("%d repetitions, and %d of a run", got.Repetitions, got.RepetitionsOfRun())
	}
}

// TestDriftFavoursNoSide: the node becomes slower all the time, and a container is as fast as its host.
func TestDriftFavoursNoSide(t *testing.T) {
	p := compares(6)
	records := make([]*Record, 0, p.Runs())
	for run := range p.Runs() {
		records = append(records, runRecord(int64(10_000+500*run), v1alpha1.LatencyPathKernel))
	}
	ratio := RatioOf(&Compared(p, records, "n2").Network.Comparison.Sides[0], 64, v1alpha1.P50)
	if ratio == nil || ratio.LowPartsPerThousand > 1000 || ratio.HighPartsPerThousand < 1000 {
		t.Errorf("%+v", ratio)
	}
}

func TestCompared(t *testing.T) {
	p := compares(5)
	m := Compared(p, runsOf(p, 1100, 10_000, 10_400, 10_200, 10_600, 10_800), "n2")
	c := m.Network.Comparison
	want := []v1alpha1.LatencyRatio{
		{Bytes: 64, Percentile: v1alpha1.P50, PartsPerThousand: 1100}, {Bytes: 64, Percentile: v1alpha1.P90, PartsPerThousand: 1100},
		{Bytes: 64, Percentile: v1alpha1.P99, PartsPerThousand: 1100}, {Bytes: 1024, Percentile: v1alpha1.P50, PartsPerThousand: 1100},
	}
	for i := range want {
		want[i].LowPartsPerThousand, want[i].HighPartsPerThousand = 1100, 1100
	}
	got := c.Sides[0].Ratios
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The figures of the measurement are those of the container.
	if m.MaximumNanoseconds != 9*11_880 || m.Percentiles[0].Nanoseconds != 2*11_880 || m.CPUs != "4" || m.Network.Path != v1alpha1.LatencyPathKernel {
		t.Errorf("%+v", m)
	}
}

// TestComparedSides: of each side the counts add up, of each figure the worst counts, and the histogram is that of the repetition in the middle.
func TestComparedSides(t *testing.T) {
	p := compares(5)
	c := Compared(p, runsOf(p, 1100, 10_000, 10_400, 10_200, 10_600, 10_800), "n2").Network.Comparison
	host := &c.Sides[1]
	if diff := cmp.Diff([]int64{10_000, 10_400, 10_200, 10_600, 10_800}, host.RepetitionMediansNanoseconds); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(host.Ratios) != 0 || host.Histogram != "of10400" || c.Base != v1alpha1.LatencySideHost {
		t.Errorf("%+v", host)
	}
	if s := host.Sizes[0]; s.Samples != 100_000 || s.Lost != 5 || s.MinimumNanoseconds != 5_000 || s.MaximumNanoseconds != 86_400 || s.Percentiles[0].Nanoseconds != 10_800 {
		t.Errorf("%+v", s)
	}
}

func TestJudgeComparisons(t *testing.T) {
	p := compares(5)
	steady := runsOf(p, 1100, 10_000, 10_400, 10_200, 10_600, 10_800)
	// One container is as fast as its host, and one twice as slow.
	unsteady := runsOf(p, 1000, 10_000, 10_000, 10_000, 10_000, 10_000)
	for i, median := range map[int]int64{0: 9_000, 3: 10_500, 4: 12_000} {
		unsteady[i] = runRecord(median, v1alpha1.LatencyPathKernel)
	}
	accelerated := runsOf(p, 1000, 10_000, 10_000, 10_000, 10_000, 10_000)
	for run := range accelerated {
		if p.SideOf(run).IsOnHost {
			accelerated[run].Network.Path = v1alpha1.LatencyPathAccelerated
		}
	}
	moved := runsOf(p, 1000, 10_000, 10_000, 10_000, 10_000, 10_000)
	for run := range moved {
		if p.SideOf(run).IsOnHost {
			moved[run].CPUs = "6"
		}
	}
	for name, tc := range map[string]struct {
		records []*Record
		budget  *v1alpha1.LatencyBudget
		reason  string
		message string
	}{
		"no budget":        {steady, nil, "Inconclusive NoBudget", "measured, but spec.budget does not say what is good enough: container to host, 64 bytes, 50 %: 1.100 ("},
		"any ratio":        {steady, &v1alpha1.LatencyBudget{Path: v1alpha1.LatencyPathKernel}, "Passed WithinBudget", "within the budget: container to host, 64 bytes, 50 %: 1.100 ("},
		"within":           {steady, ratioBudget(v1alpha1.P50, 1101), "Passed WithinBudget", "64 bytes, 99 %: 1.100 ("},
		"beyond":           {steady, ratioBudget(v1alpha1.P50, 1098), "Failed Ratio", "container to host, 64 bytes, 50 %: 1.100 (1.100 to 1.100) times as long, and the budget has 1.098"},
		"not told apart":   {unsteady, ratioBudget(v1alpha1.P50, 1010), "Inconclusive Ratio", "which the measurements do not tell apart from the 1.010 of the budget: measure longer, or with more repetitions"},
		"not carried":      {steady, ratioBudget(v1alpha1.P99, 1200), "Inconclusive TooFewSamples", "container to host, 1024 bytes, 99 %: 5 pairs of measurements carry no ratio: each takes 10000 samples of the size, and 5 pairs an interval"},
		"failed before it": {steady, ratioBudget(v1alpha1.P99, 1098), "Failed Ratio", "64 bytes, 99 %"},
		"other CPUs":       {moved, ratioBudget(v1alpha1.P50, 1010), "Passed WithinBudget", "; the sides were measured on different CPUs, which may be a part of it: container 4, host 6"},
		"two paths":        {accelerated, ratioBudget(v1alpha1.P50, 2000), "Inconclusive PathsDiffer", "container Kernel (the kernel counted 2 for 2 messages), host Accelerated (the kernel counted 2 for 2 messages)"},
		"another path": {steady, &v1alpha1.LatencyBudget{Path: v1alpha1.LatencyPathAccelerated}, "Inconclusive NotAccelerated",
			"the path was not accelerated: the kernel counted 2 for 2 messages"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Judge(Compared(p, tc.records, "n2"), tc.budget)
			if string(got.Outcome)+" "+got.Reason != tc.reason || !strings.Contains(got.Message, tc.message) || strings.Contains(got.Message, "different CPUs") != (name == "other CPUs") {
				t.Errorf("%+v", got)
			}
		})
	}
}

func ratioBudget(percentile v1alpha1.PercentileName, parts int32) *v1alpha1.LatencyBudget {
	return &v1alpha1.LatencyBudget{Ratios: []v1alpha1.LatencyRatioBound{{Percentile: percentile, MaximumPartsPerThousand: parts}}}
}

// losing are runs with one of forty messages of 64 bytes without an answer on a side, or on both.
func losing(p *Parameters, container, host bool) []*Record {
	records := runsOf(p, 1000, 10_000, 10_000, 10_000, 10_000, 10_000)
	for run, record := range records {
		if p.SideOf(run).IsOnHost && host || !p.SideOf(run).IsOnHost && container {
			record.Network.Sizes[0][1] = 500
		}
	}
	return records
}

// TestLossInComparisons: a percentile of the messages that have an answer is none of all of them where too many have none.
func TestLossInComparisons(t *testing.T) {
	p := compares(5)
	for name, tc := range map[string]struct {
		records []*Record
		budget  *v1alpha1.LatencyBudget
		reason  string
		message string
	}{
		"loss in the container": {losing(p, true, false), ratioBudget(v1alpha1.P99, 1100), "Failed Loss",
			"container to host, 64 bytes, 99 %: messages were lost, 2500 of 102500 there and 5 of 100005 on host, so that no ratio is one of all messages"},
		"loss on the host":                       {losing(p, false, true), ratioBudget(v1alpha1.P99, 1100), "Inconclusive Loss", "messages were lost, 5 of 100005 there and 2500 of 102500 on host"},
		"loss on both":                           {losing(p, true, true), ratioBudget(v1alpha1.P99, 1100), "Inconclusive Loss", "messages were lost, 2500 of 102500 there and 2500 of 102500 on host"},
		"loss that a lower percentile can carry": {losing(p, true, true), ratioBudget(v1alpha1.P90, 1100), "Inconclusive TooFewSamples", "1024 bytes, 90 %"},
		"loss that the median can carry":         {losing(p, true, true), ratioBudget(v1alpha1.P50, 1100), "Passed WithinBudget", "within the budget"},
	} {
		got := Judge(Compared(p, tc.records, "n2"), tc.budget)
		if string(got.Outcome)+" "+got.Reason != tc.reason || !strings.Contains(got.Message, tc.message) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestUnknownPathsAreNotCompared: what nobody could read is never the same.
func TestUnknownPathsAreNotCompared(t *testing.T) {
	p := compares(5)
	for _, path := range []v1alpha1.LatencyPath{v1alpha1.LatencyPathUnknown, v1alpha1.LatencyPathMixed} {
		records := runsOf(p, 1000, 10_000, 10_000, 10_000, 10_000, 10_000)
		for _, record := range records {
			record.Network.Path = path
		}
		got := Judge(Compared(p, records, "n2"), &v1alpha1.LatencyBudget{Ratios: []v1alpha1.LatencyRatioBound{{Percentile: v1alpha1.P50, MaximumPartsPerThousand: 5000}}})
		if got.Outcome != v1alpha1.LatencyInconclusive || got.Reason != v1alpha1.TestPathsDiffer {
			t.Errorf("%s: %+v", path, got)
		}
	}
}

// TestTooFewPairs: what carries no interval is not judged, however large it is.
func TestTooFewPairs(t *testing.T) {
	p := compares(4)
	m := Compared(p, runsOf(p, 3000, 10_000, 10_000, 10_000, 10_000), "n2")
	got := Judge(m, &v1alpha1.LatencyBudget{Ratios: []v1alpha1.LatencyRatioBound{{Percentile: v1alpha1.P50, MaximumPartsPerThousand: 1000}}})
	if got.Outcome != v1alpha1.LatencyInconclusive || got.Reason != v1alpha1.TestTooFewSamples || len(m.Network.Comparison.Sides[0].Ratios) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestRatiosAreWorse: the ratios of two runs are compared, whatever has become of the latencies of both sides.
func TestRatiosAreWorse(t *testing.T) {
	p := compares(5)
	before := Compared(p, runsOf(p, 1000, 20_000, 20_400, 20_200, 20_600, 20_800), "n2")
	after := Compared(p, runsOf(p, 1200, 10_000, 10_400, 10_200, 10_600, 10_800), "n2")
	got := CompareMeasurements(before, after)
	if got.Trend != TrendWorse || !strings.HasPrefix(got.Message, "the ratios of medians are larger than before in every repetition (1.200, were 1.000), 1.20 times as large") {
		t.Errorf("%+v", got)
	}
	if same := CompareMeasurements(before, before); same.Trend != TrendSame {
		t.Errorf("%+v", same)
	}
}

// TestPathsThatDifferAreNoTrend: a stack that did not take over is no slow stack, and what lost most of its messages has no ratio.
func TestPathsThatDifferAreNoTrend(t *testing.T) {
	p := compares(5)
	measured := func() *v1alpha1.LatencyMeasurement {
		return Compared(p, runsOf(p, 1000, 20_000, 20_400, 20_200, 20_600, 20_800), "n2")
	}
	before := measured()
	sides := func(m *v1alpha1.LatencyMeasurement, path v1alpha1.LatencyPath) {
		for i := range m.Network.Comparison.Sides {
			side := &m.Network.Comparison.Sides[i]
			side.WantedPath, side.Path = v1alpha1.LatencyPathKernel, v1alpha1.LatencyPathKernel
			if side.Side != m.Network.Comparison.Base {
				side.WantedPath, side.Path = v1alpha1.LatencyPathAccelerated, path
			}
		}
	}
	for name, tc := range map[string]struct {
		change func(m *v1alpha1.LatencyMeasurement)
		want   string
	}{
		"the wanted path":          {func(m *v1alpha1.LatencyMeasurement) { sides(m, v1alpha1.LatencyPathAccelerated) }, "the ratios of medians"},
		"the kernel instead":       {func(m *v1alpha1.LatencyMeasurement) { sides(m, v1alpha1.LatencyPathKernel) }, "was to go Accelerated and went Kernel"},
		"different paths":          {func(m *v1alpha1.LatencyMeasurement) { m.Network.Path = v1alpha1.LatencyPathMixed }, "did not go one known way"},
		"messages lost on a side":  {func(m *v1alpha1.LatencyMeasurement) { m.Network.Comparison.Sides[0].Sizes[0].Lost = 1 << 40 }, "messages were lost"},
		"and on the side of base":  {func(m *v1alpha1.LatencyMeasurement) { m.Network.Comparison.Sides[1].Sizes[0].Lost = 1 << 40 }, "messages were lost"},
		"lost of another size yet": {func(m *v1alpha1.LatencyMeasurement) { m.Network.Comparison.Sides[1].Sizes[1].Lost = 1 << 40 }, "the ratios of medians"},
	} {
		after := measured()
		tc.change(after)
		got := CompareMeasurements(before, after)
		if isKnown := strings.HasPrefix(tc.want, "the ratios"); (got.Trend == TrendSame) != isKnown || (got.Trend == TrendUnknown) == isKnown || !strings.Contains(got.Message, tc.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestSizesBesideAComparisonOfNothing: what somebody has saved and changed may have sizes beside a comparison of nothing.
func TestSizesBesideAComparisonOfNothing(t *testing.T) {
	n := &v1alpha1.NetworkMeasurement{Sizes: []v1alpha1.SizeMeasurement{{Bytes: 64}}, Comparison: &v1alpha1.ComparisonMeasurement{}}
	if at := RepeatedRow(n, Rows(n)); at != -1 {
		t.Errorf("row %d is that of the repetitions", at)
	}
}
