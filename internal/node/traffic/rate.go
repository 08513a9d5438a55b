// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package traffic

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

const (
	// smallestStream is the size of the header of a message of a stream.
	smallestStream = 24
	// fastest rate, most answers, probes and messages of a stream are bounds of the program.
	fastest, mostAnswers, mostProbes, mostMessages = 100_000_000, 10_000_000, 100_000, 400_000_000
	// largestBuffer is that of a socket.
	largestBuffer = 1 << 30
)

// RateRequest says what a sweep measures. Request has one size; its stop rules are those of the ping-pong before the sweep, from which the time of the
// way back is taken.
type RateRequest struct {
	Request

	// Rates in messages a second, in the order of the measurement.
	Rates []uint64
	// Duration of each.
	Duration time.Duration
	// Answers is of about how many messages the time is taken; the server answers these alone, so that the way back is quiet.
	Answers int
	// Probes a second are sent beside the load through a socket of their own, and their times are taken instead; 0 for none.
	Probes int
	// Buffer is the size of the receive buffers of this end in bytes; 0 for the kernel's own.
	Buffer int
	// Environment of the program; nil for that of this one.
	Environment []string
}

// DefaultRateRequest has a round trip of 64 bytes over UDP as its base.
func DefaultRateRequest() RateRequest {
	r := RateRequest{Request: DefaultRequest(), Duration: 2 * time.Second, Answers: 20_000}
	r.Transport, r.Waiting, r.Sizes = latency.UDP, latency.Spin, []int{64}
	return r
}

// Longest is how long each rate can be measured at most, as far as the most messages go that the program counts; no longer than wanted.
func (r *RateRequest) Longest(wanted time.Duration) time.Duration {
	for _, rate := range r.Rates {
		wanted = min(wanted, time.Duration(float64(mostMessages)/float64(max(1, rate))*float64(time.Second)))
	}
	return wanted.Truncate(time.Millisecond)
}

// Check says what is wrong with a request.
func (r *RateRequest) Check() error {
	if err := r.Request.Check(); err != nil {
		return err
	}
	if r.Transport == latency.TCP || len(r.Sizes) != 1 || r.Sizes[0] < smallestStream {
		return fmt.Errorf("sizes %v over %s: a stream has datagrams of one size of at least %d bytes", r.Sizes, r.Transport, smallestStream)
	}
	if len(r.Rates) == 0 || len(r.Rates) > mostSizes {
		return fmt.Errorf("%d rates: there are 1 to %d", len(r.Rates), mostSizes)
	}
	for _, rate := range r.Rates {
		if rate < 1 || rate > fastest || float64(rate)*r.Duration.Seconds() > mostMessages {
			return fmt.Errorf("rate %d: a stream has 1 to %d messages a second, and %d in all", rate, fastest, mostMessages)
		}
	}
	return r.checkStream()
}

func (r *RateRequest) checkStream() error {
	if r.Duration < time.Millisecond || r.Duration > 24*time.Hour {
		return fmt.Errorf("duration %s: a stream takes a millisecond to a day", r.Duration)
	}
	if r.Answers < 1 || r.Answers > mostAnswers || r.Probes < 0 || r.Probes > mostProbes || r.Buffer < 0 || r.Buffer > largestBuffer {
		return fmt.Errorf("%d answers, %d probes, a buffer of %d: the most are %d, %d and %d", r.Answers, r.Probes, r.Buffer, mostAnswers, mostProbes, largestBuffer)
	}
	return nil
}

func (r *RateRequest) arguments() []string {
	rates := make([]string, 0, len(r.Rates))
	for _, rate := range r.Rates {
		rates = append(rates, strconv.FormatUint(rate, 10))
	}
	return append(r.Request.arguments(), "rates="+strings.Join(rates, ","), fmt.Sprintf("stream-ms=%d", r.Duration.Milliseconds()),
		"answers="+strconv.Itoa(r.Answers), "probes="+strconv.Itoa(r.Probes), "buffer="+strconv.Itoa(r.Buffer))
}

// MeasureRates sends at one rate after the other. A rate that the sender missed by far is the last.
func MeasureRates(ctx context.Context, program string, request RateRequest, budget latency.Budget, progress func(Progress)) (*latency.Result, error) {
	return measureRates(ctx, latency.KindRateSweep, program, &request, budget, progress)
}

func measureRates(ctx context.Context, kind latency.Kind, program string, request *RateRequest, budget latency.Budget, progress func(Progress)) (*latency.Result, error) {
	if err := request.Check(); err != nil {
		return nil, err
	}
	output, err := runClient(ctx, program, request.Environment, request.arguments(), progress)
	if err != nil {
		return nil, err
	}
	return resultOf(kind, &request.Request, thisHost(request.CPU, request.Environment), output, budget)
}

// rateOf describes a stream. Its way back is the mean half of a round trip while nothing else was sent.
func rateOf(s *StreamTimes, quiet *latency.Result, roundTrip bool) (latency.Rate, error) {
	back := int64(0)
	if len(quiet.Sizes) > 0 && !roundTrip {
		back = int64(quiet.Sizes[len(quiet.Sizes)-1].Distribution.MeanNanoseconds)
	}
	intended, actual := make([]int64, len(s.Answers)), make([]int64, len(s.Answers))
	for i, a := range s.Answers {
		intended[i], actual[i] = max(0, a.Back-a.Intended-back), max(0, a.Back-a.Actual-back)
	}
	rate := latency.Rate{
		PerSecond: s.Rate, Bytes: s.Bytes, Load: streamOf(s.Count, s.Load),
		Late: s.Late, MaximumLatenessNanoseconds: s.Latest, AnswersWanted: s.Wanted, AnswersLost: s.Wanted - min(s.Wanted, uint64(len(s.Answers))),
	}
	if s.Elapsed > 0 {
		// The last message leaves an interval before the end of the stream.
		rate.AchievedPerSecond = float64(s.Count) / (float64(s.Elapsed)/1e9 + 1/float64(s.Rate))
	}
	if s.ProbeCount > 0 {
		probes := streamOf(s.ProbeCount, s.Probes)
		rate.Probes = &probes
	}
	var errs [2]error
	rate.FromIntended, errs[0] = latency.Distribute(intended)
	rate.FromActual, errs[1] = latency.Distribute(actual)
	return rate, errors.Join(errs[:]...)
}

func streamOf(sent uint64, t Tally) latency.Stream {
	return latency.Stream{Sent: sent, Lost: sent - t.Received, Duplicates: t.Duplicates, Reordered: t.Reordered, Gaps: t.Gaps}
}
