// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package testrun

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// busyPreemptions is how often a second the kernel may give the CPU of an end to something else. Threads of the kernel do so a few
// times on a CPU that nobody else has; another program that runs there does a hundred times and more.
const busyPreemptions = 50

// CheckQuiet is an error when something else ran on the CPU of an end while it measured.
func CheckQuiet(result *latency.Result) error {
	elapsed := time.Duration(result.ElapsedNanoseconds)
	for _, end := range []latency.End{result.Client(), result.Server()} {
		if elapsed > 0 && float64(end.Preemptions) > busyPreemptions*max(1, elapsed.Seconds()) {
			return Problem{v1alpha1.TestMachineBusy, fmt.Sprintf(
				"the machine was busy: the kernel gave the CPU of the %s%s to something else %d times in %s, more than %d times a second%s",
				end.Name, cpuWords(end.CPU), end.Preemptions, elapsed.Round(time.Millisecond), busyPreemptions, seenOnCPU(&end))}
		}
	}
	return nil
}

// cpuWords are the number of a CPU in brackets; "" when an end was kept to none.
func cpuWords(cpu int) string {
	if cpu < 0 {
		return ""
	}
	return fmt.Sprintf(" (CPU %d)", cpu)
}

// seenOnCPU says, as the end of a sentence, for how much of the time the CPU of an end was at work, and what the kernel counted there most besides, or why
// nothing was counted. Which program it was is not known: a container does not see those of others.
func seenOnCPU(end *latency.End) string {
	if why := end.Unknown(); why != "" {
		return "; what it was is not known, since nothing was counted there: " + why
	}
	var words []string
	if busy := qualification.BusyWords(end.Isolation()); busy != "" {
		words = append(words, busy)
	}
	alone := latency.End{Counts: end.Counts}
	if counts, _ := causesOver([]latency.End{alone}, 0); len(counts) > 0 {
		words = append(words, "most often the kernel counted "+counts[0])
	}
	if len(words) == 0 {
		return ""
	}
	return "; " + strings.Join(words, ", ")
}

// CheckIdle is an error when CPUs of an end, Client or Server, are at work for others before it measures or answers; busy says which, "" none.
func CheckIdle(end, busy string) error {
	if busy == "" {
		return nil
	}
	return Problem{v1alpha1.TestMachineBusy, fmt.Sprintf("the machine of the %s was busy: %s before anything was measured", strings.ToLower(end), busy)}
}

// CheckEnded is an error when a measurement did not come to its end, or cannot be trusted. What its figures show is for the operator to judge.
func CheckEnded(result *latency.Result) error {
	if result.Outcome.Verdict != latency.Inconclusive || slices.Contains([]latency.Reason{
		latency.ReasonGeneratorLimit, latency.ReasonTooFewSamples, latency.ReasonUnfinished, latency.ReasonRate, latency.ReasonLoss, latency.ReasonOverBudget, latency.ReasonGrowth,
	}, result.Outcome.Reason) {
		return nil
	}
	return Problem{string(result.Outcome.Reason), result.Outcome.Message}
}

// TrafficRecord sums up the repetitions of a measurement over the network, whose client was kept to a CPU: of each latency the worst, and counts of all.
func TrafficRecord(kind v1alpha1.LatencyTestKind, cpu int, results []*latency.Result, kernel, boot string) (qualification.Record, error) {
	if len(results) == 0 || len(results[0].Sizes) == 0 {
		return qualification.Record{}, errors.New("nothing was measured")
	}
	r := newTrafficRecord(kind, cpu, results, kernel, boot)
	rates, err := shortest(results)
	if err != nil {
		return qualification.Record{}, err
	}
	var histograms []string
	lines := make([]*latency.TimeLine, 0, len(results))
	for _, result := range results {
		lines = append(lines, result.TimeLine())
		judged := distributions(result, rates)
		longest := int64(0)
		for _, d := range judged {
			longest = max(longest, d.MaximumNanoseconds)
		}
		r.RepetitionMaximums = append(r.RepetitionMaximums, bounded(longest))
		r.Network.Medians = append(r.Network.Medians, bounded(judged[0].MedianNanoseconds))
		histograms = append(histograms, judged[0].HDR)
	}
	measured := &v1alpha1.NetworkMeasurement{}
	if err := addRows(measured, results, rates); err != nil {
		return qualification.Record{}, err
	}
	addToRecord(&r, measured)
	r.MaximumNanoseconds, r.Percentiles = qualification.Worst(qualification.Judged(measured))
	r.TimeLine = timeLine(latency.InSequence(lines...))
	return withHistogram(r, histograms)
}

