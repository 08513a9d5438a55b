// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package qualification

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// defaultPairs is how often each side of a comparison is measured: one more than carries an interval, and as often first as last.
const defaultPairs = 6

// Side is one of the things that a comparison measures in turns: which pods its client and its server are.
type Side struct {
	Name           v1alpha1.LatencySide
	Client, Server v1alpha1.TestEnd
	// IsOnHost says that the client is in the network namespace of its node, and IsServerOnHost that the server is in that of its own.
	IsOnHost, IsServerOnHost bool
	// Path is the way that its messages have to take; "" for the one that all sides take.
	Path v1alpha1.LatencyPath
}

// Comparison is what is measured in turns.
type Comparison struct {
	Sides []Side
	// Base is the side with which the others are compared.
	Base v1alpha1.LatencySide
}

// Compares reports whether a kind measures sides in turns.
func Compares(kind v1alpha1.LatencyTestKind) bool {
	return kind == v1alpha1.LatencyTestContainerVersusHost || kind == v1alpha1.LatencyTestStackComparison
}

// comparisonOf is what a test compares; nil for a kind that compares nothing.
func comparisonOf(spec *v1alpha1.LatencyTestSpec, traffic *Traffic) *Comparison {
	switch {
	case spec.Kind == v1alpha1.LatencyTestContainerVersusHost:
		return containerVersusHost(traffic)
	case spec.Kind == v1alpha1.LatencyTestStackComparison && spec.StackComparison != nil:
		return stackComparison(spec.StackComparison)
	}
	return nil
}

// containerVersusHost compares a pod as users have it with the namespace of its node. The server is the same pod for both.
func containerVersusHost(traffic *Traffic) *Comparison {
	host := traffic.Client
	// There is no network of a pod in the namespace of the node, which has its own addresses.
	host.Address = ""
	return &Comparison{Base: v1alpha1.LatencySideHost, Sides: []Side{
		{Name: v1alpha1.LatencySideContainer, Client: traffic.Client, Server: traffic.Server.TestEnd},
		{Name: v1alpha1.LatencySideHost, Client: host, Server: traffic.Server.TestEnd, IsOnHost: true},
	}}
}

// stackComparison compares sides as a test declares them, each with ends of its own.
func stackComparison(given *v1alpha1.StackComparison) *Comparison {
	c := &Comparison{Base: v1alpha1.LatencySide(given.Base)}
	for i := range given.Sides {
		side := &given.Sides[i]
		c.Sides = append(c.Sides, Side{
			Name: v1alpha1.LatencySide(side.Name), Path: side.Path, Client: side.Client.TestEnd, Server: side.Server.TestEnd,
			IsOnHost: side.Client.Network == v1alpha1.TestNetworkHost, IsServerOnHost: side.Server.Network == v1alpha1.TestNetworkHost,
		})
	}
	return c
}

// at is the index of the side that a run measures. The order turns round with each repetition, so that what becomes slower or faster meanwhile favours
// no side.
func (c *Comparison) at(run int) int {
	repetition, turn := run/len(c.Sides), run%len(c.Sides)
	if repetition%2 == 1 {
		return len(c.Sides) - 1 - turn
	}
	return turn
}

// Runs is how many Jobs measure a node, one after the other: one for each side in each repetition, or one that makes all repetitions.
func (p *Parameters) Runs() int {
	if p.Comparison == nil {
		return 1
	}
	return len(p.Comparison.Sides) * int(p.Repetitions)
}

// RepetitionsOfRun is how often one Job measures.
func (p *Parameters) RepetitionsOfRun() int32 {
	if p.Comparison == nil {
		return p.Repetitions
	}
	return 1
}

// Sides are those that are measured, in the order of the first repetition; of a kind that compares nothing, the only one.
func (p *Parameters) Sides() []Side {
	if p.Comparison == nil {
		return []Side{p.SideOf(0)}
	}
	return p.Comparison.Sides
}

// HasOwnServers reports whether sides have different servers, of which one is stopped before the next starts.
func (p *Parameters) HasOwnServers() bool {
	return p.Comparison != nil && slices.ContainsFunc(p.Comparison.Sides, func(s Side) bool { return !s.SharesServer(&p.Comparison.Sides[0]) })
}

// SharesServer reports whether the server of one side is that of another.
func (s *Side) SharesServer(other *Side) bool {
	return s.Server == other.Server && s.IsServerOnHost == other.IsServerOnHost
}

