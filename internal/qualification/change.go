// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package qualification

import (
	"fmt"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// Trend says how a measurement stands to another one of the same node.
type Trend string

const (
	// TrendWorse means that every repetition is longer than all of the other measurement.
	TrendWorse Trend = "Worse"
	// TrendBetter means that every repetition is shorter than all of the other measurement.
	TrendBetter Trend = "Better"
	// TrendSame means that the repetitions of both overlap.
	TrendSame Trend = "Same"
	// TrendUnknown means that the repetitions cannot tell; the message says why.
	TrendUnknown Trend = "Unknown"
)

// RepetitionsToCompare is how many repetitions either measurement needs. Were they from the same distribution, all n of one would lie
// above all n of the other in one of C(2n, n) cases: with 3, in 5 of 100.
const RepetitionsToCompare = 3

// Change is what has become of a measurement.
type Change struct {
	Trend Trend `json:"trend"`
	// Message is one sentence.
	Message string `json:"message"`
	// Ratio is that of the longest interruptions, after to before, with its interval; nil where the repetitions do not carry one.
	Ratio *latency.Ratio `json:"ratio,omitempty"`
	// Fingerprint names what of the node has become another between the two; nil when nothing has.
	Fingerprint []string `json:"fingerprint,omitempty"`
}

// Repetitions are the figures by which the repetitions of a measurement are compared, and their name: the medians of latencies, else the
// longest interruptions.
func Repetitions(measured *v1alpha1.LatencyMeasurement) (figures []int64, name string) {
	if measured.Network != nil {
		return measured.Network.RepetitionMediansNanoseconds, "medians"
	}
	return measured.RepetitionMaximumsNanoseconds, "longest interruptions"
}

// CompareMeasurements compares the longest interruptions, or the median latencies, of the repetitions of two measurements of a node. It
// needs no assumption about their distribution: a change is one that the spread between repetitions does not explain.
func CompareMeasurements(before, after *v1alpha1.LatencyMeasurement) Change {
	c := Change{Trend: TrendUnknown, Fingerprint: append(Differences(before.Fingerprint, after.Fingerprint), serverDifferences(before.Network, after.Network)...)}
	was, _ := Repetitions(before)
	is, name := Repetitions(after)
	switch {
	case before.ParametersHash != after.ParametersHash:
		c.Message = "the two were measured with other parameters, so that they cannot be compared"
		return c
	case min(len(was), len(is)) < RepetitionsToCompare:
		c.Message = fmt.Sprintf("%d and %d repetitions cannot tell a change from the spread between them: set spec.repetitions to %d or more",
			len(was), len(is), RepetitionsToCompare)
		return c
	case slices.Min(is) > slices.Max(was):
		c.Trend = TrendWorse
	case slices.Max(is) < slices.Min(was):
		c.Trend = TrendBetter
	default:
		c.Trend = TrendSame
	}
	if ratio, err := latency.Compare(is, was); err == nil {
		c.Ratio = &ratio
	}
	c.Message = c.sentence(name, spread(was), spread(is))
	return c
}

// serverDifferences names what of the server has become another between two measurements over the network; nil when nothing has.
func serverDifferences(before, after *v1alpha1.NetworkMeasurement) []string {
	if before == nil || after == nil {
		return nil
	}
	if before.Server != after.Server {
		return []string{fmt.Sprintf("the node of the server (%s, was %s)", after.Server, before.Server)}
	}
	if before.ServerFingerprint == nil || after.ServerFingerprint == nil {
		return nil
	}
	changed := Differences(*before.ServerFingerprint, *after.ServerFingerprint)
	for i := range changed {
		changed[i] = "on the node of the server " + changed[i]
	}
	return changed
}

func (c *Change) sentence(name, was, is string) string {
	words := map[Trend]string{
		TrendWorse: "longer than before in every repetition", TrendBetter: "shorter than before in every repetition", TrendSame: "within the spread between repetitions",
	}[c.Trend]
	text := fmt.Sprintf("the %s are %s (%s, were %s)", name, words, is, was)
	if c.Ratio != nil {
		text += fmt.Sprintf(", %.2f times as long (95 %% between %.2f and %.2f)", c.Ratio.Value, c.Ratio.Low, c.Ratio.High)
	}
	if len(c.Fingerprint) > 0 {
		return text + "; what has changed meanwhile: " + strings.Join(c.Fingerprint, ", ")
	}
	return text + "; nothing that the operator knows of has changed meanwhile"
}

// spread is the shortest and the longest of some lengths.
func spread(lengths []int64) string {
	low, high := latency.Length(slices.Min(lengths)), latency.Length(slices.Max(lengths))
	if low == high {
		return low
	}
	return low + " to " + high
}
