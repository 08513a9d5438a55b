// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package testrun is what the pod of a LatencyTest decides: on which of the CPUs that it has for itself it measures, and what of
// the measurements goes into the record that it leaves for the operator.
package testrun

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/HdrHistogram/hdrhistogram-go"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/jitter"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// Problem is why nothing can be measured, with a reason of the API.
type Problem struct {
	Reason, Message string
}

// Error implements error.
func (p Problem) Error() string { return p.Message }

// Failed is the record of a measurement of a kind that could not be made.
func Failed(kind v1alpha1.LatencyTestKind, reason string, err error) qualification.Record {
	return qualification.Record{
		Version: qualification.Version, Kind: kind,
		Problem: &qualification.Problem{Reason: reason, Message: printable(err.Error(), qualification.MaxProblemLength)},
	}
}

// Place chooses so many CPUs among those that the container may use, whole cores first, and leaves at least one core for
// the thread that reads the kernel's counters. A container that may use more CPUs than it has asked for (asked, 0 when nobody
// knows) shares them with others: what it would measure is no property of the node.
func Place(allowed, online cpus.Set, cores []cpus.Set, count, asked int) (jitter.Placement, error) {
	allowed = allowed.Intersection(online)
	if asked > 0 && allowed.Len() != asked {
		return jitter.Placement{}, Problem{v1alpha1.TestNotExclusive, fmt.Sprintf(
			"the container has asked for %d CPUs and may use CPUs %s: the kubelet has given it none of its own, as it does with the static CPU manager", asked, allowed)}
	}
	var measured []int
	for _, core := range cores {
		for _, id := range core.Intersection(allowed).IDs() {
			if len(measured) < count {
				measured = append(measured, id)
			}
		}
	}
	if len(measured) < count {
		return jitter.Placement{}, Problem{v1alpha1.TestMeasurementFailed, fmt.Sprintf("%d CPUs are to be measured, and the container may use CPUs %s", count, allowed)}
	}
	placement, err := jitter.Place(cpus.Of(measured...), allowed, cores, nil)
	if err != nil {
		return jitter.Placement{}, Problem{v1alpha1.TestMeasurementFailed, err.Error()}
	}
	return placement, nil
}

// RecordOf sums up the repetitions: of each figure the worst of all CPUs and repetitions.
func RecordOf(results []*jitter.Result, kernel, boot string) (qualification.Record, error) {
	r := qualification.Record{
		Version: qualification.Version, Kind: v1alpha1.LatencyTestJitter,
		Kernel: printable(kernel, v1alpha1.MaxInventoryTextLength), BootID: printable(boot, v1alpha1.MaxBootIDLength),
	}
	worst := make([]int64, len(qualification.Percentiles()))
	var measured []int
	var all []*jitter.CPUResult
	lines := make([]*latency.TimeLine, 0, len(results))
	for _, result := range results {
		longest := int64(0)
		var ofCPUs []*latency.TimeLine
		for i := range result.CPUs {
			one := &result.CPUs[i]
			all, measured, ofCPUs = append(all, one), append(measured, one.CPU), append(ofCPUs, one.TimeLine)
			longest = max(longest, one.MaximumNanoseconds)
			if err := add(&r, one, worst); err != nil {
				return qualification.Record{}, err
			}
		}
		r.RepetitionMaximums, lines = append(r.RepetitionMaximums, longest), append(lines, latency.AtOnce(ofCPUs...))
	}
	r.CPUs = cpus.Of(measured...).String()
	for i, name := range qualification.Percentiles() {
		r.Percentiles = append(r.Percentiles, v1alpha1.LatencyPercentile{Percentile: name, Nanoseconds: worst[i]})
	}
	histograms, from := make([]string, 0, len(all)), make([]string, 0, len(all))
	for _, one := range all {
		histograms, from = append(histograms, one.HDR), append(from, one.InterruptsFrom)
	}
	r.Causes, r.CountedInterrupts, r.Isolation = causes(all), countedInterrupts(from), jitterIsolation(all)
	r.ManagementInterrupts, r.TimeLine = managementInterrupts(all), timeLine(latency.InSequence(lines...))
	return withHistogram(r, histograms)
}

