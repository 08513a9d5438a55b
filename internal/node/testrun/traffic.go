// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package testrun

import (
	"errors"
	"fmt"
	"math"
	"time"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// busyPreemptions is how often a second the kernel may give the CPU of the client to something else. Threads of the kernel do so a few
// times on a CPU that nobody else has; another program that runs there does a hundred times and more.
const busyPreemptions = 50

// CheckQuiet is an error when something else ran on the CPU of the client while it measured.
func CheckQuiet(result *latency.Result) error {
	elapsed := time.Duration(result.ElapsedNanoseconds)
	if elapsed <= 0 || float64(result.Preemptions) <= busyPreemptions*max(1, elapsed.Seconds()) {
		return nil
	}
	return Problem{v1alpha1.TestMachineBusy, fmt.Sprintf(
		"the machine was busy: the kernel gave the CPU of the client to something else %d times in %s, more than %d times a second",
		result.Preemptions, elapsed.Round(time.Millisecond), busyPreemptions)}
}

// CheckEnded is an error when a measurement did not come to its end, or cannot be trusted.
func CheckEnded(result *latency.Result) error {
	if result.Outcome.Verdict != latency.Inconclusive {
		return nil
	}
	return Problem{string(result.Outcome.Reason), result.Outcome.Message}
}

// TrafficRecord sums up the repetitions of a measurement over the network, whose client was kept to a CPU: of each figure the worst.
func TrafficRecord(kind v1alpha1.LatencyTestKind, cpu int, results []*latency.Result, kernel, boot string) (qualification.Record, error) {
	if len(results) == 0 || len(results[0].Sizes) == 0 {
		return qualification.Record{}, errors.New("nothing was measured")
	}
	last := results[len(results)-1]
	r := qualification.Record{
		Version: qualification.Version, Kind: kind, CPUs: cpus.Of(cpu).String(),
		Kernel: printable(kernel, v1alpha1.MaxInventoryTextLength), BootID: printable(boot, v1alpha1.MaxBootIDLength),
		Network: &qualification.NetworkRecord{
			Path: pathOf(results), PathMessage: printable(last.Path.Message, v1alpha1.MaxPathMessageLength),
			ServerKernel: printable(last.Setup.Server.Kernel, v1alpha1.MaxInventoryTextLength),
		},
	}
	var histograms []string
	for _, result := range results {
		longest := int64(0)
		for i := range result.Sizes {
			longest = max(longest, result.Sizes[i].Distribution.MaximumNanoseconds)
		}
		first := &result.Sizes[0].Distribution
		r.RepetitionMaximums = append(r.RepetitionMaximums, bounded(longest))
		r.Network.Medians = append(r.Network.Medians, bounded(first.MedianNanoseconds))
		histograms = append(histograms, first.HDR)
	}
	sizes := make([]v1alpha1.SizeMeasurement, 0, len(results[0].Sizes))
	for i := range results[0].Sizes {
		size, err := sizeOf(results, i)
		if err != nil {
			return qualification.Record{}, err
		}
		sizes = append(sizes, size)
		r.Network.Sizes = append(r.Network.Sizes, qualification.SizeRow(&size))
	}
	r.MaximumNanoseconds, r.Percentiles = qualification.WorstOfSizes(sizes)
	var err error
	r.Histogram, err = histogram(histograms)
	return r, err
}

// pathOf is the path of all repetitions; Mixed when they went different ways.
func pathOf(results []*latency.Result) v1alpha1.LatencyPath {
	path := results[0].Path.State
	for _, result := range results {
		switch {
		case result.Path.State == latency.PathUnknown:
			return v1alpha1.LatencyPathUnknown
		case result.Path.State != path:
			path = latency.PathMixed
		}
	}
	return v1alpha1.LatencyPath(path)
}

// sizeOf sums up the repetitions of the size at an index.
func sizeOf(results []*latency.Result, index int) (v1alpha1.SizeMeasurement, error) {
	s := v1alpha1.SizeMeasurement{Bytes: int32(results[0].Sizes[index].Bytes), MinimumNanoseconds: math.MaxInt64}
	for repetition, result := range results {
		if len(result.Sizes) <= index || result.Sizes[index].Bytes != int(s.Bytes) {
			return s, errors.New("the repetitions are of different sizes")
		}
		one := &result.Sizes[index]
		d := &one.Distribution
		if d.Samples == 0 {
			return s, Problem{v1alpha1.TestNoAnswer, fmt.Sprintf("no message of %d bytes came back", s.Bytes)}
		}
		s.Samples, s.Lost, s.Stray = s.Samples+int64(d.Samples), s.Lost+int64(one.Lost), s.Stray+int64(one.Stray)
		s.MinimumNanoseconds = min(s.MinimumNanoseconds, bounded(d.MinimumNanoseconds))
		s.MeanNanoseconds = max(s.MeanNanoseconds, bounded(int64(math.Round(d.MeanNanoseconds))))
		s.DeviationNanoseconds = max(s.DeviationNanoseconds, int64(math.Round(d.DeviationNanoseconds)))
		s.MaximumNanoseconds = max(s.MaximumNanoseconds, bounded(d.MaximumNanoseconds))
		s.Percentiles = qualification.WorstPercentiles(repetition == 0, s.Percentiles, percentilesOf(d))
	}
	return s, nil
}

// percentilesOf are those that a distribution carries, the lowest first.
func percentilesOf(d *latency.Distribution) []v1alpha1.LatencyPercentile {
	var found []v1alpha1.LatencyPercentile
	for _, name := range qualification.Percentiles() {
		if p, carried := d.At(qualification.PercentOf(name)); carried {
			found = append(found, v1alpha1.LatencyPercentile{Percentile: name, Nanoseconds: bounded(p.Nanoseconds)})
		}
	}
	return found
}

// bounded is a latency within the bounds of the API.
func bounded(nanoseconds int64) int64 {
	return min(max(0, nanoseconds), v1alpha1.MaxLatencyNanoseconds)
}