// SideOf is the side that a run measures; of a kind that compares nothing, the only one, which has no name.
func (p *Parameters) SideOf(run int) Side {
	if p.Comparison == nil {
		return Side{Client: p.Traffic.Client, Server: p.Traffic.Server.TestEnd}
	}
	return p.Comparison.Sides[p.Comparison.at(run)]
}

// Compared puts the records of all runs of a comparison together, in the order of the runs; server is the node of the server. Each record is of the
// same sizes.
func Compared(p *Parameters, records []*Record, server string) *v1alpha1.LatencyMeasurement {
	c := p.Comparison
	of := make([][]*Record, len(c.Sides))
	for run, record := range records {
		of[c.at(run)] = append(of[c.at(run)], record)
	}
	compared := &v1alpha1.ComparisonMeasurement{Base: c.Base}
	for i := range c.Sides {
		compared.Sides = append(compared.Sides, sideOf(&c.Sides[i], of[i]))
	}
	base, first := baseOf(compared), firstOf(compared)
	for i := range compared.Sides {
		if i != base && tookItsPath(&compared.Sides[i]) && tookItsPath(&compared.Sides[base]) {
			compared.Sides[i].Ratios = ratiosOf(of[i], of[base])
		}
	}
	path, message := pathOfSides(compared)
	measured := &v1alpha1.LatencyMeasurement{Network: &v1alpha1.NetworkMeasurement{
		Server: server, ServerKernel: records[0].Network.ServerKernel, Path: path, PathMessage: message,
		Comparison: compared, RepetitionMediansNanoseconds: compared.Sides[first].RepetitionMediansNanoseconds,
	}}
	for _, record := range of[first] {
		measured.RepetitionMaximumsNanoseconds = append(measured.RepetitionMaximumsNanoseconds, record.MaximumNanoseconds)
	}
	measured.CPUs, measured.CountedInterrupts = cpusOf(records, cpusOfClient), longest(records).CountedInterrupts
	measured.MaximumNanoseconds, measured.Percentiles = Worst(Judged(measured.Network))
	return measured
}

// baseOf is the index of the base of a comparison.
func baseOf(c *v1alpha1.ComparisonMeasurement) int {
	return max(0, slices.IndexFunc(c.Sides, func(s v1alpha1.SideMeasurement) bool { return s.Side == c.Base }))
}

// firstOf is the index of the side whose figures stand for the whole measurement: the first that is not the base.
func firstOf(c *v1alpha1.ComparisonMeasurement) int {
	return max(0, slices.IndexFunc(c.Sides, func(s v1alpha1.SideMeasurement) bool { return s.Side != c.Base }))
}

// tookItsPath reports whether the messages of a side took the way that they had to, where one is said.
func tookItsPath(side *v1alpha1.SideMeasurement) bool {
	return side.WantedPath == "" || side.Path == side.WantedPath
}

// otherPathWords say which way the messages of a side went instead of the one that they had to.
func otherPathWords(side *v1alpha1.SideMeasurement) string {
	return fmt.Sprintf("%s was to go %s and went %s (%s)", sideWords(side.Side), side.WantedPath, side.Path, side.PathMessage)
}

// wantsPaths reports whether the sides of a comparison have each a path to take.
func wantsPaths(c *v1alpha1.ComparisonMeasurement) bool {
	return slices.ContainsFunc(c.Sides, func(s v1alpha1.SideMeasurement) bool { return s.WantedPath != "" })
}

// sideOf is what was measured on one side.
func sideOf(side *Side, records []*Record) v1alpha1.SideMeasurement {
	last := records[len(records)-1]
	s := v1alpha1.SideMeasurement{
		Side: side.Name, WantedPath: side.Path, PathMessage: last.Network.PathMessage, CPUs: cpusOf(records, cpusOfClient), Histogram: middle(records).Histogram,
		Causes: longest(records).Causes, Isolation: longest(records).Isolation, ServerCounts: longest(records).Network.ServerCounts,
	}
	s.ServerCPUs = cpusOf(records, func(r *Record) string { return r.Network.ServerCPUs })
	path := latency.Path{State: latency.PathState(last.Network.Path)}
	for i, record := range records {
		path = latency.Path{State: latency.PathState(record.Network.Path)}.And(path)
		s.RepetitionMediansNanoseconds = append(s.RepetitionMediansNanoseconds, record.Network.Medians[0])
		measured := record.Network.Measurement("")
		if i == 0 {
			s.Sizes = measured.Sizes
			continue
		}
		for j := range measured.Sizes {
			addSize(&s.Sizes[j], &measured.Sizes[j])
		}
	}
	s.Path = v1alpha1.LatencyPath(path.State)
	return s
}

