// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

import "iter"

// TimeSlices is how many slices a time line has.
const TimeSlices = 60

// TimeLine says when lengths were longest: the time of a measurement is cut into slices that are equally long.
type TimeLine struct {
	// ElapsedNanoseconds is the time of all slices.
	ElapsedNanoseconds int64 `json:"elapsedNanoseconds"`
	// LongestNanoseconds is the longest of each slice, in the order of time; 0 where there was none.
	LongestNanoseconds []int64 `json:"longestNanoseconds"`
}

// TimeLineOf makes a time line of lengths, each with the moment since the begin at which it began, in nanoseconds. Moments beyond the time
// belong to its first or last slice. It is nil where no time has passed.
func TimeLineOf(elapsed int64, lengths iter.Seq2[int64, int64]) *TimeLine {
	if elapsed <= 0 {
		return nil
	}
	line := &TimeLine{elapsed, make([]int64, TimeSlices)}
	for at, length := range lengths {
		slice := &line.LongestNanoseconds[sliceOf(at, elapsed)]
		*slice = max(*slice, length)
	}
	return line
}

// sliceOf is the slice of a moment.
func sliceOf(at, elapsed int64) int {
	slice := int(float64(at) / float64(elapsed) * TimeSlices)
	return min(max(slice, 0), TimeSlices-1)
}

// InSequence is one time line of several, one after the other, without what was between them; nil where there is none. Those that are nil are left
// out.
func InSequence(lines ...*TimeLine) *TimeLine {
	elapsed := int64(0)
	for _, line := range lines {
		elapsed += line.elapsed()
	}
	return TimeLineOf(elapsed, func(yield func(int64, int64) bool) {
		begin := int64(0)
		for _, line := range lines {
			if !line.each(begin, line.elapsed(), yield) {
				return
			}
			begin += line.elapsed()
		}
	})
}

// AtOnce is one time line of several of the same time, as those of CPUs; nil where there is none. Those that are nil are left out.
func AtOnce(lines ...*TimeLine) *TimeLine {
	elapsed := int64(0)
	for _, line := range lines {
		elapsed = max(elapsed, line.elapsed())
	}
	return TimeLineOf(elapsed, func(yield func(int64, int64) bool) {
		for _, line := range lines {
			if !line.each(0, elapsed, yield) {
				return
			}
		}
	})
}

func (l *TimeLine) elapsed() int64 {
	if l == nil {
		return 0
	}
	return l.ElapsedNanoseconds
}

// each hands over the longest of each slice with the middle of that slice, as if the line began at a moment and took so long. It reports whether it came to
// the end.
func (l *TimeLine) each(begin, elapsed int64, yield func(int64, int64) bool) bool {
	if l == nil {
		return true
	}
	slices := int64(len(l.LongestNanoseconds))
	for i, longest := range l.LongestNanoseconds {
		if !yield(begin+(2*int64(i)+1)*elapsed/(2*slices), longest) {
			return false
		}
	}
	return true
}

// TimeLine is that of what is judged: of the rates, or where there are none of the sizes; of a search, that of the trial by which it is shown. It is nil
// in results of earlier versions.
func (r *Result) TimeLine() *TimeLine {
	if r.Load != nil {
		if trial := r.Load.Shown(); trial != nil {
			return trial.Rate.TimeLine
		}
		return nil
	}
	var lines []*TimeLine
	for i := range r.Rates {
		lines = append(lines, r.Rates[i].TimeLine)
	}
	for i := range r.Sizes {
		if len(r.Rates) == 0 {
			lines = append(lines, r.Sizes[i].TimeLine)
		}
	}
	return InSequence(lines...)
}
