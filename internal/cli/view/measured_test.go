// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// measuredKinds are a measurement of each kind, whose histograms say what they are of.
func measuredKinds() map[string]*v1alpha1.LatencyMeasurement {
	sizes := []v1alpha1.SizeMeasurement{{Bytes: 64}, {Bytes: 1024, LatencyFigures: v1alpha1.LatencyFigures{Samples: 1}}}
	over := func(n v1alpha1.NetworkMeasurement) *v1alpha1.LatencyMeasurement {
		return &v1alpha1.LatencyMeasurement{Histogram: "h", MaximumNanoseconds: 7, Network: &n}
	}
	compared := over(v1alpha1.NetworkMeasurement{Comparison: &v1alpha1.ComparisonMeasurement{Base: "Host", Sides: []v1alpha1.SideMeasurement{
		{Side: "Container", Sizes: sizes, Histogram: "c"}, {Side: "Host", Sizes: sizes, Histogram: "b"}, {Side: "bare", Sizes: sizes},
	}}})
	compared.Histogram = ""
	searched := v1alpha1.NetworkMeasurement{Sizes: sizes[:1], Load: &v1alpha1.LoadMeasurement{}, Rates: []v1alpha1.RateMeasurement{
		{Trial: v1alpha1.LoadTrialLow, MessagesPerSecond: 100, Bytes: 64}, {Trial: v1alpha1.LoadTrialBestPass, MessagesPerSecond: 900, Bytes: 64},
	}}
	return map[string]*v1alpha1.LatencyMeasurement{
		"nothing": nil,
		"jitter":  {Histogram: "h", MaximumNanoseconds: 7},
		"sizes":   over(v1alpha1.NetworkMeasurement{Sizes: sizes}),
		"lost":    over(v1alpha1.NetworkMeasurement{Sizes: sizes[:1]}),
		"rates":   over(v1alpha1.NetworkMeasurement{Sizes: sizes[:1], Rates: []v1alpha1.RateMeasurement{{MessagesPerSecond: 100, Bytes: 64}, {MessagesPerSecond: 200, Bytes: 64}}}),
		"search":  over(searched),
		"sides":   compared,
		"no side": over(v1alpha1.NetworkMeasurement{Comparison: &v1alpha1.ComparisonMeasurement{Base: "Host"}}),
	}
}

// TestHistogramsSayWhatTheyAreOf: the first size or rate has one, on each side of a comparison, and of a search the best rate.
func TestHistogramsSayWhatTheyAreOf(t *testing.T) {
	want := map[string][]Histogram{
		"nothing": nil,
		"jitter":  {{Text: "h"}},
		"sizes":   {{Of: "64 bytes", Tag: "64bytes", Text: "h"}},
		"lost":    {{Of: "64 bytes", Tag: "64bytes", Text: "h"}},
		"rates":   {{Of: "100 a second", Tag: "100persecond-intended", Text: "h"}},
		"search":  {{Of: "900 a second", Tag: "900persecond-intended", Text: "h"}},
		"sides":   {{Side: "container", Of: "64 bytes", Tag: "container/64bytes", Text: "c"}, {Side: "host", Of: "64 bytes", Tag: "host/64bytes", Text: "b"}},
		"no side": nil,
	}
	got := map[string][]Histogram{}
	for name, m := range measuredKinds() {
		got[name] = Histograms(m)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLongest is known where a message had an answer, and of interruptions always.
func TestLongest(t *testing.T) {
	for name, want := range map[string]bool{"jitter": true, "sizes": true, "lost": false, "rates": false} {
		if _, known := Longest(measuredKinds()[name]); known != want {
			t.Errorf("%s: %t", name, known)
		}
	}
}

// TestSubjects: no kind that is measured otherwise has the subject of another.
func TestSubjects(t *testing.T) {
	of := map[string]string{}
	for _, name := range []string{"jitter", "sizes", "rates", "search", "sides"} {
		subject := Subject(measuredKinds()[name])
		if of[subject] != "" {
			t.Errorf("%s and %s: %s", name, of[subject], subject)
		}
		of[subject] = name
	}
}
