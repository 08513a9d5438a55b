// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSizePairs(t *testing.T) {
	const none = "-"
	// A size is told by its bytes, and by its turn where it is there twice.
	words := func(s *Size) string {
		if s == nil {
			return none
		}
		return strconv.Itoa(s.Bytes) + "/" + strconv.FormatUint(s.Lost, 10)
	}
	of := func(sizes []int) *Result {
		r := &Result{}
		for i, bytes := range sizes {
			r.Sizes = append(r.Sizes, Size{Bytes: bytes, Lost: uint64(i)})
		}
		return r
	}
	cases := map[string]struct {
		before, after []int
		want          []string
	}{
		"the same":              {[]int{1, 64}, []int{1, 64}, []string{"1/0 1/0", "64/1 64/1"}},
		"another order":         {[]int{1, 64}, []int{64, 1}, []string{"1/0 1/1", "64/1 64/0"}},
		"other sizes":           {[]int{1, 64}, []int{64, 256}, []string{"1/0 -", "64/1 64/0", "- 256/1"}},
		"a size twice":          {[]int{64, 64}, []int{64, 64}, []string{"64/0 64/0", "64/1 64/1"}},
		"a size once and twice": {[]int{64}, []int{64, 64}, []string{"64/0 64/0", "- 64/1"}},
		"none":                  {nil, nil, []string{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pairs := SizePairs(of(tc.before), of(tc.after))
			got := make([]string, 0, len(pairs))
			for _, pair := range pairs {
				got = append(got, words(pair.Before)+" "+words(pair.After))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRatePairs(t *testing.T) {
	before := &Result{Rates: []Rate{{PerSecond: 10, Bytes: 64}, {PerSecond: 20, Bytes: 64}}}
	after := &Result{Rates: []Rate{{PerSecond: 20, Bytes: 64}, {PerSecond: 10, Bytes: 32}}}
	want := []Pair[Rate]{{Before: &before.Rates[0]}, {&before.Rates[1], &after.Rates[0]}, {After: &after.Rates[1]}}
	if diff := cmp.Diff(want, RatePairs(before, after)); diff != "" {
		t.Error(diff)
	}
}

func TestPercentilesOverlap(t *testing.T) {
	cases := map[string]struct {
		before, after Percentile
		want          bool
	}{
		"one within the other": {Percentile{LowNanoseconds: 10, HighNanoseconds: new(int64(20))}, Percentile{LowNanoseconds: 12, HighNanoseconds: new(int64(15))}, true},
		"ends that touch":      {Percentile{LowNanoseconds: 10, HighNanoseconds: new(int64(20))}, Percentile{LowNanoseconds: 20, HighNanoseconds: new(int64(25))}, true},
		"apart":                {Percentile{LowNanoseconds: 10, HighNanoseconds: new(int64(20))}, Percentile{LowNanoseconds: 21, HighNanoseconds: new(int64(25))}, false},
		"no upper end below":   {Percentile{LowNanoseconds: 10}, Percentile{LowNanoseconds: 21, HighNanoseconds: new(int64(25))}, true},
		"no upper end above":   {Percentile{LowNanoseconds: 10, HighNanoseconds: new(int64(20))}, Percentile{LowNanoseconds: 21}, false},
		"no upper ends":        {Percentile{LowNanoseconds: 10}, Percentile{LowNanoseconds: 1e9}, true},
	}
	for name, tc := range cases {
		if got, back := tc.before.Overlaps(&tc.after), tc.after.Overlaps(&tc.before); got != tc.want || back != tc.want {
			t.Errorf("%s: %t, and %t the other way round", name, got, back)
		}
	}
}

func TestLoadsOverlap(t *testing.T) {
	of := func(best, lowest uint64, confirmed bool, why Verdict) *Load {
		return &Load{BestPass: best, LowestFail: lowest, Confirmed: confirmed, Why: Outcome{Verdict: why}}
	}
	before := of(1000, 1010, true, Failed)
	cases := map[string]struct {
		after *Load
		want  bool
	}{
		"the same":                           {of(1000, 1010, true, Failed), true},
		"a rate in common":                   {of(1009, 1020, true, Failed), true},
		"higher":                             {of(1010, 1020, true, Failed), false},
		"higher, not confirmed":              {of(1010, 1020, false, Failed), true},
		"higher, and no end":                 {of(2000, 0, true, ""), false},
		"lower":                              {of(900, 1000, true, Failed), false},
		"lower, not confirmed":               {of(900, 1000, false, Failed), false},
		"lower, where the generator ended":   {of(900, 1000, true, Inconclusive), true},
		"no rate passed, and the lowest did": {of(0, 100, false, Failed), false},
	}
	for name, tc := range cases {
		if got, back := before.Overlaps(tc.after), tc.after.Overlaps(before); got != tc.want || back != tc.want {
			t.Errorf("%s: %t, and %t the other way round", name, got, back)
		}
	}
}

func TestIsAnswered(t *testing.T) {
	cases := map[string]struct {
		percent        float64
		answered, lost uint64
		want           bool
	}{
		"all":                  {99, 1000, 0, true},
		"as many as lie above": {99, 990, 10, true},
		"one more":             {99, 989, 11, false},
		"half of them":         {50, 10, 10, true},
		"none":                 {50, 0, 1, false},
	}
	for name, tc := range cases {
		if got := IsAnswered(tc.percent, tc.answered, tc.lost); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
