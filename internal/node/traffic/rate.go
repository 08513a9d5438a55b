// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package traffic

import (
	"cmp"
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

	// back is the way back of an answer, which the first stream of a search has found with a warm end and many messages; nil before. Later ones
	// send a few beforehand, of which a single interruption would move it.
	back *int64
	// mostPerStream is the limit of messages of a stream; 0 for that of the program. Tests lower it.
	mostPerStream uint64
}

// most is how many messages a stream has at most.
func (r *RateRequest) most() uint64 { return cmp.Or(r.mostPerStream, mostMessages) }

// DefaultRateRequest has a round trip of 64 bytes over UDP as its base.
func DefaultRateRequest() RateRequest {
	r := RateRequest{Request: DefaultRequest(), Duration: 2 * time.Second, Answers: 20_000}
	r.Transport, r.Waiting, r.Sizes = latency.UDP, latency.Spin, []int{64}
	return r
}

// Longest is how long each rate can be measured at most, as far as the most messages go that the program counts, and the most probes whose answers are read; no
// longer than wanted.
func (r *RateRequest) Longest(wanted time.Duration) time.Duration {
	for _, rate := range r.Rates {
		wanted = min(wanted, timeOf(r.most(), max(1, rate)))
	}
	if r.Probes > 0 {
		wanted = min(wanted, timeOf(mostStreamAnswers, uint64(r.Probes)))
	}
	return wanted.Truncate(time.Millisecond)
}

// timeOf is how long it takes to send messages at a rate.
func timeOf(messages, perSecond uint64) time.Duration {
	return time.Duration(float64(messages) / float64(perSecond) * float64(time.Second))
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
		if rate < 1 || rate > fastest || float64(rate)*r.Duration.Seconds() > float64(r.most()) {
			return fmt.Errorf("rate %d: a stream has 1 to %d messages a second, and %d in all", rate, fastest, r.most())
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
	if float64(r.Probes)*r.Duration.Seconds() > mostStreamAnswers {
		return fmt.Errorf("%d probes a second for %s: a stream has %d in all", r.Probes, r.Duration, mostStreamAnswers)
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
	if err := request.Check(); err != nil {
		return nil, err
	}
	output, err := runClient(ctx, program, request.Environment, request.arguments(), progress)
	if err != nil {
		return nil, err
	}
	result, err := resultOf(latency.KindRateSweep, &request.Request, ThisHost(request.CPU, request.Environment), output, budget)
	if err != nil {
		return nil, err
	}
	for i := range result.Rates {
		if remark := wayBackRemark(&result.Rates[i]); remark != "" {
			result.Remarks = append(result.Remarks, remark)
		}
	}
	return result, nil
}

// rateTimes are a rate without its distributions, and the times these are made of, in the order in which they were taken.
type rateTimes struct {
	rate             latency.Rate
	intended, actual []int64
}

// wayBack is the mean half of a round trip while nothing else was sent; 0 where whole round trips are measured.
func wayBack(quiet *latency.Result, roundTrip bool) int64 {
	if len(quiet.Sizes) == 0 || roundTrip {
		return 0
	}
	return int64(quiet.Sizes[len(quiet.Sizes)-1].Distribution.MeanNanoseconds)
}

// timesOf is what was seen of a stream, less the way back of its answers: one that took less in all was on its way for no time, and not for less
// than none.
func timesOf(s *StreamTimes, back int64) *rateTimes {
	t := &rateTimes{intended: make([]int64, len(s.Answers)), actual: make([]int64, len(s.Answers)), rate: latency.Rate{
		PerSecond: s.Rate, Bytes: s.Bytes, Load: streamOf(s.Count, s.Load),
		Late: s.Late, MaximumLatenessNanoseconds: s.Latest, AnswersWanted: s.Wanted, AnswersLost: s.Wanted - min(s.Wanted, uint64(len(s.Answers))),
	}}
	t.rate.WayBackNanoseconds = back
	for i, a := range s.Answers {
		if a.Back-a.Intended < back {
			t.rate.BelowWayBack++
		}
		t.intended[i], t.actual[i] = max(0, a.Back-a.Intended-back), max(0, a.Back-a.Actual-back)
	}
	t.rate.TimeLine = latency.TimeLineOf(s.Elapsed, func(yield func(int64, int64) bool) {
		for i, a := range s.Answers {
			if !yield(a.Intended, t.intended[i]) {
				return
			}
		}
	})
	if s.Elapsed > 0 {
		// The last message leaves an interval before the end of the stream.
		t.rate.AchievedPerSecond = float64(s.Count) / (float64(s.Elapsed)/1e9 + 1/float64(s.Rate))
	}
	if s.ProbeCount > 0 {
		probes := streamOf(s.ProbeCount, s.Probes)
		t.rate.Probes = &probes
	}
	return t
}

// add adds a stream of the same rate that came after. The sender kept up with all when it did with the one with which it did least.
func (t *rateTimes) add(later *rateTimes) {
	if t.rate.PerSecond == 0 {
		*t = *later
		return
	}
	r, o := &t.rate, &later.rate
	r.AchievedPerSecond = min(r.AchievedPerSecond, o.AchievedPerSecond)
	r.Late, r.MaximumLatenessNanoseconds = r.Late+o.Late, max(r.MaximumLatenessNanoseconds, o.MaximumLatenessNanoseconds)
	r.AnswersWanted, r.AnswersLost = r.AnswersWanted+o.AnswersWanted, r.AnswersLost+o.AnswersLost
	r.BelowWayBack += o.BelowWayBack
	addStream(&r.Load, &o.Load)
	r.TimeLine = latency.InSequence(r.TimeLine, o.TimeLine)
	if r.Probes != nil && o.Probes != nil {
		addStream(r.Probes, o.Probes)
	}
	t.intended, t.actual = append(t.intended, later.intended...), append(t.actual, later.actual...)
}

func addStream(to, more *latency.Stream) {
	to.Sent, to.Lost, to.Gaps = to.Sent+more.Sent, to.Lost+more.Lost, to.Gaps+more.Gaps
	to.Duplicates, to.Reordered = to.Duplicates+more.Duplicates, to.Reordered+more.Reordered
}

// distribute is the rate with its distributions.
func (t *rateTimes) distribute() (latency.Rate, error) {
	rate := t.rate
	var errs [2]error
	rate.FromIntended, errs[0] = latency.Distribute(t.intended)
	rate.FromActual, errs[1] = latency.Distribute(t.actual)
	return rate, errors.Join(errs[:]...)
}

func streamOf(sent uint64, t Tally) latency.Stream {
	return latency.Stream{Sent: sent, Lost: sent - t.Received, Duplicates: t.Duplicates, Reordered: t.Reordered, Gaps: t.Gaps}
}
