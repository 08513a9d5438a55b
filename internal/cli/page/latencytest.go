// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/picture"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

//go:embed latencytest.html.tmpl
var latencySource string

// Reference is a measurement that all nodes are compared with; its name says whose it is.
type Reference struct {
	Name        string
	Measurement *v1alpha1.LatencyMeasurement
}

// latencyContent is what the template is filled with.
type latencyContent struct {
	Title, By string
	Tests     []latencySection
	Reference *Reference
	Written   metav1.Time
}

type latencySection struct {
	view.LatencyTest

	// IsProbe says that no object of a cluster stands behind it. Remarks are sentences about its figures.
	IsProbe bool
	Remarks []string
	// Curves are the percentiles of all nodes.
	Curves template.HTML
	Nodes  []latencyNode
}

type latencyNode struct {
	view.LatencyNode
	Rows []latencyRow
	// Distribution and Curves are complete SVG documents, which escape what they are made of themselves; "" without a measurement.
	Distribution, Curves template.HTML
	// TimeLine says when lengths were longest; "" where the measurement does not tell.
	TimeLine template.HTML
	// Way are latencies of messages over their sizes or rates; "" where there is only one. Ratios are those of a comparison.
	Way, Ratios template.HTML
	// Intervals are those of percentiles, in columns of Percentiles.
	Intervals   []view.IntervalRow
	Percentiles []string
	// Unread says why there is no distribution.
	Unread string
	// Reference is the name of the reference, and how it was measured otherwise than the node; "" without one.
	Reference string
}

// latencyRow is a figure of a node beside that of the run before, of the fleet and of the reference; "" where there is none.
type latencyRow struct{ Name, Now, Before, Fleet, Reference string }

// LatencyTests writes the page of tests. It loads nothing and runs no script. The reference may be nil; the time is that of writing.
func LatencyTests(tests []view.LatencyTest, reference *Reference, written time.Time) (string, error) {
	filled := latencyContent{Title: "Latency tests", By: "test report", Reference: reference}
	for i := range tests {
		section := latencySectionOf(&tests[i], reference)
		if latencies := view.LatenciesOf(tests[i].Kind); latencies != "" {
			section.Remarks = []string{"Latencies are " + latencies + "."}
		}
		filled.Tests = append(filled.Tests, section)
	}
	return filled.write(written)
}

// Probe writes the same page of what a command has measured on this host, or from it, without a cluster. command names it, and remarks are sentences about its
// figures.
func Probe(command string, kind v1alpha1.LatencyTestKind, node *view.LatencyNode, remarks []string, written time.Time) (string, error) {
	filled := latencyContent{Title: "Latency of " + node.Node, By: command}
	section := latencySectionOf(&view.LatencyTest{Name: command, Kind: kind, Nodes: []view.LatencyNode{*node}}, nil)
	section.IsProbe, section.Remarks = true, remarks
	filled.Tests = append(filled.Tests, section)
	return filled.write(written)
}

func (c *latencyContent) write(written time.Time) (string, error) {
	parsed, err := template.New("latency").Funcs(functions()).Funcs(template.FuncMap{
		"outcome": outcomeClass, "changes": changesOf, "repetitions": repetitionWords, "isolation": view.Isolation,
	}).Parse(latencySource)
	if err != nil {
		return "", fmt.Errorf("reading the template of the page: %w", err)
	}
	c.Written = metav1.NewTime(written)
	var b strings.Builder
	if err := parsed.Execute(&b, c); err != nil {
		return "", fmt.Errorf("writing the page: %w", err)
	}
	return b.String(), nil
}

func latencySectionOf(test *view.LatencyTest, reference *Reference) latencySection {
	section := latencySection{LatencyTest: *test}
	var all []picture.Series
	for i := range test.Nodes {
		if node := &test.Nodes[i]; node.Measured != nil {
			all = append(all, curve(node.Node, node.Measured))
		}
	}
	if len(all) > 1 {
		section.Curves = template.HTML(picture.Percentiles(all))
	}
	for i := range test.Nodes {
		section.Nodes = append(section.Nodes, latencyNodeOf(&test.Nodes[i], test, reference))
	}
	return section
}

