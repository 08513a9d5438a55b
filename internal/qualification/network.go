// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package qualification

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// NetworkRecord is what the client of a measurement over the network leaves behind. It is short, because a kubelet keeps little.
type NetworkRecord struct {
	Path        v1alpha1.LatencyPath `json:"path"`
	PathMessage string               `json:"pathMessage"`
	// ServerKernel is what the server says of its kernel.
	ServerKernel string `json:"serverKernel"`
	// Sizes has a row for each size of messages: its bytes, samples, lost and stray messages, the shortest and the mean latency, the
	// deviation and the longest latency, and after these the percentiles that the samples carry, the lowest first.
	Sizes [][]int64 `json:"sizes,omitempty"`
	// Medians are those of the first size in the repetitions.
	Medians []int64 `json:"medians,omitempty"`
}

// sizeColumns is how many numbers of a row of sizes come before the percentiles.
const sizeColumns = 8

// SizeRow is the row of a size in a record.
func SizeRow(s *v1alpha1.SizeMeasurement) []int64 {
	row := append(make([]int64, 0, sizeColumns+len(s.Percentiles)),
		int64(s.Bytes), s.Samples, s.Lost, s.Stray, s.MinimumNanoseconds, s.MeanNanoseconds, s.DeviationNanoseconds, s.MaximumNanoseconds)
	for _, p := range s.Percentiles {
		row = append(row, p.Nanoseconds)
	}
	return row
}

func sizeOf(row []int64) v1alpha1.SizeMeasurement {
	return v1alpha1.SizeMeasurement{
		Bytes: int32(row[0]), Samples: row[1], Lost: row[2], Stray: row[3], MinimumNanoseconds: row[4], MeanNanoseconds: row[5],
		DeviationNanoseconds: row[6], MaximumNanoseconds: row[7], Percentiles: percentilesOf(row[sizeColumns:]),
	}
}

// percentilesOf gives the lowest percentiles their names.
func percentilesOf(values []int64) []v1alpha1.LatencyPercentile {
	if len(values) == 0 {
		return nil
	}
	named := make([]v1alpha1.LatencyPercentile, 0, len(values))
	for i, value := range values {
		named = append(named, v1alpha1.LatencyPercentile{Percentile: Percentiles()[i], Nanoseconds: value})
	}
	return named
}

// Measurement is a record as a status has it; server is the node of the server.
func (n *NetworkRecord) Measurement(server string) *v1alpha1.NetworkMeasurement {
	m := &v1alpha1.NetworkMeasurement{
		Server: server, ServerKernel: n.ServerKernel, Path: n.Path, PathMessage: n.PathMessage, RepetitionMediansNanoseconds: n.Medians,
	}
	for _, row := range n.Sizes {
		m.Sizes = append(m.Sizes, sizeOf(row))
	}
	return m
}

// checkNetwork refuses what no program of ours leaves of a measurement over the network.
func (r *Record) checkNetwork() error {
	n := r.Network
	one, err := cpus.Parse(r.CPUs)
	if err != nil || one.Len() != 1 || r.WorstCPU != nil || max(r.Interruptions, r.NotRecorded, int64(r.StolenPartsPerMillion)) != 0 {
		return errors.New("the record has what measurements over the network do not measure")
	}
	if !slices.Contains([]v1alpha1.LatencyPath{
		v1alpha1.LatencyPathKernel, v1alpha1.LatencyPathAccelerated, v1alpha1.LatencyPathMixed, v1alpha1.LatencyPathUnknown,
	}, n.Path) {
		return errors.New("the record names a path that is not known")
	}
	if err := errors.Join(checkWord("the path", n.PathMessage, v1alpha1.MaxPathMessageLength),
		checkWord("the kernel of the server", n.ServerKernel, v1alpha1.MaxInventoryTextLength)); err != nil {
		return err
	}
	return errors.Join(r.checkRepetitions(), r.checkSizes())
}

