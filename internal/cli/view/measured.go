// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package view

import (
	"fmt"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// Subject says what a measurement is of. Two with different subjects have no figures in common.
func Subject(m *v1alpha1.LatencyMeasurement) string {
	switch n := m.Network; {
	case n == nil:
		return "interruptions of CPUs"
	case n.Load != nil:
		return "the highest rate of messages"
	case n.Comparison != nil:
		return "messages on sides in turns"
	case len(n.Rates) > 0:
		return "messages on a schedule"
	default:
		return "messages one at a time"
	}
}

// LatenciesOf says what the latencies of a kind are; "" for Jitter, which has lengths of interruptions.
func LatenciesOf(kind v1alpha1.LatencyTestKind) string {
	switch kind {
	case v1alpha1.LatencyTestJitter:
		return ""
	case v1alpha1.LatencyTestRateSweep:
		return "an estimate of one way, with messages on a schedule, from when each was to leave"
	case v1alpha1.LatencyTestLoadSearch:
		return "an estimate of one way, of probes beside the load, from when each was to leave"
	default:
		return "half of the round trip, with one message under way at a time"
	}
}

// Longest is the longest interruption, or the longest latency of a message, which is not known where no message had an answer.
func Longest(m *v1alpha1.LatencyMeasurement) (nanoseconds int64, known bool) {
	if m.Network == nil {
		return m.MaximumNanoseconds, true
	}
	for _, figures := range qualification.Judged(m.Network) {
		known = known || figures.Samples > 0
	}
	return m.MaximumNanoseconds, known
}

// Histogram is an encoded histogram of a measurement.
type Histogram struct {
	// Side of a comparison in lower case; "" where nothing was compared.
	Side string
	// Of says of which size or rate of messages it is, such as "64 bytes" or "10000 a second"; "" for interruptions.
	Of string
	// Tag is the side with the size or rate in one word, such as host/64bytes or 10000persecond-intended, as probes name them; "" for interruptions.
	Tag  string
	Text string
}

// Histograms are those that a measurement has, which may be nil: one, or one for each side of a comparison.
func Histograms(m *v1alpha1.LatencyMeasurement) []Histogram {
	switch {
	case m == nil:
		return nil
	case m.Network == nil && m.Histogram != "":
		return []Histogram{{Text: m.Histogram}}
	case m.Network == nil:
		return nil
	}
	var found []Histogram
	rows := qualification.Rows(m.Network)
	for i := range rows {
		if text := histogramOf(m, rows, i); text != "" {
			found = append(found, ofRow(&rows[i], text))
		}
	}
	return found
}

// histogramOf is that of the row at an index; "" for none. Of sizes or rates the first one has a histogram, on each side, and of a search the best rate that passed.
func histogramOf(m *v1alpha1.LatencyMeasurement, rows []qualification.Row, index int) string {
	row := &rows[index]
	switch judged := qualification.Judged(m.Network); {
	case row.Side == nil && len(judged) > 0 && row.Figures == judged[0]:
		return m.Histogram
	case row.Side != nil && qualification.IsFirstOfSide(rows, index):
		return row.Side.Histogram
	}
	return ""
}

// ofRow is a histogram with the names of its row.
func ofRow(row *qualification.Row, text string) Histogram {
	h := Histogram{Text: text, Of: fmt.Sprintf("%d bytes", row.Bytes), Tag: fmt.Sprintf("%dbytes", row.Bytes)}
	if row.Rate != nil {
		h.Of, h.Tag = row.PerSecond()+" a second", row.PerSecond()+"persecond-intended"
	}
	if row.Side != nil {
		h.Side = strings.ToLower(string(row.Side.Side))
		h.Tag = h.Side + "/" + h.Tag
	}
	return h
}