func latencyNodeOf(node *view.LatencyNode, test *view.LatencyTest, reference *Reference) latencyNode {
	n := latencyNode{LatencyNode: *node}
	if node.Measured == nil {
		return n
	}
	curves := sideCurves(node.Measured)
	if node.Previous != nil {
		curves = append(curves, curve("the run before", node.Previous))
	}
	if reference != nil {
		curves = append(curves, curve(reference.Name, reference.Measurement))
	}
	n.Curves = template.HTML(picture.Percentiles(curves))
	n.Way, n.Ratios, n.TimeLine = Way(node), Ratios(node), timeLine(node)
	n.Rows, n.Intervals = latencyRows(node, test, reference), view.Intervals(node.Measured)
	for _, name := range qualification.Percentiles() {
		n.Percentiles = append(n.Percentiles, qualification.Words(name))
	}
	n.Distribution, n.Unread = distribution(node.Measured, reference)
	if reference != nil {
		n.Reference = reference.nameBeside(node.Measured)
	}
	return n
}

// nameBeside is the name of a reference beside a measurement.
func (r *Reference) nameBeside(m *v1alpha1.LatencyMeasurement) string {
	if r.Measurement.ParametersHash != m.ParametersHash {
		return r.Name + ", measured with other parameters"
	}
	return r.Name
}

// distribution draws how many lengths there were of which size, beside those of the reference, which may be nil; or it says why it does not.
func distribution(m *v1alpha1.LatencyMeasurement, reference *Reference) (drawn template.HTML, unread string) {
	found := view.Histograms(m)
	if len(found) == 0 {
		return "", "the result has no histogram"
	}
	series, err := barsOf("now", m, found[0].Of)
	if err != nil {
		return "", err.Error()
	}
	if reference != nil {
		if others, err := barsOf(reference.Name, reference.Measurement, found[0].Of); err == nil {
			series = append(series, others...)
		}
	}
	below, beside := "length of an interruption", "interruptions"
	if m.Network != nil {
		below, beside = "latency of a message, "+found[0].Of, "messages"
	}
	return template.HTML(picture.Distribution(below, beside, series)), ""
}

// timeLine draws when lengths were longest, now and in the run before; "" where the measurement does not tell.
func timeLine(node *view.LatencyNode) template.HTML {
	if node.Measured.TimeLine == nil {
		return ""
	}
	beside := "longest interruption"
	if node.Measured.Network != nil {
		beside = "longest latency"
	}
	var series []picture.Series
	var seconds []float64
	for _, one := range []struct {
		name string
		of   *v1alpha1.LatencyMeasurement
	}{{"now", node.Measured}, {"the run before", node.Previous}} {
		if one.of == nil || one.of.TimeLine == nil {
			continue
		}
		whole := time.Duration(one.of.TimeLine.ElapsedNanoseconds).Seconds()
		s := picture.Series{Name: one.name}
		for i, longest := range one.of.TimeLine.LongestNanoseconds {
			begins := whole * float64(i) / float64(len(one.of.TimeLine.LongestNanoseconds))
			s.Points = append(s.Points, picture.Point{Across: begins, Nanoseconds: longest})
		}
		series, seconds = append(series, s), append(seconds, whole)
	}
	return template.HTML(picture.TimeLine(beside, series, seconds))
}

// barsOf are the distributions of a measurement: one, or one for each side of a comparison. The name of one says of which size or rate it is, unless that is
// the one that the plot is of.
func barsOf(name string, m *v1alpha1.LatencyMeasurement, plotOf string) ([]picture.Series, error) {
	var series []picture.Series
	for _, one := range view.Histograms(m) {
		histogram, err := latency.DecodeHDR(one.Text)
		if err != nil {
			return nil, err
		}
		names := []string{name}
		if one.Side != "" {
			names = append(names, one.Side)
		}
		if one.Of != plotOf {
			names = append(names, one.Of)
		}
		series = append(series, picture.Series{Name: strings.TrimPrefix(strings.Join(names, ", "), "now, "), Bars: latency.Bars(histogram)})
	}
	return series, nil
}

// sideCurves are the percentiles of a measurement now: those of each side of a comparison, over all sizes.
func sideCurves(m *v1alpha1.LatencyMeasurement) []picture.Series {
	if m.Network == nil || m.Network.Comparison == nil {
		return []picture.Series{curve("now", m)}
	}
	var series []picture.Series
	for i := range m.Network.Comparison.Sides {
		side := &m.Network.Comparison.Sides[i]
		figures := make([]*v1alpha1.LatencyFigures, 0, len(side.Sizes))
		for j := range side.Sizes {
			figures = append(figures, &side.Sizes[j].LatencyFigures)
		}
		_, percentiles := qualification.Worst(figures)
		series = append(series, curve(strings.ToLower(string(side.Side)), &v1alpha1.LatencyMeasurement{Percentiles: percentiles}))
	}
	return series
}

