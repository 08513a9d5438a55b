// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package qualification

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// Trend says how a measurement stands to another one of the same node.
type Trend string

const (
	// TrendWorse means that every repetition is longer than all of the other measurement, and than all of the runs before it that are known.
	TrendWorse Trend = "Worse"
	// TrendBetter means that every repetition is shorter than all of these.
	TrendBetter Trend = "Better"
	// TrendSame means that the repetitions lie within those of the others, or overlap with them.
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
	// Ratio is that of the figures of the repetitions, after to before, with its interval; nil where the repetitions do not carry one.
	Ratio *latency.Ratio `json:"ratio,omitempty"`
	// Fingerprint names what of the node, or of that of the server, has become another between the two; nil when nothing has.
	Fingerprint []string `json:"fingerprint,omitempty"`
}

// Repeated are the figures by which the repetitions of a measurement are compared.
type Repeated struct {
	Figures []int64
	Name    string
	// AreRates says that they are messages a second, of which more is better; AreRatios that they are parts per thousand; else they are lengths in
	// nanoseconds.
	AreRates, AreRatios bool
	// Unsaid says why there are no figures of what was measured; "" where there are.
	Unsaid string
}

// Repetitions are the highest rates that passed, or the ratios of a comparison, else the medians of latencies, else the longest interruptions. There are none
// where they would tell of fewer than all messages, or of messages that went another way.
func Repetitions(measured *v1alpha1.LatencyMeasurement) Repeated {
	switch n := measured.Network; {
	case n == nil:
		return Repeated{Figures: measured.RepetitionMaximumsNanoseconds, Name: "longest interruptions"}
	case n.Load != nil:
		r := Repeated{Name: "highest rates that passed", AreRates: true}
		for _, rate := range n.Load.RepetitionBestPassesPerSecond {
			r.Figures = append(r.Figures, int64(rate))
		}
		return r
	case n.Comparison != nil:
		return Repeated{Figures: pairedRatios(n.Comparison), Name: "ratios of medians", AreRatios: true}.unless(unpaired(n))
	default:
		r := Repeated{Figures: n.RepetitionMediansNanoseconds, Name: "medians"}
		if rows := Rows(n); len(rows) > 0 {
			r = r.unless(unanswered(&rows[0], r.Figures))
		}
		return r
	}
}

// unless are the figures, or none where something keeps them from telling anything.
func (r Repeated) unless(why string) Repeated {
	if r.Unsaid = why; why != "" {
		r.Figures = nil
	}
	return r
}

// unanswered says why the medians of repetitions, which are those of a row, tell of fewer than all messages; "" where they do not. A message that was
// lost is later than any that has an answer, so a way that loses most of them would seem to have become a short one.
func unanswered(row *Row, medians []int64) string {
	const median = 50
	if !latency.IsAnswered(median, uint64(max(0, row.Figures.Samples)), uint64(max(0, row.Lost))) || slices.Contains(medians, 0) {
		return fmt.Sprintf("of %s %d of %d messages were lost, so that their medians are none of all messages", row.Name, row.Lost, row.Sent)
	}
	return ""
}

// unpaired says why the ratios of a comparison tell nothing of its sides; "" where they do.
func unpaired(n *v1alpha1.NetworkMeasurement) string {
	c := n.Comparison
	if len(c.Sides) == 0 {
		return ""
	}
	if verdict, other := judgePaths(n); other && !wantsPaths(c) {
		return verdict.Message
	}
	for _, side := range []*v1alpha1.SideMeasurement{&c.Sides[firstOf(c)], &c.Sides[baseOf(c)]} {
		if !tookItsPath(side) {
			return otherPathWords(side)
		}
		if len(side.Sizes) == 0 {
			continue
		}
		row := sizeRow(side, &side.Sizes[0])
		if why := unanswered(&row, side.RepetitionMediansNanoseconds); why != "" {
			return why
		}
	}
	return ""
}

// Words is one of the figures; of rates without a unit.
func (r *Repeated) Words(figure int64) string {
	switch {
	case r.AreRates:
		return strconv.FormatInt(figure, 10)
	case r.AreRatios:
		return TimesWords(figure)
	}
	return latency.Length(figure)
}