// middle is the record whose median is in the middle.
func middle(records []*Record) *Record {
	sorted := slices.SortedFunc(slices.Values(records), func(a, b *Record) int { return cmp.Compare(a.Network.Medians[0], b.Network.Medians[0]) })
	return sorted[(len(sorted)-1)/2]
}

// longest is the record with the longest latency.
func longest(records []*Record) *Record {
	return slices.MaxFunc(records, func(a, b *Record) int { return cmp.Compare(a.MaximumNanoseconds, b.MaximumNanoseconds) })
}

// addSize takes another repetition into the figures of a size: counts add up, and of each figure the worst counts.
func addSize(s, one *v1alpha1.SizeMeasurement) {
	s.Lost, s.Stray = s.Lost+one.Lost, s.Stray+one.Stray
	AddFigures(&s.LatencyFigures, &one.LatencyFigures)
}

func cpusOfClient(r *Record) string { return r.CPUs }

// cpusOf are those to which an end was kept in all records.
func cpusOf(records []*Record, of func(*Record) string) string {
	var all cpus.Set
	for _, record := range records {
		if set, err := cpus.Parse(of(record)); err == nil {
			all = all.Union(set)
		}
	}
	return all.String()
}

// ratiosOf are how many times as long messages took as on the base, for each size and each percentile that all runs carry. There are none of fewer runs
// than carry an interval.
func ratiosOf(side, base []*Record) []v1alpha1.LatencyRatio {
	var ratios []v1alpha1.LatencyRatio
	for size, row := range side[0].Network.Sizes {
		for i, name := range Percentiles() {
			these, carriedHere := percentileOfRuns(side, size, i, PercentOf(name))
			those, carriedThere := percentileOfRuns(base, size, i, PercentOf(name))
			if !carriedHere || !carriedThere {
				break
			}
			ratio, err := latency.Compare(these, those)
			if err != nil {
				continue
			}
			ratios = append(ratios, v1alpha1.LatencyRatio{
				Bytes: int32(row[0]), Percentile: name, PartsPerThousand: int64(math.Round(ratio.Value * partsPerThousand)),
				// Outwards, so that rounding decides nothing.
				LowPartsPerThousand: int64(math.Floor(ratio.Low * partsPerThousand)), HighPartsPerThousand: int64(math.Ceil(ratio.High * partsPerThousand)),
			})
		}
	}
	return ratios
}

// percentileOfRuns is a percentile of the size at an index in each run, and whether all runs carry it. A message that was lost is later than any of those that
// have an answer: where too many were, the percentile is none of all messages.
func percentileOfRuns(records []*Record, size, percentile int, percent float64) (values []int64, carried bool) {
	for _, record := range records {
		m := sizeOf(record.Network.Sizes[size])
		if percentile >= len(m.Percentiles) || !isAnswered(&m, percent) {
			return nil, false
		}
		values = append(values, m.Percentiles[percentile].Nanoseconds)
	}
	return values, true
}

func isAnswered(m *v1alpha1.SizeMeasurement, percent float64) bool {
	return latency.IsAnswered(percent, uint64(max(0, m.Samples)), uint64(max(0, m.Lost)))
}

// pathOfSides is the path of the base where each side has its own to take, else the path of all sides, Mixed when they went different ways; and what
// the kernel counted.
func pathOfSides(c *v1alpha1.ComparisonMeasurement) (v1alpha1.LatencyPath, string) {
	if wantsPaths(c) {
		base := &c.Sides[baseOf(c)]
		return base.Path, base.PathMessage
	}
	path := latency.Path{State: latency.PathState(c.Sides[0].Path)}
	for i := range c.Sides {
		path = path.And(latency.Path{State: latency.PathState(c.Sides[i].Path)})
	}
	return v1alpha1.LatencyPath(path.State), c.Sides[firstOf(c)].PathMessage
}

// judgePaths has a verdict where sides took different paths, one is not known, or one is not that which the side was to take: what was measured
// then tells of the paths and not of the sides. Otherwise it has none.
func judgePaths(n *v1alpha1.NetworkMeasurement) (verdict Verdict, other bool) {
	c := n.Comparison
	if !wantsPaths(c) {
		if n.Path == v1alpha1.LatencyPathKernel || n.Path == v1alpha1.LatencyPathAccelerated {
			return Verdict{}, false
		}
		return Verdict{v1alpha1.LatencyInconclusive, v1alpha1.TestPathsDiffer, "messages did not go one known way on all sides, so that nothing can be compared: " + pathsWords(c)}, true
	}
	var words []string
	for i := range c.Sides {
		if side := &c.Sides[i]; !tookItsPath(side) {
			words = append(words, otherPathWords(side))
		}
	}
	if len(words) == 0 {
		return Verdict{}, false
	}
	return Verdict{v1alpha1.LatencyInconclusive, v1alpha1.TestPathsDiffer, "messages did not go the way that their side says, so that nothing can be compared: " + strings.Join(words, ", ")}, true
}