// curve are the percentiles of a measurement.
func curve(name string, m *v1alpha1.LatencyMeasurement) picture.Series {
	s := picture.Series{Name: name}
	for i, percentile := range qualification.Percentiles() {
		if value, found := qualification.PercentileOf(m.Percentiles, percentile); found {
			s.Points = append(s.Points, picture.Point{Across: latency.Ladder()[i], Nanoseconds: value})
		}
	}
	return s
}

// latencyRows are the figures of a node, each beside those of the run before, of the fleet and of the reference.
func latencyRows(node *view.LatencyNode, test *view.LatencyTest, reference *Reference) []latencyRow {
	row := func(name string, figure figure, words func(int64) string) latencyRow {
		r := latencyRow{Name: name, Now: wordsOf(node.Measured, figure, words), Before: wordsOf(node.Previous, figure, words), Fleet: fleetWords(test, figure, words)}
		if reference != nil {
			r.Reference = wordsOf(reference.Measurement, figure, words)
		}
		return r
	}
	if node.Measured.Network != nil {
		return networkRows(node, row)
	}
	rows := make([]latencyRow, 0, 3+len(qualification.Percentiles()))
	rows = append(rows,
		row("longest interruption", func(m *v1alpha1.LatencyMeasurement) (int64, bool) { return m.MaximumNanoseconds, true }, latency.Length),
		row("stolen, parts per million", func(m *v1alpha1.LatencyMeasurement) (int64, bool) { return int64(m.StolenPartsPerMillion), true }, decimalWords),
		row("interruptions", func(m *v1alpha1.LatencyMeasurement) (int64, bool) { return m.Interruptions, true }, decimalWords),
	)
	for _, name := range qualification.Percentiles() {
		words := qualification.Words(name)
		if slices.Contains(node.Single, name) {
			words += " (decided by one interruption)"
		}
		rows = append(rows, row(words, func(m *v1alpha1.LatencyMeasurement) (int64, bool) {
			return qualification.PercentileOf(m.Percentiles, name)
		}, latency.Length))
	}
	return rows
}

// figure is a number of a measurement, where it has one.
type figure = func(*v1alpha1.LatencyMeasurement) (int64, bool)

// networkRows are the figures of each size of messages, or of each rate.
func networkRows(node *view.LatencyNode, row func(string, figure, func(int64) string) latencyRow) []latencyRow {
	rows := append(loadRows(node, row), ratioRows(node, row)...)
	for _, measured := range qualification.Rows(node.Measured.Network) {
		of := func(name string, of func(*qualification.Row) (int64, bool), words func(int64) string) {
			rows = append(rows, row(measured.Name+": "+name, func(m *v1alpha1.LatencyMeasurement) (int64, bool) {
				if m.Network == nil {
					return 0, false
				}
				if other := qualification.RowNamed(m.Network, measured.Name); other != nil {
					return of(other)
				}
				return 0, false
			}, words))
		}
		of("shortest", func(r *qualification.Row) (int64, bool) { return r.Figures.MinimumNanoseconds, r.Figures.Samples > 0 }, latency.Length)
		of("mean", func(r *qualification.Row) (int64, bool) { return r.Figures.MeanNanoseconds, r.Figures.Samples > 0 }, latency.Length)
		for _, p := range measured.Figures.Percentiles {
			of(qualification.Words(p.Percentile), func(r *qualification.Row) (int64, bool) {
				return qualification.PercentileOf(r.Figures.Percentiles, p.Percentile)
			}, latency.Length)
			if measured.Rate != nil {
				of(qualification.Words(p.Percentile)+" from when it left", func(r *qualification.Row) (int64, bool) {
					return qualification.PercentileOf(r.Rate.FromSent.Percentiles, p.Percentile)
				}, latency.Length)
			}
		}
		of("longest", func(r *qualification.Row) (int64, bool) { return r.Figures.MaximumNanoseconds, r.Figures.Samples > 0 }, latency.Length)
		of("standard deviation", func(r *qualification.Row) (int64, bool) {
			return r.Figures.DeviationNanoseconds, r.Figures.DeviationNanoseconds > 0
		}, latency.Length)
		of("lost messages", func(r *qualification.Row) (int64, bool) { return r.Lost, true }, decimalWords)
		if measured.Rate != nil {
			of("reordered messages", func(r *qualification.Row) (int64, bool) { return r.Rate.Reordered, true }, decimalWords)
			of("late messages", func(r *qualification.Row) (int64, bool) { return r.Rate.Late, true }, decimalWords)
			of("messages a second", func(r *qualification.Row) (int64, bool) { return r.Rate.AchievedPerSecond, true }, decimalWords)
		}
	}
	return rows
}

