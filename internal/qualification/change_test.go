// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package qualification

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

func TestCompareMeasurements(t *testing.T) {
	cases := map[string]struct {
		before, after []int64
		change        func(after *v1alpha1.LatencyMeasurement)
		want          Trend
		wantText      string
		wantRatio     bool
	}{
		"worse": {
			[]int64{5000, 6000, 7000}, []int64{7001, 9000, 8000}, nil, TrendWorse,
			"longer than before in every repetition (7.001 µs to 9 µs, were 5 µs to 7 µs); nothing that the operator knows of has changed", false,
		},
		"worse, and the kernel is another": {
			[]int64{5, 6, 7}, []int64{9, 9, 9}, func(m *v1alpha1.LatencyMeasurement) { m.Fingerprint.Kernel = "6.13" }, TrendWorse,
			"(9 ns, were 5 ns to 7 ns); what has changed meanwhile: the kernel (6.13, was 6.12)", false,
		},
		"the best equals the worst": {[]int64{5, 6, 7}, []int64{7, 8, 9}, nil, TrendSame, "within the spread between repetitions", false},
		"better":                    {[]int64{5, 6, 7}, []int64{1, 2, 4}, nil, TrendBetter, "shorter than before", false},
		"five carry a ratio": {
			[]int64{100, 100, 100, 100, 100}, []int64{200, 200, 200, 200, 200}, nil, TrendWorse, "2.00 times as long (95 % between 2.00 and 2.00)", true,
		},
		"no interruption at all, and then some": {[]int64{0, 0, 0, 0, 0}, []int64{1, 1, 1, 1, 1}, nil, TrendWorse, "(1 ns, were 0 ns)", false},
		"too few":                               {[]int64{5, 6}, []int64{9, 9, 9}, nil, TrendUnknown, "2 and 3 repetitions cannot tell", false},
		"none":                                  {nil, nil, nil, TrendUnknown, "0 and 0 repetitions", false},
		"other parameters": {
			[]int64{5, 6, 7}, []int64{9, 9, 9}, func(m *v1alpha1.LatencyMeasurement) { m.ParametersHash = "other" }, TrendUnknown, "other parameters", false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := &v1alpha1.LatencyMeasurement{RepetitionMaximumsNanoseconds: tc.before, Fingerprint: v1alpha1.LatencyFingerprint{Kernel: "6.12"}}
			after := before.DeepCopy()
			after.RepetitionMaximumsNanoseconds = tc.after
			if tc.change != nil {
				tc.change(after)
			}
			got := CompareMeasurements(before, after)
			if got.Trend != tc.want || !strings.Contains(got.Message, tc.wantText) || (got.Ratio != nil) != tc.wantRatio {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestCompareWithEarlierRuns: what was seen in runs before the one before is no change.
func TestCompareWithEarlierRuns(t *testing.T) {
	of := func(figures ...int64) *v1alpha1.LatencyMeasurement {
		return &v1alpha1.LatencyMeasurement{RepetitionMaximumsNanoseconds: figures}
	}
	one, two := v1alpha1.LatencyRunSpread{Least: 6, Most: 8}, v1alpha1.LatencyRunSpread{Least: 2, Most: 3}
	for name, tc := range map[string]struct {
		after    *v1alpha1.LatencyMeasurement
		earlier  []v1alpha1.LatencyRunSpread
		want     Trend
		wantText string
	}{
		"beyond the run before alone":  {of(8, 9, 10), []v1alpha1.LatencyRunSpread{one}, TrendSame, "(8 ns to 10 ns, were 5 ns to 7 ns, and in the run before that 6 ns to 8 ns)"},
		"beyond all":                   {of(9, 9, 10), []v1alpha1.LatencyRunSpread{one, two}, TrendWorse, "were 5 ns to 7 ns, and in the 2 runs before that 2 ns to 8 ns)"},
		"below the run before alone":   {of(3, 3, 4), []v1alpha1.LatencyRunSpread{one, two}, TrendSame, "within the spread"},
		"below all":                    {of(1, 1, 1), []v1alpha1.LatencyRunSpread{one, two}, TrendBetter, "shorter than before"},
		"no earlier run that is known": {of(8, 9, 10), nil, TrendWorse, "were 5 ns to 7 ns);"},
	} {
		if got := CompareMeasurements(of(5, 6, 7), tc.after, tc.earlier...); got.Trend != tc.want || !strings.Contains(got.Message, tc.wantText) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestLossIsNoBetterRun: the medians of the few messages that came back, or of none, are shorter, and nothing has become better.
func TestLossIsNoBetterRun(t *testing.T) {
	sized := func(lost, samples int64, medians ...int64) *v1alpha1.LatencyMeasurement {
		return &v1alpha1.LatencyMeasurement{Network: &v1alpha1.NetworkMeasurement{RepetitionMediansNanoseconds: medians, Sizes: []v1alpha1.SizeMeasurement{
			{Bytes: 64, Lost: lost, LatencyFigures: v1alpha1.LatencyFigures{Samples: samples}}, {Bytes: 1024, Lost: 90_000, LatencyFigures: v1alpha1.LatencyFigures{Samples: 1}},
		}}}
	}
	rated := func(lost, sent int64, medians ...int64) *v1alpha1.LatencyMeasurement {
		return &v1alpha1.LatencyMeasurement{Network: &v1alpha1.NetworkMeasurement{RepetitionMediansNanoseconds: medians, Rates: []v1alpha1.RateMeasurement{
			{MessagesPerSecond: 100, Lost: lost, Sent: sent, FromIntended: v1alpha1.LatencyFigures{Samples: sent - lost}},
		}}}
	}
	for name, tc := range map[string]struct {
		before, after *v1alpha1.LatencyMeasurement
		want          Trend
		wantText      string
	}{
		"none lost":           {sized(0, 1000, 5, 6, 7), sized(0, 1000, 1, 2, 3), TrendBetter, "shorter than before"},
		"few lost":            {sized(0, 1000, 5, 6, 7), sized(300, 700, 1, 2, 3), TrendBetter, "shorter than before"},
		"most lost":           {sized(0, 1000, 5, 6, 7), sized(700, 300, 1, 2, 3), TrendUnknown, "of 64 bytes 700 of 1000 messages were lost"},
		"most lost before":    {sized(700, 300, 1, 2, 3), sized(0, 1000, 5, 6, 7), TrendUnknown, "in the run before of 64 bytes 700 of 1000 messages were lost"},
		"all lost":            {rated(0, 600, 5, 6, 7), rated(600, 600, 0, 0, 0), TrendUnknown, "of 100 a second 600 of 600 messages were lost"},
		"all of a repetition": {rated(0, 600, 5, 6, 7), rated(200, 600, 3, 0, 3), TrendUnknown, "of 100 a second 200 of 600 messages were lost"},
	} {
		got := CompareMeasurements(tc.before, tc.after)
		if got.Trend != tc.want || !strings.Contains(got.Message, tc.wantText) {
			t.Errorf("%s: %+v", name, got)
		}
		if tc.want == TrendUnknown && got.Ratio != nil {
			t.Errorf("%s: a ratio of %+v", name, got.Ratio)
		}
	}
	if earlier := EarlierRuns(nil, rated(600, 600, 0, 0, 0), rated(0, 600, 5, 6, 7)); earlier != nil {
		t.Errorf("a run without answers is kept as %+v", earlier)
	}
}

func TestEarlierRuns(t *testing.T) {
	run := func(hash, kernel string, figures ...int64) *v1alpha1.LatencyMeasurement {
		return &v1alpha1.LatencyMeasurement{ParametersHash: hash, Fingerprint: v1alpha1.LatencyFingerprint{Kernel: kernel}, RepetitionMaximumsNanoseconds: figures}
	}
	spread := func(least, most int64) v1alpha1.LatencyRunSpread {
		return v1alpha1.LatencyRunSpread{Least: least, Most: most}
	}
	five := []v1alpha1.LatencyRunSpread{spread(1, 1), spread(2, 2), spread(3, 3), spread(4, 4), spread(5, 5)}
	for name, tc := range map[string]struct {
		earlier       []v1alpha1.LatencyRunSpread
		was, previous *v1alpha1.LatencyMeasurement
		want          []v1alpha1.LatencyRunSpread
	}{
		"the first run":    {nil, nil, run("a", "6.12", 1), nil},
		"the second":       {nil, run("a", "6.12", 7, 3, 5), run("a", "6.12", 1), []v1alpha1.LatencyRunSpread{spread(3, 7)}},
		"the oldest goes":  {five, run("a", "6.12", 6), run("a", "6.12", 1), append([]v1alpha1.LatencyRunSpread{spread(6, 6)}, five[:4]...)},
		"other parameters": {five, run("b", "6.12", 6), run("a", "6.12", 1), nil},
		"another kernel":   {five, run("a", "6.12", 6), run("a", "6.13", 1), nil},
		"without a figure": {five, run("a", "6.12"), run("a", "6.12", 1), nil},
	} {
		if diff := cmp.Diff(tc.want, EarlierRuns(tc.earlier, tc.was, tc.previous)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestOtherWaysAreNoTrend: a server farther away, or the kernel instead of a stack, makes no node worse.
func TestOtherWaysAreNoTrend(t *testing.T) {
	over := func(server string, path v1alpha1.LatencyPath, medians ...int64) *v1alpha1.LatencyMeasurement {
		return &v1alpha1.LatencyMeasurement{Network: &v1alpha1.NetworkMeasurement{Server: server, Path: path, RepetitionMediansNanoseconds: medians}}
	}
	for name, tc := range map[string]struct {
		after    *v1alpha1.LatencyMeasurement
		want     Trend
		wantText string
	}{
		"the same way":   {over("b", v1alpha1.LatencyPathAccelerated, 8, 9, 10), TrendWorse, "longer than before"},
		"another server": {over("c", v1alpha1.LatencyPathAccelerated, 8, 9, 10), TrendUnknown, "the server ran on node c, and in the run before on node b, so that they cannot be compared"},
		"another path":   {over("b", v1alpha1.LatencyPathKernel, 8, 9, 10), TrendUnknown, "messages went by path Kernel (), and in the run before by path Accelerated"},
	} {
		before := over("b", v1alpha1.LatencyPathAccelerated, 5, 6, 7)
		if got := CompareMeasurements(before, tc.after); got.Trend != tc.want || !strings.Contains(got.Message, tc.wantText) {
			t.Errorf("%s: %+v", name, got)
		}
		if got := TrendOf(before, tc.after); got != tc.want {
			t.Errorf("%s: the trend alone is %s, want %s", name, got, tc.want)
		}
	}
}

func TestChangesOfServers(t *testing.T) {
	over := func(server string, fingerprint *v1alpha1.LatencyFingerprint) *v1alpha1.LatencyMeasurement {
		return &v1alpha1.LatencyMeasurement{Network: &v1alpha1.NetworkMeasurement{Server: server, ServerFingerprint: fingerprint}}
	}
	kernel := func(release string) *v1alpha1.LatencyFingerprint {
		return &v1alpha1.LatencyFingerprint{Kernel: release}
	}
	for name, tc := range map[string]struct {
		before, after *v1alpha1.LatencyMeasurement
		want          []string
	}{
		"nothing":        {over("b", kernel("6.12")), over("b", kernel("6.12")), nil},
		"its kernel":     {over("b", kernel("6.12")), over("b", kernel("6.13")), []string{"on the node of the server the kernel (6.13, was 6.12)"}},
		"another server": {over("b", kernel("6.12")), over("c", kernel("6.13")), []string{"the node of the server (c, was b)"}},
		"nobody told":    {over("b", nil), over("b", kernel("6.13")), nil},
		"jitter":         {&v1alpha1.LatencyMeasurement{}, over("b", kernel("6.13")), nil},
	} {
		if diff := cmp.Diff(tc.want, CompareMeasurements(tc.before, tc.after).Fingerprint); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
