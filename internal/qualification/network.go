// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package qualification

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

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
	// ServerCounts are what was counted on the CPU of the server.
	v1alpha1.ServerCounts

	// Sizes has a row for each size of messages that went one at a time: its bytes, its lost and stray messages, and its figures.
	Sizes [][]int64 `json:"sizes,omitempty"`
	// Rates has a row for each rate of messages on a schedule: the rate, the achieved one, the bytes, what was sent, lost, in how many
	// gaps, duplicated, reordered and late, the largest lateness, the lost answers, and the figures from the intended and from the
	// actual time of sending.
	Rates [][]int64 `json:"rates,omitempty"`
	// SizeIntervals and RateIntervals have a row for each of Sizes and Rates, of which those from the intended time count: the samples of the repetition
	// with the fewest, and of each percentile by how much its interval goes below and above it, the latter -1 where it has no upper end.
	SizeIntervals [][]int64 `json:"sizeIntervals,omitempty"`
	RateIntervals [][]int64 `json:"rateIntervals,omitempty"`
	// Medians are those of the first rate, or of the first size, in the repetitions.
	Medians []int64 `json:"medians,omitempty"`
	// Load is what a search found; nil where none was made.
	Load *LoadRecord `json:"load,omitempty"`
}

// Figures of a row are the samples, the shortest and the mean latency, the deviation and the longest latency, and after these the
// percentiles that the samples carry, the lowest first.
const (
	figureColumns = 5
	sizeColumns   = 3
	rateColumns   = 11
)

func figuresRow(f *v1alpha1.LatencyFigures) []int64 {
	row := append(make([]int64, 0, figureColumns+len(f.Percentiles)),
		f.Samples, f.MinimumNanoseconds, f.MeanNanoseconds, f.DeviationNanoseconds, f.MaximumNanoseconds)
	for _, p := range f.Percentiles {
		row = append(row, p.Nanoseconds)
	}
	return row
}

func figuresOf(row []int64) v1alpha1.LatencyFigures {
	return v1alpha1.LatencyFigures{
		Samples: row[0], MinimumNanoseconds: row[1], MeanNanoseconds: row[2], DeviationNanoseconds: row[3], MaximumNanoseconds: row[4],
		Percentiles: percentilesOf(row[figureColumns:]),
	}
}

// SizeRow is the row of a size in a record.
func SizeRow(s *v1alpha1.SizeMeasurement) []int64 {
	return append([]int64{int64(s.Bytes), s.Lost, s.Stray}, figuresRow(&s.LatencyFigures)...)
}

func sizeOf(row []int64) v1alpha1.SizeMeasurement {
	return v1alpha1.SizeMeasurement{Bytes: int32(row[0]), Lost: row[1], Stray: row[2], LatencyFigures: figuresOf(row[sizeColumns:])}
}

// RateRow is the row of a rate in a record.
func RateRow(r *v1alpha1.RateMeasurement) []int64 {
	return slices.Concat([]int64{
		int64(r.MessagesPerSecond), r.AchievedPerSecond, int64(r.Bytes), r.Sent, r.Lost, r.Gaps, r.Duplicates, r.Reordered, r.Late,
		r.MaximumLatenessNanoseconds, r.AnswersLost,
	}, figuresRow(&r.FromIntended), figuresRow(&r.FromSent))
}

