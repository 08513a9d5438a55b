// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux && (amd64 || arm64)

package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseOslat(t *testing.T) {
	const output = "oslat V 2.40\nTotal runtime: \t\t2 seconds\n\n        Core:\t 1\nCounter Freq:\t 2597 (Mhz)\n" +
		"    001 (us):\t 1000\n    002 (us):\t 435\n    005 (us):\t 14\n    006 (us):\t 51 (including overflows)\n" +
		"     Minimum:\t 1 (us)\n     Average:\t 1.001 (us)\n     Maximum:\t 1252 (us)\n     Max-Min:\t 1251 (us)\n"
	got, err := parseOslat(output, 5, 1500*time.Nanosecond)
	if err != nil {
		t.Fatal(err)
	}
	want := turn{loopNanoseconds: 1, interruptions: 51, maximumNanoseconds: 1_252_000}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(turn{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, broken := range []string{"", "Maximum: 3 (us)\n", "    xyz (us):\t 3\n"} {
		if _, err := parseOslat(broken, 5, time.Second); err == nil {
			t.Errorf("%q is understood", broken)
		}
	}
}

func TestJudge(t *testing.T) {
	theirs := turn{loopNanoseconds: 20, interruptions: 1000, maximumNanoseconds: 50_000}
	cases := map[string]struct {
		ours turn
		want bool
	}{
		"alike":              {turn{9, 1050, 80_000}, true},
		"too many":           {turn{9, 1200, 50_000}, false},
		"too few":            {turn{9, 800, 50_000}, false},
		"another order":      {turn{9, 1000, 600_000}, false},
		"a costly loop":      {turn{21, 1000, 50_000}, false},
		"nothing was longer": {turn{9, 1000, 0}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := judge(tc.ours, theirs); (err == nil) != tc.want {
				t.Errorf("the judgement is %v", err)
			}
		})
	}
}