// add takes one CPU of one repetition into a record.
func add(r *qualification.Record, one *jitter.CPUResult, worst []int64) error {
	if len(one.OverTime) != len(worst) {
		return fmt.Errorf("the measurement has %d percentiles, and a record %d", len(one.OverTime), len(worst))
	}
	r.Interruptions += int64(one.Interruptions)
	r.NotRecorded += int64(one.NotRecorded)
	if one.MaximumNanoseconds > r.MaximumNanoseconds {
		r.MaximumNanoseconds, r.WorstCPU = one.MaximumNanoseconds, new(int32(one.CPU))
	}
	stolen := min(int64(math.Ceil(one.StolenPartsPerMillion)), v1alpha1.MaxStolenPartsPerMillion)
	r.StolenPartsPerMillion = max(r.StolenPartsPerMillion, int32(stolen))
	for i := range worst {
		worst[i] = max(worst[i], min(one.OverTime[i].Nanoseconds, v1alpha1.MaxLatencyNanoseconds))
	}
	return nil
}

// causesOf is how many of the longest interruptions are asked for their causes.
const causesOf = 8

// causes are what the kernel counted about the longest interruptions: what it counted about the longest of all, or that it counted nothing about that one,
// and then what it counted about the others.
func causes(all []*jitter.CPUResult) []string {
	var worst []jitter.Interruption
	for _, one := range all {
		worst = append(worst, one.Worst...)
	}
	slices.SortStableFunc(worst, func(a, b jitter.Interruption) int { return cmp.Compare(b.LengthNanoseconds, a.LengthNanoseconds) })
	worst = worst[:min(causesOf, len(worst))]
	longest, others := causesTogether(worst[:min(1, len(worst))]), causesTogether(worst[min(1, len(worst)):])
	if len(longest) == 0 && len(others) > 0 {
		longest = []string{qualification.NothingAboutLongest}
	}
	var names []string
	for _, name := range slices.Concat(longest, others) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return qualification.FirstCauses(names, v1alpha1.MaxTestCauses)
}

// causesTogether are the names of what the kernel counted about some interruptions, in the order of counted.Compare by how many of them each came with.
func causesTogether(interruptions []jitter.Interruption) []string {
	var events []counted.Event
	for i := range interruptions {
		for _, cause := range interruptions[i].Causes {
			events = counted.Merge(events, []counted.Event{{Kind: cause.Kind, Name: cause.Name, Count: 1}})
		}
	}
	slices.SortStableFunc(events, counted.Compare)
	names := make([]string, 0, len(events))
	for _, event := range events {
		names = append(names, causeWords(event, ""))
	}
	return names
}

// timeLine is a time line within the bounds of the API; nil for none.
func timeLine(line *latency.TimeLine) *v1alpha1.LatencyTimeLine {
	if line == nil {
		return nil
	}
	of := &v1alpha1.LatencyTimeLine{ElapsedNanoseconds: line.ElapsedNanoseconds}
	for _, longest := range line.LongestNanoseconds {
		of.LongestNanoseconds = append(of.LongestNanoseconds, bounded(longest))
	}
	return of
}

// withHistogram is a record with the merged histograms, as far as it has room for them. They are worth more than its time line, which goes where that makes room.
func withHistogram(r qualification.Record, all []string) (qualification.Record, error) {
	whole, err := addHistogram(r, all)
	if err != nil || whole.Histogram != "" || r.TimeLine == nil {
		return whole, err
	}
	r.TimeLine = nil
	if without, err := addHistogram(r, all); err != nil || without.Histogram != "" {
		return without, err
	}
	return whole, nil
}

func addHistogram(r qualification.Record, all []string) (qualification.Record, error) {
	room, err := qualification.HistogramRoom(r)
	if err != nil {
		return qualification.Record{}, fmt.Errorf("looking for room in the record: %w", err)
	}
	r.Histogram, err = histogram(all, room)
	return r, err
}

// histogram merges histograms, with as many digits as there is room for; "" when there is none.
func histogram(all []string, room int) (string, error) {
	const longest, digits = 100_000_000_000, 3
	for precision := digits; precision > 0; precision-- {
		merged := hdrhistogram.New(1, longest, precision)
		for _, one := range all {
			part, err := hdrhistogram.Decode([]byte(one))
			if err != nil {
				return "", fmt.Errorf("reading a histogram: %w", err)
			}
			merged.Merge(part)
		}
		text, err := merged.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			return "", fmt.Errorf("encoding the histogram: %w", err)
		}
		if len(text) <= room {
			return string(text), nil
		}
	}
	return "", nil
}

// printable is a text within bounds that Parse of a record takes.
func printable(text string, length int) string {
	text = strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return ' '
	}, text)
	return cmp.Or(shorten.Sentence(strings.TrimSpace(text), length), "unknown")
}
