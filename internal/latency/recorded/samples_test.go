// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package recorded

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

func TestParseSamples(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []int64
		err  string
	}{
		"lines":                {"12\n7\n90\n", []int64{12, 7, 90}, ""},
		"without the last end": {"12\n7", nil, "its last line has no end: the file is cut short, and its last number may be"},
		"of another system":    {"12\r\n7\r\n", []int64{12, 7}, ""},
		"nothing":              {"", nil, "the file is empty"},
		"lines without text":   {"\n\n", nil, "the file is empty"},
		"a hole":               {"12\n\n7\n", nil, `line 2 is "", and not a number`},
		"microseconds":         {"1.250\n", nil, `line 1 is "1.250", and not a number`},
		"two columns":          {"64\t1250\n", nil, `line 1 is "64\t1250", and not a number`},
		"negative":             {"12\n-1\n", nil, `line 2 is "-1", and not a number`},
		"too long":             {"100000000001\n", nil, "of nanoseconds up to 1m40s"},
		"a table":              {"#\tsize\tmean\n\t64\t3000\n", nil, "line 1 is"},
		"cut in a character":   {"12\n\xff\xfe\n", nil, "line 2 is"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseSamples([]byte(tc.text))
			if (err != nil) != (tc.err != "") || (err != nil && !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSamplesOf(t *testing.T) {
	samples := []int64{3000, 5001}
	for name, tc := range map[string]struct {
		has, want bool
		samples   []int64
	}{
		"halves of halves": {true, true, []int64{3000, 5001}}, "wholes of wholes": {false, false, []int64{3000, 5001}},
		"halves of wholes": {false, true, []int64{1500, 2500}}, "wholes of halves": {true, false, []int64{6000, 10002}},
	} {
		if diff := cmp.Diff(tc.samples, SamplesOf(samples, tc.has, tc.want)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff([]int64{3000, 5001}, samples); diff != "" {
		t.Errorf("the samples themselves (-want +got):\n%s", diff)
	}
}

func FuzzSamples(f *testing.F) {
	for _, text := range []string{"12\n7\n", "12\r\n", "", "1e9\n", "-0\n", "9223372036854775808\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		samples, err := ParseSamples([]byte(text))
		if err != nil {
			return
		}
		d, err := latency.Distribute(samples)
		if err != nil || d.Samples == 0 || d.MinimumNanoseconds < 0 || d.MaximumNanoseconds > longestSample.Nanoseconds() {
			t.Errorf("%q: %+v, %v", text, d, err)
		}
	})
}