// checkRepetitions wants a median and a longest latency of each repetition, none above the longest of all.
func (r *Record) checkRepetitions() error {
	n := r.Network
	if len(n.Medians) == 0 || len(n.Medians) != len(r.RepetitionMaximums) || len(n.Medians) > v1alpha1.MaxTestRepetitions {
		return fmt.Errorf("the record has %d medians of %d repetitions", len(n.Medians), len(r.RepetitionMaximums))
	}
	for _, number := range slices.Concat(n.Medians, r.RepetitionMaximums) {
		if number < 0 || number > r.MaximumNanoseconds {
			return errors.New("a repetition of the record has a latency above the longest")
		}
	}
	return nil
}

// checkSizes wants a row for each size, numbers that can be true together, and the figures of the record to be the worst of them.
func (r *Record) checkSizes() error {
	if len(r.Network.Sizes) == 0 || len(r.Network.Sizes) > v1alpha1.MaxTestSizes {
		return fmt.Errorf("the record has %d sizes, not 1 to %d", len(r.Network.Sizes), v1alpha1.MaxTestSizes)
	}
	sizes := make([]v1alpha1.SizeMeasurement, 0, len(r.Network.Sizes))
	for _, row := range r.Network.Sizes {
		if err := checkSize(row); err != nil {
			return err
		}
		sizes = append(sizes, sizeOf(row))
	}
	longest, percentiles := WorstOfSizes(sizes)
	if longest != r.MaximumNanoseconds || !slices.Equal(percentiles, r.Percentiles) {
		return errors.New("the longest latency and the percentiles of the record are not the worst of its sizes")
	}
	return nil
}

// checkSize wants the numbers of a row to be in their bounds, and latencies to rise from the shortest to the longest.
func checkSize(row []int64) error {
	if len(row) < sizeColumns || len(row) > sizeColumns+len(Percentiles()) {
		return fmt.Errorf("a size of the record has %d numbers", len(row))
	}
	if slices.ContainsFunc(row, func(n int64) bool { return n < 0 || n > v1alpha1.MaxGeneration }) || row[0] > v1alpha1.MaxMessageBytes {
		return errors.New("a number of a size of the record is out of its bounds")
	}
	if carried := len(row) - sizeColumns; carried > 0 && uint64(row[1]) < latency.Samples(latency.Ladder()[carried-1]) {
		return errors.New("a size of the record has a percentile that its samples do not carry")
	}
	return checkRising(row)
}

// checkRising wants the latencies of a row to rise from the shortest to the longest, with the mean between them.
func checkRising(row []int64) error {
	least, longest := row[4], row[7]
	for _, value := range append(slices.Clone(row[sizeColumns:]), longest) {
		if value < least || value > v1alpha1.MaxLatencyNanoseconds {
			return errors.New("the latencies of a size of the record do not rise towards its longest")
		}
		least = value
	}
	if mean := row[5]; mean < row[4] || mean > longest {
		return errors.New("the mean of a size of the record is not between its latencies")
	}
	return nil
}

// WorstOfSizes is the longest latency of all sizes, and of each percentile that every size carries the largest.
func WorstOfSizes(sizes []v1alpha1.SizeMeasurement) (longest int64, worst []v1alpha1.LatencyPercentile) {
	for i := range sizes {
		longest = max(longest, sizes[i].MaximumNanoseconds)
		worst = WorstPercentiles(i == 0, worst, sizes[i].Percentiles)
	}
	return longest, worst
}

// WorstPercentiles are the larger values of the percentiles that both have; first says that there is only one.
func WorstPercentiles(first bool, a, b []v1alpha1.LatencyPercentile) []v1alpha1.LatencyPercentile {
	if first {
		return slices.Clone(b)
	}
	worst := a[:min(len(a), len(b))]
	for i := range worst {
		worst[i].Nanoseconds = max(worst[i].Nanoseconds, b[i].Nanoseconds)
	}
	return worst
}