func rateOf(row []int64) v1alpha1.RateMeasurement {
	// Both have the same samples, and so as many percentiles.
	middle := rateColumns + (len(row)-rateColumns)/2
	return v1alpha1.RateMeasurement{
		MessagesPerSecond: int32(row[0]), AchievedPerSecond: row[1], Bytes: int32(row[2]), Sent: row[3], Lost: row[4], Gaps: row[5],
		Duplicates: row[6], Reordered: row[7], Late: row[8], MaximumLatenessNanoseconds: row[9], AnswersLost: row[10],
		FromIntended: figuresOf(row[rateColumns:middle]), FromSent: figuresOf(row[middle:]),
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
		ServerCounts: n.ServerCounts,
	}
	for i, row := range n.Sizes {
		size := sizeOf(row)
		addIntervals(&size.LatencyFigures, n.SizeIntervals, i)
		m.Sizes = append(m.Sizes, size)
	}
	for i, row := range n.Rates {
		rate := rateOf(row)
		addIntervals(&rate.FromIntended, n.RateIntervals, i)
		m.Rates = append(m.Rates, rate)
	}
	if n.Load != nil {
		m.Load = n.Load.measurement()
		for i, trial := range n.Load.Trials {
			m.Rates[i].Trial = trial
		}
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
	if err := cmp.Or(checkWord("the path", n.PathMessage, v1alpha1.MaxPathMessageLength),
		checkWord("the kernel of the server", n.ServerKernel, v1alpha1.MaxInventoryTextLength), checkServer(&n.ServerCounts)); err != nil {
		return err
	}
	if err := cmp.Or(r.checkRows(), r.checkRepetitions()); err != nil {
		return err
	}
	return r.checkWorst()
}

// checkServer refuses what no program of ours leaves of the CPU of a server.
func checkServer(s *v1alpha1.ServerCounts) error {
	if s.ServerCPUs != "" {
		if one, err := cpus.Parse(s.ServerCPUs); err != nil || one.Len() != 1 {
			return errors.New("the server of the record was kept to no single CPU")
		}
	}
	isNobody := s.ServerCountedInterrupts == ""
	if isNobody && (len(s.ServerCauses) > 0 || s.ServerIsolation != nil) {
		return errors.New("the record has what was counted at a server that was not asked")
	}
	return cmp.Or(checkCauses(s.ServerCauses, s.ServerCountedInterrupts), checkIsolation(s.ServerIsolation))
}

// checkRepetitions wants a median and a longest latency of each repetition, none above the longest of all; repetitions of a search have each their
// own rate.
func (r *Record) checkRepetitions() error {
	n, longest := r.Network, r.MaximumNanoseconds
	if n.Load != nil {
		longest = v1alpha1.MaxLatencyNanoseconds
	}
	if len(n.Medians) == 0 || len(n.Medians) != len(r.RepetitionMaximums) || len(n.Medians) > v1alpha1.MaxTestRepetitions {
		return fmt.Errorf("the record has %d medians of %d repetitions", len(n.Medians), len(r.RepetitionMaximums))
	}
	for _, number := range slices.Concat(n.Medians, r.RepetitionMaximums) {
		if number < 0 || number > longest {
			return errors.New("a repetition of the record has a latency above the longest")
		}
	}
	return nil
}

// checkRows wants a row for each size and for each rate, and numbers that can be true together.
func (r *Record) checkRows() error {
	n := r.Network
	if err := r.checkCounts(); err != nil {
		return err
	}
	for _, row := range n.Sizes {
		if err := checkSize(row); err != nil {
			return err
		}
	}
	for _, row := range n.Rates {
		if err := checkRate(row); err != nil {
			return err
		}
	}
	if err := n.checkIntervals(); err != nil {
		return err
	}
	if n.Load != nil {
		return n.checkLoad()
	}
	return nil
}

// checkCounts wants as many rows as the kind has, and a search where it makes one.
func (r *Record) checkCounts() error {
	n := r.Network
	if len(n.Sizes) == 0 || len(n.Sizes) > v1alpha1.MaxTestSizes {
		return fmt.Errorf("the record has %d sizes, not 1 to %d", len(n.Sizes), v1alpha1.MaxTestSizes)
	}
	isSearch := r.Kind == v1alpha1.LatencyTestLoadSearch
	if len(n.Rates) > v1alpha1.MaxTestRates || (len(n.Rates) > 0) != (isSearch || r.Kind == v1alpha1.LatencyTestRateSweep) {
		return fmt.Errorf("the record of kind %s has %d rates", r.Kind, len(n.Rates))
	}
	if (n.Load != nil) != isSearch {
		return fmt.Errorf("the record of kind %s has a search, or none", r.Kind)
	}
	return nil
}

// checkWorst wants the figures of the record to be the worst of what is judged.
func (r *Record) checkWorst() error {
	longest, percentiles := Worst(Judged(r.Network.Measurement("")))
	if longest != r.MaximumNanoseconds || !slices.Equal(percentiles, r.Percentiles) {
		return errors.New("the longest latency and the percentiles of the record are not the worst of its sizes or rates")
	}
	return nil
}

func checkSize(row []int64) error {
	if len(row) < sizeColumns {
		return fmt.Errorf("a size of the record has %d numbers", len(row))
	}
	if outOfBounds(row) || row[0] > v1alpha1.MaxMessageBytes {
		return errors.New("a number of a size of the record is out of its bounds")
	}
	return checkFigures("size", row[sizeColumns:])
}

// checkRate wants counts that are not above what was sent, and the figures of the same samples twice.
func checkRate(row []int64) error {
	if len(row) < rateColumns || (len(row)-rateColumns)%2 != 0 {
		return fmt.Errorf("a rate of the record has %d numbers", len(row))
	}
	if outOfBounds(row) || row[0] < 1 || row[0] > v1alpha1.MaxMessagesPerSecond || row[2] > v1alpha1.MaxMessageBytes {
		return errors.New("a number of a rate of the record is out of its bounds")
	}
	return checkRateFigures(row)
}

func checkRateFigures(row []int64) error {
	middle := rateColumns + (len(row)-rateColumns)/2
	for _, figures := range [][]int64{row[rateColumns:middle], row[middle:]} {
		if err := checkFigures("rate", figures); err != nil {
			return err
		}
	}
	r := rateOf(row)
	if max(r.Lost, r.Late) > r.Sent || r.Gaps > r.Lost || r.FromIntended.Samples != r.FromSent.Samples {
		return errors.New("the counts of a rate of the record contradict each other")
	}
	return nil
}

func outOfBounds(row []int64) bool {
	return slices.ContainsFunc(row, func(n int64) bool { return n < 0 || n > v1alpha1.MaxGeneration })
}

// checkFigures wants the figures of a size or rate to be complete, and latencies to rise from the shortest to the longest.
func checkFigures(of string, row []int64) error {
	if len(row) < figureColumns || len(row) > figureColumns+len(Percentiles()) {
		return fmt.Errorf("the figures of a %s of the record are %d numbers", of, len(row))
	}
	f := figuresOf(row)
	if carried := len(f.Percentiles); carried > 0 && uint64(f.Samples) < latency.Samples(latency.Ladder()[carried-1]) {
		return fmt.Errorf("a %s of the record has a percentile that its samples do not carry", of)
	}
	least := f.MinimumNanoseconds
	for _, value := range append(slices.Clone(row[figureColumns:]), f.MaximumNanoseconds) {
		if value < least || value > v1alpha1.MaxLatencyNanoseconds {
			return fmt.Errorf("the latencies of a %s of the record do not rise towards its longest", of)
		}
		least = value
	}
	if f.MeanNanoseconds < f.MinimumNanoseconds || f.MeanNanoseconds > f.MaximumNanoseconds {
		return fmt.Errorf("the mean of a %s of the record is not between its latencies", of)
	}
	return nil
}

// bestRate is the rate of the best pass of a search, or the lowest one where none passed; nil when there is no rate.
func bestRate(n *v1alpha1.NetworkMeasurement) *v1alpha1.RateMeasurement {
	if len(n.Rates) == 0 {
		return nil
	}
	at := slices.IndexFunc(n.Rates, func(r v1alpha1.RateMeasurement) bool { return r.Trial == v1alpha1.LoadTrialBestPass })
	return &n.Rates[max(0, at)]
}
