// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package qualification

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// judgeNetwork compares a measurement over the network with a budget; nil is no budget.
func judgeNetwork(measured *v1alpha1.LatencyMeasurement, budget *v1alpha1.LatencyBudget) Verdict {
	if budget == nil {
		return unbudgeted(measured)
	}
	if budget.Path == v1alpha1.LatencyPathKernel && measured.Network.Path != v1alpha1.LatencyPathKernel {
		return Verdict{
			v1alpha1.LatencyInconclusive, v1alpha1.TestNotThroughKernel,
			fmt.Sprintf("the path was %s, and not through the kernel alone: %s", measured.Network.Path, measured.Network.PathMessage),
		}
	}
	if measured.Network.Comparison != nil {
		return judgeComparison(measured, budget)
	}
	outcome := latency.Judge(ResultOf(measured), latencyBudget(budget))
	verdict := Verdict{v1alpha1.LatencyOutcome(outcome.Verdict), string(outcome.Reason), outcome.Message}
	if verdict.Outcome == v1alpha1.LatencyPassed {
		verdict.Reason, verdict.Message = v1alpha1.TestWithinBudget, "within the budget: "+networkFigures(measured)
	}
	if verdict.Outcome == v1alpha1.LatencyFailed {
		verdict.Message += blameEnds(measured.CPUs, measured.Causes, measured.Isolation, &measured.Network.ServerCounts)
	}
	return verdict
}

// longestBlame bounds what a message says of each end, so that a message of the API has room for both and for what has failed.
const longestBlame = 384

// blameEnds are the end of a sentence about a failure: what was counted at the client, and what at the server, each with the name of its end.
func blameEnds(cpus string, causes []string, isolation *v1alpha1.LatencyIsolation, server *v1alpha1.ServerCounts) string {
	return blameEnd(latency.EndClient, cpus, causes, isolation) + blameEnd(latency.EndServer, server.ServerCPUs, server.ServerCauses, server.ServerIsolation)
}

// blameEnd is what was counted at an end; "" for nothing.
func blameEnd(end, cpus string, causes []string, isolation *v1alpha1.LatencyIsolation) string {
	if why := uncounted(isolation); why != "" && len(causes) == 0 {
		return fmt.Sprintf("; at the %s nothing was counted (%s)", end, why)
	}
	words := ""
	if len(causes) > 0 {
		words = fmt.Sprintf("; on CPU %s of the %s the kernel counted %s", cpus, end, strings.Join(causes, ", "))
	}
	return shorten.Sentence(words+isolationBlame(isolation, " at the "+end), longestBlame)
}

// uncounted is the one reason why nothing is known of a CPU; "" where something is, or reasons differ.
func uncounted(i *v1alpha1.LatencyIsolation) string {
	if i == nil || i.Busy == nil || i.RunQueue.UnknownReason != i.IdleStates.UnknownReason || i.RunQueue.UnknownReason != i.Busy.UnknownReason {
		return ""
	}
	return i.RunQueue.UnknownReason
}

// unbudgeted is the verdict without a budget. That nothing can be compared is no matter of one.
func unbudgeted(measured *v1alpha1.LatencyMeasurement) Verdict {
	if measured.Network.Comparison != nil {
		if verdict, other := judgePaths(measured.Network); other {
			return verdict
		}
	}
	return Verdict{
		v1alpha1.LatencyInconclusive, v1alpha1.TestNoBudget, "measured, but spec.budget does not say what is good enough: " + networkFigures(measured),
	}
}

// ResultOf is a measurement of a status as the programs that measure have it.
func ResultOf(measured *v1alpha1.LatencyMeasurement) *latency.Result {
	n := measured.Network
	result := &latency.Result{
		Version: latency.Version, Kind: latency.KindPingPong, Path: latency.Path{State: latency.PathState(n.Path), Message: n.PathMessage},
	}
	for i := range n.Sizes {
		s := &n.Sizes[i]
		result.Sizes = append(result.Sizes, latency.Size{
			Bytes: int(s.Bytes), Lost: uint64(s.Lost), Stray: uint64(s.Stray), Distribution: distributionOf(&s.LatencyFigures),
		})
	}
	if n.Load != nil {
		result.Kind, result.Load = latency.KindLoadSearch, latencyLoad(n.Load)
		return result
	}
	for i := range n.Rates {
		result.Kind = latency.KindRateSweep
		result.Rates = append(result.Rates, latencyRate(&n.Rates[i]))
	}
	return result
}