// judgeNetwork compares a measurement over the network with a budget; nil is no budget.
func judgeNetwork(measured *v1alpha1.LatencyMeasurement, budget *v1alpha1.LatencyBudget) Verdict {
	if budget == nil {
		return Verdict{
			v1alpha1.LatencyInconclusive, v1alpha1.TestNoBudget, "measured, but spec.budget does not say what is good enough: " + networkFigures(measured),
		}
	}
	if budget.Path == v1alpha1.LatencyPathKernel && measured.Network.Path != v1alpha1.LatencyPathKernel {
		return Verdict{
			v1alpha1.LatencyInconclusive, v1alpha1.TestNotThroughKernel,
			fmt.Sprintf("the path was %s, and not through the kernel alone: %s", measured.Network.Path, measured.Network.PathMessage),
		}
	}
	outcome := latency.Judge(ResultOf(measured), latencyBudget(budget))
	verdict := Verdict{v1alpha1.LatencyOutcome(outcome.Verdict), string(outcome.Reason), outcome.Message}
	if verdict.Outcome == v1alpha1.LatencyPassed {
		verdict.Reason, verdict.Message = v1alpha1.TestWithinBudget, "within the budget: "+networkFigures(measured)
	}
	return verdict
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
			Bytes: int(s.Bytes), Lost: uint64(s.Lost), Stray: uint64(s.Stray),
			Distribution: latency.Distribution{
				Samples: uint64(s.Samples), MinimumNanoseconds: s.MinimumNanoseconds, MeanNanoseconds: float64(s.MeanNanoseconds),
				MaximumNanoseconds: s.MaximumNanoseconds, DeviationNanoseconds: float64(s.DeviationNanoseconds), Percentiles: ladderOf(s.Percentiles),
			},
		})
	}
	return result
}

// PercentOf is a percentile as a number.
func PercentOf(name v1alpha1.PercentileName) float64 {
	return latency.Ladder()[slices.Index(Percentiles(), name)]
}

func ladderOf(percentiles []v1alpha1.LatencyPercentile) []latency.Percentile {
	found := make([]latency.Percentile, 0, len(percentiles))
	for _, p := range percentiles {
		found = append(found, latency.Percentile{Percent: PercentOf(p.Percentile), Nanoseconds: p.Nanoseconds})
	}
	return found
}

// latencyBudget is a budget of the API as the programs that measure have it.
func latencyBudget(budget *v1alpha1.LatencyBudget) latency.Budget {
	b := latency.Budget{MaximumNanoseconds: budget.MaximumNanoseconds, Accelerated: budget.Path == v1alpha1.LatencyPathAccelerated}
	if budget.LossPartsPerMillion != nil {
		b.LossPartsPerMillion = new(float64(*budget.LossPartsPerMillion))
	}
	for _, bound := range budget.Percentiles {
		b.Limits = append(b.Limits, latency.Limit{Percent: PercentOf(bound.Percentile), Nanoseconds: bound.Nanoseconds})
	}
	return b
}

// networkFigures is a measurement over the network in few words.
func networkFigures(measured *v1alpha1.LatencyMeasurement) string {
	n := measured.Network
	words := make([]string, 0, len(n.Sizes))
	for i := range n.Sizes {
		s := &n.Sizes[i]
		one := fmt.Sprintf("%d bytes: longest %s", s.Bytes, latency.Length(s.MaximumNanoseconds))
		if len(s.Percentiles) > 0 {
			one = fmt.Sprintf("%d bytes: median %s, longest %s", s.Bytes, latency.Length(s.Percentiles[0].Nanoseconds), latency.Length(s.MaximumNanoseconds))
		}
		words = append(words, one)
	}
	return fmt.Sprintf("%s; to a server on node %s, path %s", strings.Join(words, "; "), n.Server, n.Path)
}
