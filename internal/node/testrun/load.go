// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package testrun

import (
	"cmp"
	"errors"
	"slices"
	"time"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// LoadRecord sums up the repetitions of a search for the highest rate, whose client was kept to a CPU. The one that found the lowest rate is told.
func LoadRecord(cpu int, results []*latency.Result, kernel, boot string) (qualification.Record, error) {
	if slices.ContainsFunc(results, func(r *latency.Result) bool { return r.Load == nil || r.Load.Low() == nil || len(r.Sizes) == 0 }) || len(results) == 0 {
		return qualification.Record{}, errors.New("nothing was searched for")
	}
	r := newTrafficRecord(v1alpha1.LatencyTestLoadSearch, cpu, results, kernel, boot)
	worst := slices.MinFunc(results, func(a, b *latency.Result) int { return compareLoads(a.Load, b.Load) })
	measured := &v1alpha1.NetworkMeasurement{}
	if err := addRows(measured, results, 0); err != nil {
		return qualification.Record{}, err
	}
	record, rates, err := told(worst.Load)
	if err != nil {
		return qualification.Record{}, err
	}
	for _, result := range results {
		r.RepetitionMaximums = append(r.RepetitionMaximums, bounded(result.Load.Shown().Rate.FromIntended.MaximumNanoseconds))
		r.Network.Medians = append(r.Network.Medians, bounded(result.Load.Low().Rate.FromIntended.MedianNanoseconds))
		record.BestPasses = append(record.BestPasses, int32(result.Load.BestPass))
	}
	measured.Rates, r.Network.Load = rates, record
	addToRecord(&r, measured)
	// What is judged is what the measurement says of its own trials.
	r.MaximumNanoseconds, r.Percentiles = qualification.Worst(qualification.Judged(r.Network.Measurement("")))
	r.TimeLine = timeLine(worst.TimeLine())
	return withHistogram(r, []string{worst.Load.Shown().Rate.FromIntended.HDR})
}

// compareLoads has the lower rate first, and of equal ones the one that was not confirmed.
func compareLoads(a, b *latency.Load) int {
	confirmed := func(l *latency.Load) int {
		if l.Confirmed {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(a.BestPass, b.BestPass), cmp.Compare(confirmed(a), confirmed(b)))
}

// told is what a record says of a search, and the rates of its trials.
func told(l *latency.Load) (*qualification.LoadRecord, []v1alpha1.RateMeasurement, error) {
	record := &qualification.LoadRecord{
		BestPass: int64(l.BestPass), LowestFail: int64(l.LowestFail), State: v1alpha1.LoadUnconfirmed,
		HeldSeconds: min(l.HeldNanoseconds/time.Second.Nanoseconds(), v1alpha1.MaxTestDurationSeconds), Made: int64(len(l.Trials)),
	}
	if l.Confirmed {
		record.State = v1alpha1.LoadConfirmed
	}
	if l.LowestFail > 0 {
		record.Reason, record.Message = string(l.Why.Reason), printable(l.Why.Message, v1alpha1.MaxFailMessageLength)
	}
	var rates []v1alpha1.RateMeasurement
	for _, one := range []struct {
		name  v1alpha1.LoadTrial
		trial *latency.Trial
	}{{v1alpha1.LoadTrialLow, l.Low()}, {v1alpha1.LoadTrialBestPass, l.Best()}, {v1alpha1.LoadTrialLowestFail, l.Lowest()}} {
		if one.trial == nil {
			continue
		}
		rate, err := rateOf([]*latency.Result{{Rates: []latency.Rate{one.trial.Rate}}}, 0)
		if err != nil {
			return nil, nil, err
		}
		rate.Trial = one.name
		record.Trials, rates = append(record.Trials, one.name), append(rates, rate)
	}
	return record, rates, nil
}
