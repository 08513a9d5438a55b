// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build amd64 || arm64

package jitter

import (
	"cmp"
	"iter"
	"math"
	"math/bits"
	"slices"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// worstKept is how many of the longest interruptions a result names.
const worstKept = 64

// clock turns readings of the cycle counter into nanoseconds of CLOCK_MONOTONIC.
type clock struct {
	// hertz is the frequency of the counter.
	hertz float64
	// counter and nanoseconds are one moment on both.
	counter     uint64
	nanoseconds int64
}

// length of a number of ticks in nanoseconds.
func (c clock) length(ticks uint64) int64 { return int64(float64(ticks) * 1e9 / c.hertz) }

// at is the moment of a reading.
func (c clock) at(counter uint64) int64 {
	return c.nanoseconds + int64(float64(int64(counter-c.counter))*1e9/c.hertz)
}

// summarize turns the record of one CPU into its result.
func summarize(cpu int, s *spinState, gaps []gap, c clock) (CPUResult, error) {
	recorded := min(s.interruptions, uint64(len(gaps)))
	gaps = gaps[:recorded]
	duration := c.length(s.finish - s.begin)
	result := CPUResult{
		CPU: cpu, DurationNanoseconds: duration, Loops: s.loops,
		LoopNanoseconds: float64(s.shortest) * 1e9 / c.hertz,
		Interruptions:   s.interruptions, NotRecorded: s.interruptions - recorded,
		InterruptionsPerSecond: float64(s.interruptions) / (float64(duration) / 1e9),
	}
	worst := longest(gaps)
	for _, g := range worst {
		result.Worst = append(result.Worst, Interruption{
			AtNanoseconds: c.length(g.at - s.begin), LengthNanoseconds: c.length(g.length), ClockNanoseconds: c.at(g.at),
		})
	}
	result.TimeLine = latency.TimeLineOf(duration, func(yield func(int64, int64) bool) {
		for _, g := range gaps {
			if !yield(c.length(g.at-s.begin), c.length(g.length)) {
				return
			}
		}
	})
	lengths := sortedLengths(gaps)
	var stolen uint64
	for _, ticks := range lengths {
		// What one turn of the loop takes anyway is not stolen.
		stolen += ticks - min(s.shortest, ticks)
	}
	result.StolenNanoseconds = c.length(stolen)
	result.StolenPartsPerMillion = 1e6 * float64(stolen) / float64(s.finish-s.begin)
	if len(lengths) > 0 {
		result.MaximumNanoseconds = c.length(lengths[len(lengths)-1])
	}
	result.OverInterruptions = overInterruptions(lengths, c)
	result.OverTime = overTime(lengths, s.finish-s.begin, c)
	result.Histogram = histogram(lengths, c)
	var err error
	result.HDR, err = latency.EncodeHDR(nanoseconds(lengths, c))
	return result, err
}

// nanoseconds are lengths in ticks, one after the other.
func nanoseconds(ticks []uint64, c clock) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for _, length := range ticks {
			if !yield(c.length(length)) {
				return
			}
		}
	}
}

// longest are the longest gaps in the order of time.
func longest(gaps []gap) []gap {
	byLength := slices.Clone(gaps)
	slices.SortFunc(byLength, func(a, b gap) int { return cmp.Compare(b.length, a.length) })
	worst := slices.Clone(byLength[:min(worstKept, len(byLength))])
	slices.SortFunc(worst, func(a, b gap) int { return cmp.Compare(a.at, b.at) })
	return worst
}

func sortedLengths(gaps []gap) []uint64 {
	lengths := make([]uint64, len(gaps))
	for i, g := range gaps {
		lengths[i] = g.length
	}
	slices.Sort(lengths)
	return lengths
}

// overInterruptions are the nearest-rank percentiles of the lengths, those that so many interruptions carry.
func overInterruptions(sorted []uint64, c clock) []Percentile {
	var all []Percentile
	for _, percent := range latency.Ladder() {
		if uint64(len(sorted)) < latency.Samples(percent) {
			break
		}
		rank := int(math.Ceil(percent / 100 * float64(len(sorted))))
		all = append(all, Percentile{percent, c.length(sorted[max(rank, 1)-1])})
	}
	return all
}

// overTime are the percentiles over moments: the longest gaps whose time together exceeds the share of time that
// the percentile leaves. They describe the time that was measured as it was, whatever the number of gaps, and estimate nothing.
func overTime(sorted []uint64, duration uint64, c clock) []Percentile {
	all := make([]Percentile, 0, len(latency.Ladder()))
	for _, percent := range latency.Ladder() {
		left := (100 - percent) / 100 * float64(duration)
		all = append(all, Percentile{percent, c.length(momentLength(sorted, left))})
	}
	return all
}

// momentLength is the longest gap that is reached when the longest gaps have used up the time left.
func momentLength(sorted []uint64, left float64) uint64 {
	for _, length := range slices.Backward(sorted) {
		if left -= float64(length); left < 0 {
			return length
		}
	}
	return 0
}

// histogram counts lengths by powers of two of nanoseconds, without empty buckets at both ends.
func histogram(sorted []uint64, c clock) []Bucket {
	var buckets []Bucket
	for _, ticks := range sorted {
		power := bits.Len64(uint64(c.length(ticks)))
		from := int64(1) << max(power-1, 0)
		for len(buckets) > 0 && buckets[len(buckets)-1].FromNanoseconds < from {
			last := buckets[len(buckets)-1]
			buckets = append(buckets, Bucket{last.ToNanoseconds, 2 * last.ToNanoseconds, 0})
		}
		if len(buckets) == 0 {
			buckets = append(buckets, Bucket{from, 2 * from, 0})
		}
		buckets[len(buckets)-1].Count++
	}
	return buckets
}
