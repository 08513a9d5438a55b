// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package metrics

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// maximumTestedNodes bounds the series of single nodes over all tests: whoever may make LatencyTests decides how many there are.
const maximumTestedNodes = 2048

// partsPerMillion is how many of them are the whole.
const partsPerMillion = 1e6

// partsPerThousand are the parts of a ratio of one.
const partsPerThousand = 1e3

// collectTests tells what LatencyTests have measured: first those that a profile asks for, since they decide about nodes, then the
// others, each in the order of their names. Where there are too many, each scrape tells the same.
func (c *Collector) collectTests(ctx context.Context, out chan<- prometheus.Metric) error {
	var tests v1alpha1.LatencyTestList
	if err := c.reader.List(ctx, &tests, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	var profiles v1alpha1.LowLatencyNodeProfileList
	if err := c.reader.List(ctx, &profiles, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	wanted := wantedTests(profiles.Items)
	slices.SortFunc(tests.Items, func(a, b v1alpha1.LatencyTest) int {
		return cmp.Or(wanted[referenceTo(&b)]-wanted[referenceTo(&a)], strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	told := 0
	for i := range tests.Items {
		test := &tests.Items[i]
		c.conditions(out, testCondition, test.Status.Conditions, test.Namespace, test.Name)
		c.countTest(out, test)
		for j := range test.Status.Results {
			if result := &test.Status.Results[j]; result.Measured != nil && told+weightOf(result.Measured) <= maximumTestedNodes {
				told += weightOf(result.Measured)
				c.measured(out, test, result)
			}
		}
	}
	return nil
}

// wantedTests are the tests that profiles ask for, each with a 1.
func wantedTests(profiles []v1alpha1.LowLatencyNodeProfile) map[v1alpha1.LatencyTestReference]int {
	wanted := map[v1alpha1.LatencyTestReference]int{}
	for i := range profiles {
		if asked := profiles[i].Spec.Verification.Qualification; asked != nil {
			for _, test := range asked.Tests {
				wanted[test] = 1
			}
		}
	}
	return wanted
}

func referenceTo(test *v1alpha1.LatencyTest) v1alpha1.LatencyTestReference {
	return v1alpha1.LatencyTestReference{Namespace: test.Namespace, Name: test.Name}
}

func (c *Collector) countTest(out chan<- prometheus.Metric, test *v1alpha1.LatencyTest) {
	counts := test.Status.Nodes
	if counts == nil {
		return
	}
	for state, count := range map[string]int32{
		"selected": counts.Selected, "passed": counts.Passed, "failed": counts.Failed, "inconclusive": counts.Inconclusive,
		"stale": counts.Stale, "running": counts.Running, "waiting": counts.Waiting,
	} {
		c.gauge(out, testNodes, float64(count), test.Namespace, test.Name, state)
	}
}

// measured tells the figures of a node, and how they stand to the run before.
func (c *Collector) measured(out chan<- prometheus.Metric, test *v1alpha1.LatencyTest, result *v1alpha1.LatencyTestResult) {
	m := result.Measured
	if m.Network != nil {
		c.messages(out, test, result)
	} else {
		c.gauge(out, testMaximum, time.Duration(m.MaximumNanoseconds).Seconds(), test.Namespace, test.Name, result.Node)
		c.gauge(out, testStolen, float64(m.StolenPartsPerMillion)/partsPerMillion, test.Namespace, test.Name, result.Node)
	}
	c.gauge(out, testCompleted, float64(m.CompletedTime.Unix()), test.Namespace, test.Name, result.Node)
	if result.Previous == nil {
		return
	}
	trend := qualification.TrendOf(result.Previous, m, result.Earlier...)
	c.gauge(out, testChange, 1, test.Namespace, test.Name, result.Node, string(trend), changedWords(result.Previous, m))
}

// changedWords are the parts of node and server that differ, in their order; "nothing" when none does.
func changedWords(before, after *v1alpha1.LatencyMeasurement) string {
	var words []string
	for _, part := range qualification.MeasurementChanges(before, after) {
		if !slices.Contains(words, part.Key) {
			words = append(words, part.Key)
		}
	}
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, ", ")
}

// weightOf is as how many nodes a measurement counts: one with several sizes or rates of messages has as many times the series.
func weightOf(m *v1alpha1.LatencyMeasurement) int {
	if m.Network == nil {
		return 1
	}
	return max(1, len(qualification.Rows(m.Network)))
}

// messages tells the latencies of messages by their size and rate: the median, the tail where the samples carry it, and the longest; and
// what was lost or left late; and the highest rate of a search.
func (c *Collector) messages(out chan<- prometheus.Metric, test *v1alpha1.LatencyTest, result *v1alpha1.LatencyTestResult) {
	if l := result.Measured.Network.Load; l != nil {
		c.gauge(out, testHighest, float64(l.BestPassPerSecond), test.Namespace, test.Name, result.Node, string(v1alpha1.LoadTrialBestPass))
		if l.LowestFailPerSecond > 0 {
			c.gauge(out, testHighest, float64(l.LowestFailPerSecond), test.Namespace, test.Name, result.Node, string(v1alpha1.LoadTrialLowestFail))
		}
	}
	for _, row := range qualification.Rows(result.Measured.Network) {
		side := ""
		if row.Side != nil {
			side = string(row.Side.Side)
			c.ratios(out, &row, test.Namespace, test.Name, result.Node, side, strconv.Itoa(int(row.Bytes)))
		}
		labels := []string{test.Namespace, test.Name, result.Node, side, strconv.Itoa(int(row.Bytes)), row.Series()}
		for _, p := range row.Figures.Percentiles {
			if p.Percentile == v1alpha1.P50 || p.Percentile == v1alpha1.P99 {
				c.gauge(out, testLatency, time.Duration(p.Nanoseconds).Seconds(), append(slices.Clone(labels), string(p.Percentile))...)
			}
		}
		c.gauge(out, testLongest, time.Duration(row.Figures.MaximumNanoseconds).Seconds(), labels...)
		c.gauge(out, testLost, share(row.Lost, row.Sent), labels...)
		if row.Rate != nil {
			c.gauge(out, testLate, share(row.Rate.Late, row.Sent), labels...)
		}
	}
}

// ratios tells how many times as long messages took as on the base of a comparison: at the median, and at the highest percentile.
func (c *Collector) ratios(out chan<- prometheus.Metric, row *qualification.Row, labels ...string) {
	for _, ratio := range []*v1alpha1.LatencyRatio{qualification.RatioOf(row.Side, row.Bytes, v1alpha1.P50), qualification.TailRatioOf(row.Side, row.Bytes)} {
		if ratio == nil {
			continue
		}
		for bound, parts := range map[string]int64{"Ratio": ratio.PartsPerThousand, "Low": ratio.LowPartsPerThousand, "High": ratio.HighPartsPerThousand} {
			c.gauge(out, testRatio, float64(parts)/partsPerThousand, append(slices.Clone(labels), string(ratio.Percentile), bound)...)
		}
	}
}

// share is a part of messages, 0 of none.
func share(part, of int64) float64 { return float64(part) / float64(max(1, of)) }
