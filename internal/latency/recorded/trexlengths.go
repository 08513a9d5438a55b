// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package recorded

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// step is a range of latencies in microseconds, without its upper end. TRex leaves out parts of a microsecond, so that what it counts at 12 took 12 to 13.
type step struct{ from, to int64 }

// lengths are latencies of all groups by steps: coarse ones that every TRex has, and fine ones of the HDR histograms.
type lengths struct{ coarse, fine map[step]uint64 }

// addCoarse adds the steps of a histogram, by the lowest microseconds of each.
func (l *lengths) addCoarse(histogram map[string]count) error {
	for key, number := range histogram {
		from, err := strconv.ParseInt(key, 10, 40)
		if err != nil || from < 0 || (from > 0 && from != widthOf(from)*(from/widthOf(from))) || (from > 0 && from < 10) {
			return fmt.Errorf("%.20q is no step: they begin at 0, 10, 20 to 90, 100, 200 and so on", key)
		}
		l.coarse[step{from, from + widthOf(from)}] += uint64(number)
	}
	return nil
}

// widthOf is how wide the coarse step is that begins at so many microseconds: as the power of ten below, and 10 for the first.
func widthOf(from int64) int64 {
	width := int64(10)
	for width <= from/10 {
		width *= 10
	}
	return width
}

const (
	// longestHDR is the longest text of an HDR histogram that is read. That of TRex, with a counter of up to 9 bytes for each of 15360 lengths, takes less.
	longestHDR = 256 << 10
	// highestHDR is the longest latency that an HDR histogram may be for, in microseconds: 100 s. That of TRex is for 10 s (src/time_histogram.cpp).
	highestHDR = 100_000_000
)

// addFine adds the counters of an HDR histogram of microseconds; "" for none.
func (l *lengths) addFine(text string) error {
	if text == "" {
		return nil
	}
	if len(text) > longestHDR {
		return fmt.Errorf("it has %d bytes, more than %d", len(text), longestHDR)
	}
	histogram, err := latency.DecodeHDR(text)
	if err != nil {
		return err
	}
	if histogram.HighestTrackableValue() > highestHDR {
		return fmt.Errorf("it is for up to %d µs, more than %d", histogram.HighestTrackableValue(), highestHDR)
	}
	for _, bar := range histogram.Distribution() {
		if bar.Count > 0 {
			l.fine[step{bar.From, bar.To + 1}] += uint64(bar.Count)
		}
	}
	return nil
}

// distributions are the latencies at the lower and at the upper ends of their steps; none without samples. The steps are the fine ones where these count as
// many messages as the coarse ones, and otherwise the coarse ones: TRex's client clears only those (trex_stl_stats.py, clear_stats and get_stats), and a
// histogram may lack a group, or what took longer than it is for. With fine steps, the lower ends have the HDR histogram of the upper ones, in nanoseconds.
func (l *lengths) distributions() (low, high latency.Distribution, err error) {
	coarse, err := total64(l.coarse)
	if err != nil {
		return low, high, err
	}
	if fine, err := total64(l.fine); err != nil || fine == 0 || fine != coarse {
		return distributionsOf(l.coarse, coarse)
	}
	if low, high, err = distributionsOf(l.fine, coarse); err != nil {
		return low, high, err
	}
	low.HDR, err = latency.EncodeHDRCounts(func(yield func(int64, int64) bool) {
		for one, number := range l.fine {
			if !yield(one.to*int64(time.Microsecond), int64(number)) {
				return
			}
		}
	})
	return low, high, err
}

// total64 is how many messages steps have together; an error for more than can be.
func total64(steps map[step]uint64) (uint64, error) {
	samples := uint64(0)
	for _, number := range steps {
		if number > math.MaxInt64/100 || samples+number > math.MaxInt64/100 {
			return 0, errors.New("the histogram has more messages than can be")
		}
		samples += number
	}
	return samples, nil
}

// inOrder are steps from the shortest on.
func inOrder(steps map[step]uint64) ([]step, error) {
	all := slices.SortedFunc(maps.Keys(steps), func(a, b step) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	for i := 1; i < len(all); i++ {
		if all[i-1].to > all[i].from {
			return nil, errors.New("the HDR histograms of groups have steps of different widths")
		}
	}
	return all, nil
}

// distributionsOf are latencies at the lower and at the upper ends of their steps, which have so many samples together; none without samples.
func distributionsOf(steps map[step]uint64, samples uint64) (low, high latency.Distribution, err error) {
	all, err := inOrder(steps)
	if err != nil || samples == 0 {
		return low, high, err
	}
	low, high = latency.Distribution{Samples: samples, Percentiles: []latency.Percentile{}}, latency.Distribution{Samples: samples, Percentiles: []latency.Percentile{}}
	ends := func(rank uint64) (int64, int64) {
		for _, one := range all {
			if rank < steps[one] {
				return one.from * int64(time.Microsecond), one.to * int64(time.Microsecond)
			}
			rank -= steps[one]
		}
		return 0, 0
	}
	low.MinimumNanoseconds, high.MinimumNanoseconds = ends(0)
	low.MaximumNanoseconds, high.MaximumNanoseconds = ends(samples - 1)
	low.MedianNanoseconds, high.MedianNanoseconds = ends(samples / 2)
	for _, percent := range latency.Ladder() {
		if samples < latency.Samples(percent) {
			continue
		}
		rank := min(uint64(float64(samples)*percent/100+1e-9), samples-1)
		from, to := ends(rank)
		one := latency.Percentile{Percent: percent, Nanoseconds: from, LowNanoseconds: from, HighNanoseconds: &to, Beyond: samples - 1 - rank}
		low.Percentiles = append(low.Percentiles, one)
		one.Nanoseconds = to
		high.Percentiles = append(high.Percentiles, one)
	}
	return low, high, nil
}
