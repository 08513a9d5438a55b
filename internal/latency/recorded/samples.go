// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package recorded

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// Pinger is a program that has one message under way at a time, and writes how long each took to a file, in nanoseconds, a line for each, in their order.
type Pinger string

const (
	// SfntPingPong is sfnt-pingpong with --raw (src/sfnt-pingpong.c, write_raw_results): half of each round trip, or all of it with --rtt.
	SfntPingPong Pinger = "sfnt-pingpong"
	// ZfUDPPingPong is zfudppingpong of TCPDirect with -w (src/tests/zf_apps/zfudppingpong.c): whole round trips, with and without -f.
	ZfUDPPingPong Pinger = "zfudppingpong"
	// ZfTCPPingPong is zftcppingpong of TCPDirect with -w (src/tests/zf_apps/zftcppingpong.c): the same.
	ZfTCPPingPong Pinger = "zftcppingpong"
	// EfLatency is eflatency of ef_vi with -o (src/tests/ef_vi/eflatency.c, output_results): whole round trips.
	EfLatency Pinger = "eflatency"
)

// Pingers are all of them.
func Pingers() []Pinger { return []Pinger{SfntPingPong, ZfUDPPingPong, ZfTCPPingPong, EfLatency} }

// Transport is what carries the messages of a pinger; "" where its files do not tell.
func (p Pinger) Transport() latency.Transport {
	return map[Pinger]latency.Transport{ZfUDPPingPong: latency.UDP, ZfTCPPingPong: latency.TCP, EfLatency: latency.UDP}[p]
}

// WritesHalves reports whether its files have half of each round trip, unless it was told otherwise.
func (p Pinger) WritesHalves() bool { return p == SfntPingPong }

const (
	// mostSamples is how many samples a file may have: a minute of round trips that take 2 µs has 30 million.
	mostSamples = 50_000_000
	// longestSample is longer than any of these programs waits for an answer.
	longestSample = 100 * time.Second
)

// ParseSamples reads a file of a pinger: latencies in nanoseconds, in the order in which they were taken. The text may be anybody's.
func ParseSamples(text []byte) ([]int64, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errors.New("the file is empty")
	}
	text, isWhole := bytes.CutSuffix(text, []byte("\n"))
	if !isWhole {
		return nil, errors.New("its last line has no end: the file is cut short, and its last number may be")
	}
	samples := make([]int64, 0, min(mostSamples, bytes.Count(text, []byte("\n"))+1))
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		number, err := strconv.ParseInt(string(bytes.TrimSuffix(line, []byte("\r"))), 10, 64)
		if err != nil || number < 0 || number > longestSample.Nanoseconds() {
			return nil, fmt.Errorf("line %d is %.40q, and not a number of nanoseconds up to %s", len(samples)+1, line, longestSample)
		}
		if len(samples) == mostSamples {
			return nil, fmt.Errorf("it has more than %d lines", mostSamples)
		}
		samples = append(samples, number)
	}
	return samples, nil
}

// SamplesOf are samples as halves, or as whole round trips, of which the file has the one or the other.
func SamplesOf(samples []int64, hasHalves, wantHalves bool) []int64 {
	if hasHalves == wantHalves {
		return samples
	}
	as := slices.Clone(samples)
	for i := range as {
		if wantHalves {
			as[i] /= 2
		} else {
			as[i] *= 2
		}
	}
	return as
}
