// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package traffic

import (
	"fmt"
	"math"
	"net"
	"strconv"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

const (
	// unsteady is how far two steady clocks may drift apart, as a share; NTP changes the rate of one by at most half of it.
	unsteady = 0.001
	// stepped is by how much the wall clock must jump to be a step.
	stepped = time.Millisecond
)

// reasons are those of words that the program ends with.
func reasons() map[string]latency.Reason {
	return map[string]latency.Reason{
		"Unreachable": latency.ReasonUnreachable, "Stranger": latency.ReasonStranger, "Refused": latency.ReasonRefused, "Vanished": latency.ReasonPeerVanished,
		"Silent": latency.ReasonNoAnswer, "WrongAnswer": latency.ReasonWrongAnswer, "Clock": latency.ReasonClockUnsteady,
		"Unstamped": latency.ReasonUnstamped,
	}
}

// resultOf makes a result of what the program printed. One that did not come to its end has what was found before, and an outcome.
func resultOf(kind latency.Kind, request *Request, here latency.Host, output *Output, budget latency.Budget) (*latency.Result, error) {
	result := &latency.Result{
		Version: latency.Version, Kind: kind,
		Setup: latency.Setup{
			Transport: request.Transport, Waiting: request.Waiting, Peer: net.JoinHostPort(request.Host, strconv.Itoa(request.Port)),
			RoundTrip: request.RoundTrip, ClockNanoseconds: output.ClockNanoseconds,
			Timestamps: "taken by the program with CLOCK_MONOTONIC, before it sends and after it has received; not by the NIC",
			Client:     here,
			Server:     latency.Host{Name: output.ServerName, Kernel: output.ServerKernel, CPU: output.ServerCPU, Environment: output.ServerEnvironment},
		},
		Path:        pathOf(output),
		Preemptions: output.Client.Preemptions, ServerPreemptions: output.Server.Preemptions, PageFaults: output.Client.Faults, ServerPageFaults: output.Server.Faults,
		ElapsedNanoseconds: output.Steady,
	}
	if request.Transport == latency.Multicast {
		result.Setup.Group = request.Group
	}
	for i := range output.Sizes {
		one, err := sizeOf(request, &output.Sizes[i], output.ClockNanoseconds)
		if err != nil {
			return nil, fmt.Errorf("%d bytes: %w", output.Sizes[i].Bytes, err)
		}
		result.Sizes = append(result.Sizes, one)
	}
	for i := range output.Streams {
		one, err := timesOf(&output.Streams[i], wayBack(result, request.RoundTrip)).distribute()
		if err != nil {
			return nil, fmt.Errorf("%d messages a second: %w", output.Streams[i].Rate, err)
		}
		result.Rates = append(result.Rates, one)
	}
	if output.End != done {
		reason, known := reasons()[output.End]
		if !known {
			return nil, fmt.Errorf("the measurement was not made: %s: %s", output.End, strconv.Quote(output.Message))
		}
		result.Outcome = latency.Outcome{Verdict: latency.Inconclusive, Reason: reason, Message: printable(output.Message)}
		return result, nil
	}
	judge(result, output, budget)
	return result, nil
}

// judge is the outcome of what has come to its end. A server that says of its CPU what none of this release does is none, and whatever it answered is worth nothing.
func judge(result *latency.Result, output *Output, budget latency.Budget) {
	counts, err := parseCounts(output.ServerCounts, output.ServerCPU)
	if err != nil {
		result.Outcome = latency.Outcome{
			Verdict: latency.Inconclusive, Reason: latency.ReasonStranger,
			Message: "what the server says of its CPU is not what one of this release says: " + err.Error(),
		}
		return
	}
	result.ServerCounts = []latency.Counts{counts}
	result.Outcome = latency.Judge(result, budget)
	judgeClocks(result, output)
}

// wayBackRemark says that the estimate of one way comes out below nothing for at least one answer in a hundred, so that low percentiles say little; "" where it
// does not.
func wayBackRemark(r *latency.Rate) string {
	taken := r.FromIntended.Samples
	if r.BelowWayBack == 0 || r.BelowWayBack < taken/100 {
		return ""
	}
	return fmt.Sprintf("%d messages a second: %d of %d answers took less in all than %s, the mean half of a round trip before, which is taken off "+
		"as the way back; they count as 0: --report round-trip tells what was measured", r.PerSecond, r.BelowWayBack, taken, time.Duration(r.WayBackNanoseconds))
}

// sizeOf is what was found with messages of one size; reading the clock has a cost in nanoseconds.
func sizeOf(request *Request, times *SizeTimes, cost int64) (latency.Size, error) {
	taken := latencies(times.Times, cost, request.RoundTrip)
	line := timeLineOf(times, taken)
	d, err := latency.Distribute(taken)
	if err != nil {
		return latency.Size{}, err
	}
	stamps, err := stampsOf(request, times, cost)
	if err != nil {
		return latency.Size{}, fmt.Errorf("stamps: %w", err)
	}
	return latency.Size{Bytes: times.Bytes, Lost: times.Lost, Stray: times.Stray, Distribution: d, Stamps: stamps, TimeLine: line}, nil
}

// printable is a text of another program without what a terminal would obey.
func printable(text string) string {
	quoted := strconv.QuoteToASCII(text)
	return quoted[1 : len(quoted)-1]
}

// partName is what was measured in a part.
func (o *Output) partName(part int) string {
	if part < len(o.Sizes) {
		return fmt.Sprintf("messages of %d bytes", o.Sizes[part].Bytes)
	}
	return fmt.Sprintf("%d messages a second", o.Streams[part-len(o.Sizes)].Rate)
}

// fewestInPart is the number of messages from which on a part of a measurement has a path of its own: the question for the counters between two parts is counted, too,
// as some segments of TCP.
const fewestInPart = 100

// pathOf is the path of all messages, unless those of one size or one rate went another way.
func pathOf(output *Output) latency.Path {
	whole := latency.PathOf(endOf(output.Client), endOf(output.Server))
	for i, part := range output.Parts {
		if min(part.Client.Messages, part.Server.Messages) < fewestInPart {
			continue
		}
		whole = whole.WithPart(output.partName(i), latency.PathOf(endOf(part.Client), endOf(part.Server)))
	}
	return whole
}

func endOf(c Counted) latency.PathEnd {
	return latency.EndOf(c.Messages, uint64(max(c.Kernel, 0)), c.Kernel >= 0)
}

// latencies are times without what the clock costs, and without the way back.
func latencies(times []int64, cost int64, roundTrip bool) []int64 {
	all := make([]int64, len(times))
	for i, time := range times {
		all[i] = max(0, time-cost)
		if !roundTrip {
			all[i] /= 2
		}
	}
	return all
}

// timeLineOf is the time line of a size. When each message left is not told: they went one after the other, so that the time of the round trips
// before is the share of the whole time that has passed.
func timeLineOf(s *SizeTimes, latencies []int64) *latency.TimeLine {
	whole := int64(0)
	for _, time := range s.Times {
		whole += time
	}
	return latency.TimeLineOf(s.Elapsed, func(yield func(int64, int64) bool) {
		passed := int64(0)
		for i, time := range s.Times {
			if !yield(int64(float64(passed)/float64(max(1, whole))*float64(s.Elapsed)), latencies[i]) {
				return
			}
			passed += time
		}
	})
}

// judgeClocks doubts a measurement whose clock did not run steadily, and remarks that the wall clock stepped, which changes none.
func judgeClocks(result *latency.Result, output *Output) {
	if output.Raw > 0 && math.Abs(float64(output.Steady)/float64(output.Raw)-1) > unsteady {
		result.Outcome = latency.Outcome{Verdict: latency.Inconclusive, Reason: latency.ReasonClockUnsteady, Message: fmt.Sprintf(
			"over the measurement CLOCK_MONOTONIC went %s and CLOCK_MONOTONIC_RAW %s", time.Duration(output.Steady), time.Duration(output.Raw))}
	}
	if step := time.Duration(output.Wall - output.Steady); step.Abs() > stepped {
		result.Remarks = append(result.Remarks, fmt.Sprintf("the wall clock stepped by %s while this was measured; latencies are taken with another clock", step))
	}
}