// judgeComparison holds the ratios of a comparison against a budget.
func judgeComparison(measured *v1alpha1.LatencyMeasurement, budget *v1alpha1.LatencyBudget) Verdict {
	n := measured.Network
	if outcome, other := latency.JudgePath(latency.Path{State: latency.PathState(n.Path), Message: n.PathMessage}, latencyBudget(budget)); other {
		return Verdict{v1alpha1.LatencyOutcome(outcome.Verdict), string(outcome.Reason), outcome.Message}
	}
	if verdict, other := judgePaths(n); other {
		return verdict
	}
	var found []Verdict
	for i := range n.Comparison.Sides {
		if side := &n.Comparison.Sides[i]; side.Side != n.Comparison.Base {
			found = append(found, judgeSide(side, &n.Comparison.Sides[baseOf(n.Comparison)], budget)...)
		}
	}
	verdict := Verdict{v1alpha1.LatencyPassed, v1alpha1.TestWithinBudget, "within the budget: " + networkFigures(measured)}
	for _, outcome := range []v1alpha1.LatencyOutcome{v1alpha1.LatencyInconclusive, v1alpha1.LatencyFailed} {
		if at := slices.IndexFunc(found, func(v Verdict) bool { return v.Outcome == outcome }); at >= 0 {
			verdict = found[at]
		}
	}
	verdict.Message += otherCPUs(n.Comparison)
	return verdict
}

// otherCPUs says, as the end of a sentence, that the clients of the sides were not kept to the same CPUs, which may be a part of what tells them
// apart; "" where they were.
func otherCPUs(c *v1alpha1.ComparisonMeasurement) string {
	words, differ := make([]string, 0, len(c.Sides)), false
	for i := range c.Sides {
		words, differ = append(words, sideWords(c.Sides[i].Side)+" "+c.Sides[i].CPUs), differ || c.Sides[i].CPUs != c.Sides[0].CPUs
	}
	if !differ {
		return ""
	}
	return "; the sides were measured on different CPUs, which may be a part of it: " + strings.Join(words, ", ")
}

// judgeSide has a verdict for each size and bound that is not kept, or not known to be.
func judgeSide(side, base *v1alpha1.SideMeasurement, budget *v1alpha1.LatencyBudget) []Verdict {
	var found []Verdict
	for i := range side.Sizes {
		for _, bound := range budget.Ratios {
			if v := judgeRatio(side, base, i, bound); v.Outcome != v1alpha1.LatencyPassed {
				found = append(found, v)
			}
		}
	}
	return found
}

// judgeRatio judges that of the size at an index.
func judgeRatio(side, base *v1alpha1.SideMeasurement, size int, bound v1alpha1.LatencyRatioBound) Verdict {
	bytes := side.Sizes[size].Bytes
	what := fmt.Sprintf("%s to %s, %d bytes, %s", sideWords(side.Side), sideWords(base.Side), bytes, Words(bound.Percentile))
	if verdict, lost := judgeLost(side, base, size, bound.Percentile); lost {
		verdict.Message = what + ": " + verdict.Message
		return verdict
	}
	ratio := RatioOf(side, bytes, bound.Percentile)
	if ratio == nil {
		return Verdict{v1alpha1.LatencyInconclusive, v1alpha1.TestTooFewSamples, fmt.Sprintf(
			"%s: %d pairs of measurements carry no ratio: each takes %d samples of the size, and %d pairs an interval",
			what, len(side.RepetitionMediansNanoseconds), latency.Samples(PercentOf(bound.Percentile)), latency.PairsNeeded)}
	}
	limit, words := int64(bound.MaximumPartsPerThousand), RatioWords(ratio)
	switch {
	case ratio.LowPartsPerThousand > limit:
		return Verdict{v1alpha1.LatencyFailed, v1alpha1.TestRatio, fmt.Sprintf("%s: %s times as long, and the budget has %s%s", what, words, TimesWords(limit), blameEnds(side.CPUs, side.Causes, side.Isolation, &side.ServerCounts))}
	case ratio.HighPartsPerThousand > limit:
		return Verdict{v1alpha1.LatencyInconclusive, v1alpha1.TestRatio, fmt.Sprintf(
			"%s: %s times as long, which the measurements do not tell apart from the %s of the budget: measure longer, or with more repetitions", what, words, TimesWords(limit))}
	}
	return Verdict{Outcome: v1alpha1.LatencyPassed}
}

