// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package traffic

import (
	"encoding/binary"
	"os"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// Phase is what a measurement does.
type Phase uint64

// What the program writes into the memory that it shows.
const (
	PhaseWarmUp Phase = iota + 1
	// PhaseOneAtATime has one message under way at a time.
	PhaseOneAtATime
	// PhaseOnSchedule sends whatever comes back.
	PhaseOnSchedule
)

// Progress is how far a measurement is: what was seen so far of a size or rate, which more samples may still change.
type Progress struct {
	Phase Phase
	Bytes int
	// PerSecond is the rate of messages on a schedule; 0 for those that go one at a time.
	PerSecond uint64
	// Sent messages; of those one at a time, Lost had no answer, and of those on a schedule, Late left more than an interval after their time.
	Sent, Lost, Late uint64
	// Samples are the round trips that were taken, and LongestNanoseconds the longest of them.
	Samples            uint64
	LongestNanoseconds int64
	// Percentiles of round trips that so many samples carry, each not below what was seen and at most a 32nd above it. Reading the clock is part of them.
	Percentiles []latency.Percentile
}

const (
	// showEvery is how often is looked at what the program shows.
	showEvery = time.Second
	// The memory has shownFields numbers of 8 bytes, which are those of the program, and then buckets.
	shownFields, shownBuckets = 9, 1152
	shownSize                 = 8 * (shownFields + shownBuckets)
	// Times below exactBelow have a bucket each; from there on, as many as perPower share a power of two.
	exactBelow, perPower = 64, 32
)

// parseShown reads what the program shows; false where it begins another part just now, has not begun, or shows what it never writes.
func parseShown(memory []byte) (Progress, bool) {
	if len(memory) != shownSize {
		return Progress{}, false
	}
	field := func(i int) uint64 { return binary.NativeEndian.Uint64(memory[8*i:]) }
	p := Progress{
		Phase: Phase(field(1)), Bytes: int(field(2)), PerSecond: field(3), Sent: field(4), Lost: field(6), Late: field(7), LongestNanoseconds: int64(field(8)),
	}
	if field(0)%2 != 0 || p.Phase < PhaseWarmUp || p.Phase > PhaseOnSchedule {
		return Progress{}, false
	}
	// The counts of the buckets are the samples: the program may have taken another one since it wrote how many there are.
	counts := make([]uint64, shownBuckets)
	for i := range counts {
		counts[i] = field(shownFields + i)
		p.Samples += counts[i]
	}
	for _, percent := range latency.Ladder() {
		if p.Samples >= latency.Samples(percent) {
			p.Percentiles = append(p.Percentiles, latency.Percentile{Percent: percent, Nanoseconds: shownPercentile(counts, p.Samples, percent)})
		}
	}
	return p, true
}

// shownPercentile is the largest value of the bucket that has a percentile.
func shownPercentile(counts []uint64, samples uint64, percent float64) int64 {
	rank, passed := uint64(float64(samples)*percent/100), uint64(0)
	for i, count := range counts {
		if passed += count; passed > rank {
			return largestIn(i)
		}
	}
	return largestIn(len(counts) - 1)
}

// largestIn is the largest time that the program counts in a bucket.
func largestIn(bucket int) int64 {
	if bucket < exactBelow {
		return int64(bucket)
	}
	shift := bucket/perPower - 1
	return int64(bucket-perPower*shift+1)<<shift - 1
}

// watchShown calls progress with what the program shows until the measurement has ended, and then closes done.
func watchShown(file *os.File, ended <-chan struct{}, done chan<- struct{}, progress func(Progress)) {
	defer close(done)
	memory, again := make([]byte, shownSize), make([]byte, 8)
	ticker := time.NewTicker(showEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ended:
			return
		case <-ticker.C:
		}
		if _, err := file.ReadAt(memory, 0); err != nil {
			return
		}
		// What was read is of one part when none has begun meanwhile.
		if _, err := file.ReadAt(again, 0); err != nil || string(again) != string(memory[:8]) {
			continue
		}
		if p, whole := parseShown(memory); whole {
			progress(p)
		}
	}
}