// latencyRate is a rate of a status as the programs that measure have it.
func latencyRate(r *v1alpha1.RateMeasurement) latency.Rate {
	return latency.Rate{
		PerSecond: uint64(r.MessagesPerSecond), AchievedPerSecond: float64(r.AchievedPerSecond), Bytes: int(r.Bytes),
		Load: latency.Stream{
			Sent: uint64(r.Sent), Lost: uint64(r.Lost), Duplicates: uint64(r.Duplicates), Reordered: uint64(r.Reordered), Gaps: uint64(r.Gaps),
		},
		Late: uint64(r.Late), MaximumLatenessNanoseconds: r.MaximumLatenessNanoseconds,
		AnswersWanted: uint64(r.AnswersLost + r.FromIntended.Samples), AnswersLost: uint64(r.AnswersLost),
		FromIntended: distributionOf(&r.FromIntended), FromActual: distributionOf(&r.FromSent),
	}
}

// IsMissed reports whether the client did not reach a rate.
func IsMissed(r *v1alpha1.RateMeasurement) bool {
	rate := latencyRate(r)
	return !rate.IsOnSchedule()
}

func distributionOf(f *v1alpha1.LatencyFigures) latency.Distribution {
	return latency.Distribution{
		Samples: uint64(f.Samples), MinimumNanoseconds: f.MinimumNanoseconds, MeanNanoseconds: float64(f.MeanNanoseconds),
		MaximumNanoseconds: f.MaximumNanoseconds, DeviationNanoseconds: float64(f.DeviationNanoseconds), Percentiles: ladderOf(f),
	}
}

// PercentOf is a percentile as a number.
func PercentOf(name v1alpha1.PercentileName) float64 {
	return latency.Ladder()[slices.Index(Percentiles(), name)]
}

func ladderOf(f *v1alpha1.LatencyFigures) []latency.Percentile {
	found := make([]latency.Percentile, 0, len(f.Percentiles))
	for _, p := range f.Percentiles {
		one := latency.Percentile{Percent: PercentOf(p.Percentile), Nanoseconds: p.Nanoseconds}
		if interval := IntervalOf(f, p.Percentile); interval != nil {
			one.LowNanoseconds, one.HighNanoseconds = interval.LowNanoseconds, interval.HighNanoseconds
		}
		found = append(found, one)
	}
	return found
}

// latencyBudget is a budget of the API as the programs that measure have it.
func latencyBudget(budget *v1alpha1.LatencyBudget) latency.Budget {
	b := latency.Budget{MaximumNanoseconds: budget.MaximumNanoseconds, Accelerated: budget.Path == v1alpha1.LatencyPathAccelerated, LeastPerSecond: uint64(budget.MinimumMessagesPerSecond)}
	if budget.LossPartsPerMillion != nil {
		b.LossPartsPerMillion = new(float64(*budget.LossPartsPerMillion))
	}
	if budget.LatePartsPerMillion != nil {
		b.LatePartsPerMillion = new(float64(*budget.LatePartsPerMillion))
	}
	for _, bound := range budget.Percentiles {
		b.Limits = append(b.Limits, latency.Limit{Percent: PercentOf(bound.Percentile), Nanoseconds: bound.Nanoseconds})
	}
	return b
}

// Row is what a measurement over the network has of one size of messages, or of one rate.
type Row struct {
	// Name says which, such as "64 bytes", "host, 64 bytes", "50000 a second", or "best pass" of a search, whose rates are others in each run.
	Name string
	// Side of a comparison; nil where nothing was compared.
	Side  *v1alpha1.SideMeasurement
	Bytes int32
	// Lost messages, and all that were sent.
	Lost, Sent int64
	// Figures are those that are judged.
	Figures *v1alpha1.LatencyFigures
	// Rate is nil for messages that went one at a time, which Size has.
	Rate *v1alpha1.RateMeasurement
	Size *v1alpha1.SizeMeasurement
}

// isJudged reports whether the figures of a row are those of a measurement.
func (r *Row) isJudged(n *v1alpha1.NetworkMeasurement) bool {
	if n.Comparison != nil && (len(n.Comparison.Sides) == 0 || r.Side != &n.Comparison.Sides[firstOf(n.Comparison)]) {
		return false
	}
	return n.Load == nil || r.Rate == bestRate(n)
}

// Path is the way that the messages of a row took.
func (r *Row) Path(n *v1alpha1.NetworkMeasurement) v1alpha1.LatencyPath {
	if r.Side != nil {
		return r.Side.Path
	}
	return n.Path
}

// ServerOf is what was counted on the CPU of the server for a row: on its side of a comparison, or during the measurement.
func ServerOf(n *v1alpha1.NetworkMeasurement, row *Row) *v1alpha1.ServerCounts {
	if row.Side != nil {
		return &row.Side.ServerCounts
	}
	return &n.ServerCounts
}