// Spread is the least and the most of the figures, of which there is one at least.
func (r *Repeated) Spread() v1alpha1.LatencyRunSpread {
	return v1alpha1.LatencyRunSpread{Least: slices.Min(r.Figures), Most: slices.Max(r.Figures)}
}

// spreadWords tells a spread of such figures.
func (r *Repeated) spreadWords(spread v1alpha1.LatencyRunSpread) string {
	low, high := r.Words(spread.Least), r.Words(spread.Most)
	unit := ""
	if r.AreRates {
		unit = " a second"
	}
	if low == high {
		return low + unit
	}
	return low + " to " + high + unit
}

// joined is from the least to the most of all spreads, of which there is one at least.
func joined(spreads []v1alpha1.LatencyRunSpread) v1alpha1.LatencyRunSpread {
	all := spreads[0]
	for _, spread := range spreads[1:] {
		all.Least, all.Most = min(all.Least, spread.Least), max(all.Most, spread.Most)
	}
	return all
}

// trendOf says how figures stand to those of runs before.
func (r *Repeated) trendOf(was v1alpha1.LatencyRunSpread) Trend {
	above, below := TrendWorse, TrendBetter
	if r.AreRates {
		above, below = below, above
	}
	switch {
	case slices.Min(r.Figures) > was.Most:
		return above
	case slices.Max(r.Figures) < was.Least:
		return below
	}
	return TrendSame
}

// CompareMeasurements compares the longest interruptions, the median latencies, or the highest rates, of the repetitions of two measurements of a node, and
// with those of runs before the two, if any. It needs no assumption about their distribution: a change is one that neither the spread between
// repetitions nor that between runs explains.
func CompareMeasurements(before, after *v1alpha1.LatencyMeasurement, earlier ...v1alpha1.LatencyRunSpread) Change {
	was, is := Repetitions(before), Repetitions(after)
	c := Change{Fingerprint: differenceWords(MeasurementChanges(before, after))}
	if c.Trend, c.Message = trendOf(before, after, &was, &is, earlier); c.Trend == TrendUnknown {
		return c
	}
	if ratio, err := latency.Compare(is.Figures, was.Figures); err == nil {
		c.Ratio = &ratio
	}
	c.Message = c.sentence(&was, &is, earlier)
	return c
}

// TrendOf is the trend alone, which needs no interval: that takes thousands of samples of the figures.
func TrendOf(before, after *v1alpha1.LatencyMeasurement, earlier ...v1alpha1.LatencyRunSpread) Trend {
	was, is := Repetitions(before), Repetitions(after)
	trend, _ := trendOf(before, after, &was, &is, earlier)
	return trend
}

// trendOf is the trend, and why it is not known; "" where it is.
func trendOf(before, after *v1alpha1.LatencyMeasurement, was, is *Repeated, earlier []v1alpha1.LatencyRunSpread) (Trend, string) {
	if why := incomparable(before, after, was, is); why != "" {
		return TrendUnknown, why
	}
	return is.trendOf(joined(append(slices.Clone(earlier), was.Spread()))), ""
}

// incomparable says why two measurements, and their repetitions, cannot tell a change of the node; "" when they can.
func incomparable(before, after *v1alpha1.LatencyMeasurement, was, is *Repeated) string {
	if before.ParametersHash != after.ParametersHash {
		return "the two were measured with other parameters, so that they cannot be compared"
	}
	if why := otherWay(before.Network, after.Network); why != "" {
		return why
	}
	switch {
	case was.Unsaid != "":
		return "in the run before " + was.Unsaid
	case is.Unsaid != "":
		return is.Unsaid
	case min(len(was.Figures), len(is.Figures)) < RepetitionsToCompare:
		return fmt.Sprintf("%d and %d repetitions cannot tell a change from the spread between them: set spec.repetitions to %d or more",
			len(was.Figures), len(is.Figures), RepetitionsToCompare)
	}
	return ""
}

