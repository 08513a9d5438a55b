// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package traffic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// SearchLoad looks for the highest rate that passes, and holds it against the budget of its options. Request has everything but rates, duration and
// probes. Each trial is called before it is made, and progress while it is.
func SearchLoad(
	ctx context.Context, program string, request RateRequest, options latency.SearchOptions, trial func(latency.Step), progress func(Progress),
) (*latency.Result, error) {
	request.Probes = int(options.Probes)
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
		one, err := measureTrial(ctx, program, &request, step, progress)
		if err != nil {
			return nil, err
		}
		if result == nil {
			result = one
		} else {
			addTo(result, one)
		}
		if outcome, ended := endOfSearch(one, &options.Budget); ended {
			// The search says what it found before.
			result.Outcome = outcome
			return finished(result, search), nil
		}
		search.Record(one.Rates[0])
	}
	if result == nil {
		return nil, errors.New("the search made no trial")
	}
	result = finished(result, search)
	result.Outcome = latency.Judge(result, options.Budget)
	return result, nil
}

// endOfSearch reports whether a trial says nothing about its rate, nor would the next one: the other end is gone, or is no server of this release, the clock cannot be trusted,
// or messages went another way than was asked for.
func endOfSearch(trial *latency.Result, budget *latency.Budget) (outcome latency.Outcome, ended bool) {
	if len(trial.Rates) == 0 || isDoubtful(trial) {
		return trial.Outcome, true
	}
	return latency.JudgePath(trial.Path, *budget)
}

// isDoubtful reports whether what a client measured to its end cannot be trusted.
func isDoubtful(one *latency.Result) bool {
	return one.Outcome.Reason == latency.ReasonClockUnsteady || one.Outcome.Reason == latency.ReasonStranger
}

// measureTrial sends at the rate of a step for as long as it asks. A stream has a limit of messages and one of probes, so where that is less, several streams of
// the same length go one after the other, each from a client of its own, and count as one. The first that the sender could not keep up with is the last: it has
// made the trial one that says nothing. After the first stream, request is that of ends that are warm.
func measureTrial(ctx context.Context, program string, request *RateRequest, step latency.Step, progress func(Progress)) (*latency.Result, error) {
	streams := request.inStreams(step)
	var whole *latency.Result
	var all rateTimes
	for range streams {
		one, times, err := measureStream(ctx, program, request, progress)
		if err != nil {
			return nil, err
		}
		request.WarmUp, request.WarmUpPings, request.MaximumPings = 0, 1, min(request.MaximumPings, request.Batch)
		if whole == nil {
			whole = one
		} else {
			addTo(whole, one)
		}
		if len(one.Rates) == 0 || isDoubtful(one) {
			whole.Rates, whole.Outcome = nil, one.Outcome
			return whole, nil
		}
		all.add(times)
		if !one.Rates[0].IsOnSchedule() {
			break
		}
	}
	if streams > 1 {
		whole.Remarks = append(whole.Remarks, fmt.Sprintf("%d messages a second for %s went in %d streams one after the other: a stream has %d messages and %d probes at most",
			step.Rate, step.Duration, streams, request.most(), mostStreamAnswers))
	}
	rate, err := all.distribute()
	if err != nil {
		return nil, fmt.Errorf("%d messages a second: %w", step.Rate, err)
	}
	whole.Rates = []latency.Rate{rate}
	return whole, nil
}

// inStreams makes request that of the streams of a trial, and gives their number.
func (r *RateRequest) inStreams(step latency.Step) int {
	r.Rates = []uint64{step.Rate}
	longest := max(time.Millisecond, r.Longest(step.Duration))
	streams := (step.Duration + longest - 1) / longest
	r.Duration = (step.Duration/streams + time.Millisecond - 1).Truncate(time.Millisecond)
	return int(streams)
}

// measureStream makes one stream.
func measureStream(ctx context.Context, program string, request *RateRequest, progress func(Progress)) (*latency.Result, *rateTimes, error) {
	if err := request.Check(); err != nil {
		return nil, nil, err
	}
	output, err := runClient(ctx, program, request.Environment, request.arguments(), progress)
	if err != nil {
		return nil, nil, err
	}
	result, err := resultOf(latency.KindLoadSearch, &request.Request, ThisHost(request.CPU, request.Environment), output, latency.Budget{})
	if err != nil || len(result.Rates) == 0 {
		return result, nil, err
	}
	if request.back == nil {
		request.back = new(wayBack(result, request.RoundTrip))
	}
	return result, timesOf(&output.Streams[0], *request.back), nil
}

// addTo adds to a result what a later stream or trial used of both CPUs, its path and its remarks.
func addTo(result, later *latency.Result) {
	result.Preemptions += later.Preemptions
	result.ServerPreemptions += later.ServerPreemptions
	result.PageFaults += later.PageFaults
	result.ServerPageFaults += later.ServerPageFaults
	result.ServerCounts = append(result.ServerCounts, later.ServerCounts...)
	result.ElapsedNanoseconds += later.ElapsedNanoseconds
	result.Path, result.Remarks = result.Path.And(later.Path), append(result.Remarks, later.Remarks...)
}

// finished puts what a search found into its result. Of the way back it speaks once, at the low rate, with which the others are compared.
func finished(result *latency.Result, search *latency.Search) *latency.Result {
	load := search.Found()
	result.Load, result.Rates = &load, nil
	if len(load.Trials) == 0 {
		return result
	}
	if remark := wayBackRemark(&load.Trials[0].Rate); remark != "" {
		result.Remarks = append(result.Remarks, remark)
	}
	return result
}