// Series is a name of few values for the rate of a row: the rate itself, or which trial of a search it was; "" for messages that went one at a
// time.
func (r *Row) Series() string {
	if r.Rate != nil && r.Rate.Trial != "" {
		return string(r.Rate.Trial)
	}
	return r.PerSecond()
}

// PerSecond is the rate of a row in words; "" for messages that went one at a time.
func (r *Row) PerSecond() string {
	if r.Rate == nil {
		return ""
	}
	return strconv.Itoa(int(r.Rate.MessagesPerSecond))
}

// Rows are those that are judged: the rates, or where there are none the sizes. Of a comparison they are the sizes of all sides.
func Rows(n *v1alpha1.NetworkMeasurement) []Row {
	rows := make([]Row, 0, len(n.Rates)+len(n.Sizes))
	for i := range n.Rates {
		r := &n.Rates[i]
		rows = append(rows, Row{
			Name: cmp.Or(trialName(r.Trial), fmt.Sprintf("%d a second", r.MessagesPerSecond)), Bytes: r.Bytes, Lost: r.Lost, Sent: r.Sent, Figures: &r.FromIntended, Rate: r,
		})
	}
	for i := range n.Sizes {
		if len(n.Rates) == 0 {
			rows = append(rows, sizeRow(nil, &n.Sizes[i]))
		}
	}
	if n.Comparison == nil {
		return rows
	}
	for i := range n.Comparison.Sides {
		side := &n.Comparison.Sides[i]
		for j := range side.Sizes {
			rows = append(rows, sizeRow(side, &side.Sizes[j]))
		}
	}
	return rows
}

// sizeRow is the row of a size, of a side of a comparison or of none.
func sizeRow(side *v1alpha1.SideMeasurement, s *v1alpha1.SizeMeasurement) Row {
	name := fmt.Sprintf("%d bytes", s.Bytes)
	if side != nil {
		name = sideWords(side.Side) + ", " + name
	}
	return Row{Name: name, Side: side, Bytes: s.Bytes, Lost: s.Lost, Sent: s.Lost + s.Samples, Figures: &s.LatencyFigures, Size: s}
}

// RepeatedRow is the index of the row to which the figures of repetitions belong: the first, or of a comparison the first of the side that these are of.
func RepeatedRow(n *v1alpha1.NetworkMeasurement, rows []Row) int {
	if n.Comparison == nil {
		return 0
	}
	return slices.IndexFunc(rows, func(r Row) bool { return r.isJudged(n) })
}

// IsFirstOfSide reports whether the row at an index is the first of its side of a comparison, or the first of all where nothing was compared. The medians of
// repetitions and the histograms are those of such rows.
func IsFirstOfSide(rows []Row, index int) bool {
	return index == 0 || rows[index-1].Side != rows[index].Side
}

// RowNamed is the row of a name; nil when there is none.
func RowNamed(n *v1alpha1.NetworkMeasurement, name string) *Row {
	rows := Rows(n)
	at := slices.IndexFunc(rows, func(r Row) bool { return r.Name == name })
	if at < 0 {
		return nil
	}
	return &rows[at]
}

// networkFigures is a measurement over the network in few words.
func networkFigures(measured *v1alpha1.LatencyMeasurement) string {
	n := measured.Network
	rows := Rows(n)
	words := make([]string, 0, len(rows)+1)
	if n.Load != nil {
		words = append(words, LoadWords(n.Load))
	}
	if n.Comparison != nil {
		words = append(words, ratioFigures(n.Comparison)...)
	}
	for i := range rows {
		if n.Comparison == nil && rows[i].isJudged(n) {
			words = append(words, rows[i].words())
		}
	}
	return fmt.Sprintf("%s; to a server on node %s, path %s", strings.Join(words, "; "), n.Server, PathWords(n))
}

// PathWords is the path of a measurement in few words: of sides that have each their own, all.
func PathWords(n *v1alpha1.NetworkMeasurement) string {
	if n.Comparison == nil || !wantsPaths(n.Comparison) {
		return string(n.Path)
	}
	words := make([]string, 0, len(n.Comparison.Sides))
	for i := range n.Comparison.Sides {
		words = append(words, fmt.Sprintf("%s of %s", n.Comparison.Sides[i].Path, sideWords(n.Comparison.Sides[i].Side)))
	}
	return strings.Join(words, ", ")
}

func (r *Row) words() string {
	text := r.Name + ": "
	if len(r.Figures.Percentiles) > 0 {
		text += fmt.Sprintf("median %s, ", latency.Length(r.Figures.Percentiles[0].Nanoseconds))
	}
	text += "longest " + latency.Length(r.Figures.MaximumNanoseconds)
	if r.Rate != nil && r.Lost > 0 {
		text += fmt.Sprintf(", %d lost", r.Lost)
	}
	return text
}