// otherWay says why messages of two measurements did not go the same way; "" when they did, or none were sent. What is a longer way is no worse node.
func otherWay(before, after *v1alpha1.NetworkMeasurement) string {
	switch {
	case before == nil || after == nil:
		return ""
	case before.Server != after.Server:
		return fmt.Sprintf("the server ran on node %s, and in the run before on node %s, so that they cannot be compared", after.Server, before.Server)
	case after.Comparison == nil && before.Path != after.Path:
		return fmt.Sprintf("messages went by path %s (%s), and in the run before by path %s, so that they cannot be compared", after.Path, after.PathMessage, before.Path)
	}
	return ""
}

// EarlierRuns are the runs before a new previous one, to which the one that was the previous is added. Where the two were not measured alike, none is left: a
// run is compared with what was measured as the run before was.
func EarlierRuns(earlier []v1alpha1.LatencyRunSpread, was, previous *v1alpha1.LatencyMeasurement) []v1alpha1.LatencyRunSpread {
	if was == nil || was.ParametersHash != previous.ParametersHash || len(MeasurementChanges(was, previous)) > 0 {
		return nil
	}
	figures := Repetitions(was)
	if len(figures.Figures) == 0 {
		return nil
	}
	all := append([]v1alpha1.LatencyRunSpread{figures.Spread()}, earlier...)
	return all[:min(len(all), v1alpha1.MaxEarlierRuns)]
}

// MeasurementChanges are the parts that have become others between two measurements: of the node, and over the network of the node of the
// server.
func MeasurementChanges(before, after *v1alpha1.LatencyMeasurement) []Part {
	return append(Changes(before.Fingerprint, after.Fingerprint), serverChanges(before.Network, after.Network)...)
}

// serverChanges are what of the server has become another between two measurements over the network. Of another node nothing is compared.
func serverChanges(before, after *v1alpha1.NetworkMeasurement) []Part {
	if before == nil || after == nil {
		return nil
	}
	if before.Server != after.Server {
		return []Part{{Key: "server", Name: "the node of the server", Then: before.Server, Now: after.Server}}
	}
	if before.ServerFingerprint == nil || after.ServerFingerprint == nil {
		return nil
	}
	changed := Changes(*before.ServerFingerprint, *after.ServerFingerprint)
	for i := range changed {
		changed[i].Key = "server " + changed[i].Key
		changed[i].Name = "on the node of the server " + changed[i].Name
	}
	return changed
}

// earlierWords tells of the runs before the two that are compared.
func (r *Repeated) earlierWords(earlier []v1alpha1.LatencyRunSpread) string {
	switch len(earlier) {
	case 0:
		return ""
	case 1:
		return ", and in the run before that " + r.spreadWords(earlier[0])
	}
	return fmt.Sprintf(", and in the %d runs before that %s", len(earlier), r.spreadWords(joined(earlier)))
}

func (c *Change) sentence(was, is *Repeated, earlier []v1alpha1.LatencyRunSpread) string {
	words := map[Trend]string{
		TrendWorse: "longer than before in every repetition", TrendBetter: "shorter than before in every repetition", TrendSame: "within the spread between repetitions",
	}
	size := "as long"
	switch {
	case is.AreRates:
		words[TrendWorse], words[TrendBetter] = "lower than before in every repetition", "higher than before in every repetition"
		size = "as high"
	case is.AreRatios:
		words[TrendWorse], words[TrendBetter] = "larger than before in every repetition", "smaller than before in every repetition"
		size = "as large"
	}
	text := fmt.Sprintf("the %s are %s (%s, were %s%s)", is.Name, words[c.Trend], is.spreadWords(is.Spread()), is.spreadWords(was.Spread()), is.earlierWords(earlier))
	if c.Ratio != nil {
		text += fmt.Sprintf(", %.2f times %s (95 %% between %.2f and %.2f)", c.Ratio.Value, size, c.Ratio.Low, c.Ratio.High)
	}
	if len(c.Fingerprint) > 0 {
		return text + "; what has changed meanwhile: " + strings.Join(c.Fingerprint, ", ")
	}
	return text + "; nothing that the operator knows of has changed meanwhile"
}