// judgeLost has a verdict where so many messages of a size were lost that a percentile says nothing of all of them: Failed where the side alone has lost them.
// Otherwise it has none.
func judgeLost(side, base *v1alpha1.SideMeasurement, size int, name v1alpha1.PercentileName) (verdict Verdict, lost bool) {
	here, there := &side.Sizes[size], &base.Sizes[size]
	isHere, isThere := isAnswered(here, PercentOf(name)), isAnswered(there, PercentOf(name))
	if isHere && isThere {
		return Verdict{}, false
	}
	verdict = Verdict{v1alpha1.LatencyInconclusive, v1alpha1.TestLoss, fmt.Sprintf("messages were lost, %d of %d there and %d of %d on %s, so that no ratio is one of all messages",
		here.Lost, here.Lost+here.Samples, there.Lost, there.Lost+there.Samples, sideWords(base.Side))}
	if !isHere && isThere {
		verdict.Outcome = v1alpha1.LatencyFailed
	}
	return verdict, true
}

// RatioOf is the ratio of a side for a size and a percentile; nil where the measurements carry none.
func RatioOf(side *v1alpha1.SideMeasurement, bytes int32, percentile v1alpha1.PercentileName) *v1alpha1.LatencyRatio {
	at := slices.IndexFunc(side.Ratios, func(r v1alpha1.LatencyRatio) bool { return r.Bytes == bytes && r.Percentile == percentile })
	if at < 0 {
		return nil
	}
	return &side.Ratios[at]
}

// TailRatioOf is the ratio of the highest percentile above the median; nil where the measurements carry none.
func TailRatioOf(side *v1alpha1.SideMeasurement, bytes int32) *v1alpha1.LatencyRatio {
	for _, name := range slices.Backward(Percentiles()) {
		if ratio := RatioOf(side, bytes, name); ratio != nil && name != v1alpha1.P50 {
			return ratio
		}
	}
	return nil
}

// RatioWords is a ratio with its interval.
func RatioWords(r *v1alpha1.LatencyRatio) string {
	return fmt.Sprintf("%s (%s to %s)", TimesWords(r.PartsPerThousand), TimesWords(r.LowPartsPerThousand), TimesWords(r.HighPartsPerThousand))
}

// TimesWords are parts per thousand as people write a ratio.
func TimesWords(parts int64) string {
	return fmt.Sprintf("%d.%03d", parts/partsPerThousand, parts%partsPerThousand)
}

// sideWords is a side within a sentence.
func sideWords(side v1alpha1.LatencySide) string { return strings.ToLower(string(side)) }

// pathsWords are the paths of all sides, and what the kernel counted.
func pathsWords(c *v1alpha1.ComparisonMeasurement) string {
	words := make([]string, 0, len(c.Sides))
	for i := range c.Sides {
		words = append(words, fmt.Sprintf("%s %s (%s)", sideWords(c.Sides[i].Side), c.Sides[i].Path, c.Sides[i].PathMessage))
	}
	return strings.Join(words, ", ")
}

// ratioFigures are the ratios of a comparison in few words: of each size the median, and the tail that is carried.
func ratioFigures(c *v1alpha1.ComparisonMeasurement) []string {
	var words []string
	for i := range c.Sides {
		side := &c.Sides[i]
		for j := range side.Sizes {
			bytes := side.Sizes[j].Bytes
			for _, ratio := range []*v1alpha1.LatencyRatio{RatioOf(side, bytes, v1alpha1.P50), TailRatioOf(side, bytes)} {
				if ratio != nil {
					words = append(words, fmt.Sprintf("%s to %s, %d bytes, %s: %s", sideWords(side.Side), sideWords(c.Base), bytes, Words(ratio.Percentile), RatioWords(ratio)))
				}
			}
		}
	}
	return words
}

// pairedRatios are the ratios of the medians of the first size, of the first side that is not the base to the base, in the repetitions, in parts per
// thousand.
func pairedRatios(c *v1alpha1.ComparisonMeasurement) []int64 {
	if len(c.Sides) == 0 {
		return nil
	}
	first, base := c.Sides[firstOf(c)].RepetitionMediansNanoseconds, c.Sides[baseOf(c)].RepetitionMediansNanoseconds
	ratios := make([]int64, 0, len(first))
	for i := range min(len(first), len(base)) {
		ratios = append(ratios, first[i]*partsPerThousand/max(1, base[i]))
	}
	return ratios
}