// loadRows are the interval that a search found; none of other measurements.
func loadRows(node *view.LatencyNode, row func(string, figure, func(int64) string) latencyRow) []latencyRow {
	if node.Measured.Network.Load == nil {
		return nil
	}
	of := func(name string, rate func(*v1alpha1.LoadMeasurement) int32) latencyRow {
		return row(name, func(m *v1alpha1.LatencyMeasurement) (int64, bool) {
			if m.Network == nil || m.Network.Load == nil || rate(m.Network.Load) == 0 {
				return 0, false
			}
			return int64(rate(m.Network.Load)), true
		}, decimalWords)
	}
	return []latencyRow{
		of("highest rate that passed, messages a second", func(l *v1alpha1.LoadMeasurement) int32 { return l.BestPassPerSecond }),
		of("lowest rate above it that did not", func(l *v1alpha1.LoadMeasurement) int32 { return l.LowestFailPerSecond }),
	}
}

// ratioRows are how many times as long messages took as on the base of a comparison; none of other measurements. A ratio stands beside that of the same side
// to the same base.
func ratioRows(node *view.LatencyNode, row func(string, figure, func(int64) string) latencyRow) []latencyRow {
	c := node.Measured.Network.Comparison
	if c == nil {
		return nil
	}
	var rows []latencyRow
	for i := range c.Sides {
		for _, ratio := range c.Sides[i].Ratios {
			name := fmt.Sprintf("%s to %s, %d bytes: %s", strings.ToLower(string(c.Sides[i].Side)), strings.ToLower(string(c.Base)), ratio.Bytes, qualification.Words(ratio.Percentile))
			rows = append(rows, row(name, func(m *v1alpha1.LatencyMeasurement) (int64, bool) {
				if m.Network == nil || m.Network.Comparison == nil || m.Network.Comparison.Base != c.Base {
					return 0, false
				}
				others := m.Network.Comparison.Sides
				at := slices.IndexFunc(others, func(side v1alpha1.SideMeasurement) bool { return side.Side == c.Sides[i].Side })
				if at < 0 {
					return 0, false
				}
				if found := qualification.RatioOf(&others[at], ratio.Bytes, ratio.Percentile); found != nil {
					return found.PartsPerThousand, true
				}
				return 0, false
			}, qualification.TimesWords))
		}
	}
	return rows
}

// repetitionWords are the longest interruptions, or latencies, of the repetitions; "-" for one in which no message had an answer.
func repetitionWords(m *v1alpha1.LatencyMeasurement) []string {
	words := make([]string, 0, len(m.RepetitionMaximumsNanoseconds))
	for _, longest := range m.RepetitionMaximumsNanoseconds {
		if m.Network != nil && longest == 0 {
			words = append(words, "-")
			continue
		}
		words = append(words, latency.Length(longest))
	}
	return words
}

func decimalWords(value int64) string { return strconv.FormatInt(value, 10) }

func wordsOf(m *v1alpha1.LatencyMeasurement, figure func(*v1alpha1.LatencyMeasurement) (int64, bool), words func(int64) string) string {
	if m == nil {
		return ""
	}
	if value, found := figure(m); found {
		return words(value)
	}
	return ""
}

// fleetWords is the median of a figure over the nodes of a test; "" for a single node.
func fleetWords(test *view.LatencyTest, figure func(*v1alpha1.LatencyMeasurement) (int64, bool), words func(int64) string) string {
	var values []int64
	for i := range test.Nodes {
		if m := test.Nodes[i].Measured; m != nil {
			if value, found := figure(m); found {
				values = append(values, value)
			}
		}
	}
	if len(values) < 2 {
		return ""
	}
	slices.Sort(values)
	return words(values[int(math.Ceil(float64(len(values))/2))-1])
}

// changesOf is what of a node, or of that of its server, has become another since the run before.
func changesOf(node latencyNode) []qualification.Part {
	if node.Measured == nil || node.Previous == nil {
		return nil
	}
	return qualification.MeasurementChanges(node.Previous, node.Measured)
}

func outcomeClass(node latencyNode) string {
	switch {
	case node.Outcome == v1alpha1.LatencyFailed:
		return "bad"
	case node.Outcome == v1alpha1.LatencyPassed && node.Freshness == v1alpha1.LatencyFresh:
		return "good"
	case node.Outcome == "" && node.Measured != nil:
		// Nobody judged it.
		return "faint"
	default:
		return "warn"
	}
}
