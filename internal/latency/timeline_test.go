// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lineOf has lengths at some slices, and none elsewhere.
func lineOf(elapsed int64, longest map[int]int64) *TimeLine {
	line := &TimeLine{elapsed, make([]int64, TimeSlices)}
	for slice, length := range longest {
		line.LongestNanoseconds[slice] = length
	}
	return line
}

func TestTimeLineOf(t *testing.T) {
	lengths := map[int64]int64{-5: 1, 0: 7, 9: 8, 10: 3, 599: 4, 600: 2, 999: 5}
	if diff := cmp.Diff(lineOf(600, map[int]int64{0: 8, 1: 3, 59: 5}), TimeLineOf(600, maps.All(lengths))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := TimeLineOf(0, maps.All(lengths)); got != nil {
		t.Errorf("without time the line is %v", got)
	}
}

// TestTimeLinesTogether: no slice of a line is lost, whatever the times are, and none gets what another has.
func TestTimeLinesTogether(t *testing.T) {
	full := func(elapsed, length int64) *TimeLine {
		line := lineOf(elapsed, nil)
		for i := range line.LongestNanoseconds {
			line.LongestNanoseconds[i] = length
		}
		return line
	}
	short := full(600, 1)
	short.LongestNanoseconds[0] = 5
	for name, tc := range map[string]struct{ got, want *TimeLine }{
		"one alone":            {InSequence(lineOf(101, map[int]int64{0: 1, 1: 2, 30: 9, 59: 3})), lineOf(101, map[int]int64{0: 1, 1: 2, 30: 9, 59: 3})},
		"none":                 {InSequence(nil, nil), nil},
		"two":                  {InSequence(lineOf(600, map[int]int64{59: 4}), nil, lineOf(600, map[int]int64{0: 6})), lineOf(1200, map[int]int64{29: 4, 30: 6})},
		"one longer than that": {InSequence(lineOf(10, map[int]int64{0: 5}), full(590, 1)), short},
		"at once":              {AtOnce(lineOf(600, map[int]int64{3: 4, 5: 1}), nil, lineOf(599, map[int]int64{3: 2, 5: 8, 59: 1})), lineOf(600, map[int]int64{3: 4, 5: 8, 59: 1})},
		"nothing at once":      {AtOnce(nil), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTimeLineOfResults: that of what is judged.
func TestTimeLineOfResults(t *testing.T) {
	size, rate := lineOf(60, map[int]int64{1: 1}), lineOf(60, map[int]int64{2: 2})
	best, low := lineOf(60, map[int]int64{3: 3}), lineOf(60, map[int]int64{4: 4})
	trial := func(phase Phase, perSecond uint64, line *TimeLine) Trial {
		return Trial{Phase: phase, Outcome: Outcome{Verdict: Passed}, Rate: Rate{PerSecond: perSecond, TimeLine: line}}
	}
	for name, tc := range map[string]struct {
		result Result
		want   *TimeLine
	}{
		"sizes":                     {Result{Sizes: []Size{{TimeLine: size}, {}}}, size},
		"rates":                     {Result{Sizes: []Size{{TimeLine: size}}, Rates: []Rate{{TimeLine: rate}}}, rate},
		"a search":                  {Result{Rates: []Rate{{TimeLine: rate}}, Load: &Load{BestPass: 2, Trials: []Trial{trial(PhaseLow, 1, low), trial(PhaseSearch, 2, best)}}}, best},
		"one that found no rate":    {Result{Load: &Load{Trials: []Trial{trial(PhaseLow, 1, low)}}}, low},
		"one without a trial":       {Result{Load: &Load{}}, nil},
		"one of an earlier version": {Result{Sizes: []Size{{}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.result.TimeLine()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