// newTrafficRecord is a record without figures. The repetitions are one at least.
func newTrafficRecord(kind v1alpha1.LatencyTestKind, cpu int, results []*latency.Result, kernel, boot string) qualification.Record {
	last := results[len(results)-1]
	causes, interrupts := causesOver(clientsOf(results), elapsedOf(results))
	return qualification.Record{
		Version: qualification.Version, Kind: kind, CPUs: cpus.Of(cpu).String(), Causes: causes, CountedInterrupts: interrupts, Isolation: trafficIsolation(clientsOf(results)),
		Kernel: printable(kernel, v1alpha1.MaxInventoryTextLength), BootID: printable(boot, v1alpha1.MaxBootIDLength),
		Network: &qualification.NetworkRecord{
			Path: pathOf(results), PathMessage: printable(last.Path.Message, v1alpha1.MaxPathMessageLength),
			ServerKernel: printable(last.Setup.Server.Kernel, v1alpha1.MaxInventoryTextLength), ServerCounts: serverCounts(results),
		},
	}
}

// addToRecord adds the rows of a measurement to a record.
func addToRecord(r *qualification.Record, measured *v1alpha1.NetworkMeasurement) {
	for i := range measured.Sizes {
		r.Network.Sizes = append(r.Network.Sizes, qualification.SizeRow(&measured.Sizes[i]))
		r.Network.SizeIntervals = append(r.Network.SizeIntervals, qualification.IntervalRow(&measured.Sizes[i].LatencyFigures))
	}
	for i := range measured.Rates {
		r.Network.Rates = append(r.Network.Rates, qualification.RateRow(&measured.Rates[i]))
		r.Network.RateIntervals = append(r.Network.RateIntervals, qualification.IntervalRow(&measured.Rates[i].FromIntended))
	}
}

// shortest is how many rates every repetition has: one in which the client missed a rate by far ends with it.
func shortest(results []*latency.Result) (int, error) {
	least := len(results[0].Rates)
	for _, result := range results {
		if (len(result.Rates) == 0) != (len(results[0].Rates) == 0) {
			return 0, errors.New("a repetition has no rate")
		}
		least = min(least, len(result.Rates))
	}
	return least, nil
}

// distributions are those of a repetition that are judged: of its rates, or where there are none of its sizes.
func distributions(result *latency.Result, rates int) []*latency.Distribution {
	found := make([]*latency.Distribution, 0, rates+len(result.Sizes))
	for i := range rates {
		found = append(found, &result.Rates[i].FromIntended)
	}
	for i := range result.Sizes {
		if rates == 0 {
			found = append(found, &result.Sizes[i].Distribution)
		}
	}
	return found
}

// addRows sums up the repetitions of each size and rate.
func addRows(measured *v1alpha1.NetworkMeasurement, results []*latency.Result, rates int) error {
	for i := range results[0].Sizes {
		size, err := sizeOf(results, i)
		if err != nil {
			return err
		}
		measured.Sizes = append(measured.Sizes, size)
	}
	for i := range rates {
		rate, err := rateOf(results, i)
		if err != nil {
			return err
		}
		measured.Rates = append(measured.Rates, rate)
	}
	return nil
}

// pathOf is the path of all repetitions; Mixed when they went different ways.
func pathOf(results []*latency.Result) v1alpha1.LatencyPath {
	path := results[0].Path
	for _, result := range results {
		path = path.And(result.Path)
	}
	return v1alpha1.LatencyPath(path.State)
}

