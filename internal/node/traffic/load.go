// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package traffic

import (
	"context"
	"errors"
	"fmt"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// SearchLoad looks for the highest rate that passes, and holds it against the budget of its options. Request has everything but rates, duration and
// probes. Each trial is called before it is made, and progress while it is.
func SearchLoad(
	ctx context.Context, program string, request RateRequest, options latency.SearchOptions, trial func(latency.Step), progress func(Progress),
) (*latency.Result, error) {
	search, err := latency.NewSearch(options)
	if err != nil {
		return nil, err
	}
	var result *latency.Result
	for {
		step, more := search.Next()
		if !more {
			break
		}
		trial(step)
		request.Rates, request.Probes = []uint64{step.Rate}, int(options.Probes)
		request.Duration = request.Longest(step.Duration)
		one, err := measureRates(ctx, latency.KindLoadSearch, program, &request, latency.Budget{}, progress)
		if err != nil {
			return nil, err
		}
		if result == nil {
			result = one
			// Both ends are warm now.
			request.WarmUp, request.WarmUpPings, request.MaximumPings = 0, 1, min(request.MaximumPings, request.Batch)
		} else {
			addUsage(result, one)
		}
		if len(one.Rates) == 0 {
			// The other end is gone, or no server: the search says what it found before.
			result.Outcome = one.Outcome
			return finished(result, search), nil
		}
		if options.Budget.Accelerated && one.Path.State != latency.PathAccelerated {
			result.Outcome = latency.Outcome{Verdict: latency.Inconclusive, Reason: latency.ReasonNotAccelerated, Message: "the path was not accelerated: " + one.Path.Message}
			return finished(result, search), nil
		}
		if request.Duration < step.Duration {
			one.Remarks = append(one.Remarks, fmt.Sprintf("%d messages a second were sent for %s and not for %s: a stream has %d at most",
				step.Rate, request.Duration, step.Duration, mostMessages))
		}
		result.Path, result.Remarks = result.Path.And(one.Path), append(result.Remarks, one.Remarks...)
		search.Record(one.Rates[0])
	}
	if result == nil {
		return nil, errors.New("the search made no trial")
	}
	result = finished(result, search)
	result.Outcome = latency.Judge(result, options.Budget)
	return result, nil
}

// addUsage adds what a trial used of both CPUs.
func addUsage(result, trial *latency.Result) {
	result.Preemptions += trial.Preemptions
	result.ServerPreemptions += trial.ServerPreemptions
	result.PageFaults += trial.PageFaults
	result.ElapsedNanoseconds += trial.ElapsedNanoseconds
}

// finished puts what a search found into its result.
func finished(result *latency.Result, search *latency.Search) *latency.Result {
	load := search.Found()
	result.Load, result.Rates = &load, nil
	return result
}