// sizeOf sums up the repetitions of the size at an index.
func sizeOf(results []*latency.Result, index int) (v1alpha1.SizeMeasurement, error) {
	s := v1alpha1.SizeMeasurement{Bytes: int32(results[0].Sizes[index].Bytes)}
	all := make([]*latency.Distribution, 0, len(results))
	for _, result := range results {
		if len(result.Sizes) <= index || result.Sizes[index].Bytes != int(s.Bytes) {
			return s, errors.New("the repetitions are of different sizes")
		}
		one := &result.Sizes[index]
		if one.Distribution.Samples == 0 {
			return s, Problem{v1alpha1.TestNoAnswer, fmt.Sprintf("no message of %d bytes came back", s.Bytes)}
		}
		s.Lost, s.Stray = s.Lost+int64(one.Lost), s.Stray+int64(one.Stray)
		all = append(all, &one.Distribution)
	}
	s.LatencyFigures = figuresOf(all)
	return s, nil
}

// rateOf sums up the repetitions of the rate at an index.
func rateOf(results []*latency.Result, index int) (v1alpha1.RateMeasurement, error) {
	first := &results[0].Rates[index]
	r := v1alpha1.RateMeasurement{MessagesPerSecond: int32(first.PerSecond), Bytes: int32(first.Bytes), AchievedPerSecond: math.MaxInt64}
	intended, sent := make([]*latency.Distribution, 0, len(results)), make([]*latency.Distribution, 0, len(results))
	for _, result := range results {
		one := &result.Rates[index]
		if one.PerSecond != first.PerSecond || one.Bytes != first.Bytes {
			return r, errors.New("the repetitions are of different rates")
		}
		r.AchievedPerSecond = min(r.AchievedPerSecond, int64(math.Round(one.AchievedPerSecond)))
		for _, count := range []struct {
			of    *int64
			value uint64
		}{
			{&r.Sent, one.Load.Sent}, {&r.Lost, one.Load.Lost}, {&r.Gaps, one.Load.Gaps}, {&r.Duplicates, one.Load.Duplicates},
			{&r.Reordered, one.Load.Reordered}, {&r.Late, one.Late}, {&r.AnswersLost, one.AnswersLost},
		} {
			*count.of += int64(count.value)
		}
		r.MaximumLatenessNanoseconds = max(r.MaximumLatenessNanoseconds, one.MaximumLatenessNanoseconds)
		intended, sent = append(intended, &one.FromIntended), append(sent, &one.FromActual)
	}
	r.FromIntended, r.FromSent = figuresOf(intended), figuresOf(sent)
	return r, nil
}

// figuresOf sums up repetitions: of each figure the worst.
func figuresOf(all []*latency.Distribution) v1alpha1.LatencyFigures {
	f := figuresOfOne(all[0])
	for _, d := range all[1:] {
		one := figuresOfOne(d)
		if f.Samples == 0 {
			f.MinimumNanoseconds = one.MinimumNanoseconds
		}
		qualification.AddFigures(&f, &one)
	}
	return f
}

// figuresOfOne are those of one repetition.
func figuresOfOne(d *latency.Distribution) v1alpha1.LatencyFigures {
	f := v1alpha1.LatencyFigures{
		Samples: int64(d.Samples), LeastSamples: int64(d.Samples), MinimumNanoseconds: bounded(d.MinimumNanoseconds), MeanNanoseconds: bounded(int64(math.Round(d.MeanNanoseconds))),
		DeviationNanoseconds: int64(math.Round(d.DeviationNanoseconds)), MaximumNanoseconds: bounded(d.MaximumNanoseconds),
	}
	for _, name := range qualification.Percentiles() {
		p, carried := d.At(qualification.PercentOf(name))
		if !carried {
			continue
		}
		f.Percentiles = append(f.Percentiles, v1alpha1.LatencyPercentile{Percentile: name, Nanoseconds: bounded(p.Nanoseconds)})
		interval := v1alpha1.LatencyInterval{LowNanoseconds: bounded(p.LowNanoseconds)}
		if p.HighNanoseconds != nil {
			interval.HighNanoseconds = new(bounded(*p.HighNanoseconds))
		}
		f.Intervals = append(f.Intervals, interval)
	}
	return f
}

// bounded is a latency within the bounds of the API.
func bounded(nanoseconds int64) int64 {
	return min(max(0, nanoseconds), v1alpha1.MaxLatencyNanoseconds)
}
