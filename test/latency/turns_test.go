// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// TestJudgeRatio: an interval within the bound shows that it holds, one beyond it that it does not, and any other nothing.
func TestJudgeRatio(t *testing.T) {
	for name, tc := range map[string]struct {
		low, high float64
		want      row
	}{
		"within":        {0.985, 1.015, row{holds: true}},
		"at the bounds": {0.9800001, 1.0199999, row{holds: true}},
		"above":         {1.021, 1.03, row{why: beyond}},
		"below":         {0.90, 0.979, row{why: beyond}},
		"too high":      {0.99, 1.021, row{why: tooWide}},
		"too low":       {0.979, 1.01, row{why: tooWide}},
		"both":          {0.5, 2, row{why: tooWide}},
	} {
		tc.want.bound = "2 %"
		var got row
		got.judgeRatio(latency.Ratio{Value: 1, Low: tc.low, High: tc.high}, besideBound)
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(row{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestBlame: only what is too wide is for a busy machine to answer for, and only where it was busy.
func TestBlame(t *testing.T) {
	for share, want := range map[float64]string{
		0.019: tooWide, 0.02: tooWide + ": the machine was busy (some program waited for a CPU in 2 % of the time)",
		0.49: tooWide + ": the machine was busy (some program waited for a CPU in 49 % of the time)",
	} {
		rows := []row{{holds: true}, {why: tooWide}, {why: beyond}}
		blame(rows, share)
		if got := []string{rows[0].why, rows[1].why, rows[2].why}; !cmp.Equal(got, []string{"", want, beyond}) {
			t.Errorf("%g: %q", share, got)
		}
	}
}

func TestParsePressure(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"some avg10=49.81 avg60=59.23 avg300=64.39 total=468098425\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n": 468098425 * time.Microsecond,
		"some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n":                                                            0,
		"": unknownPressure, "full avg10=0.00 total=7\n": unknownPressure, "some avg10=0.00\n": unknownPressure,
		"some total=9999999999999999\n": unknownPressure, "some total=-1\n": unknownPressure,
	} {
		if got := parsePressure(text); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
}

func FuzzParsePressure(f *testing.F) {
	for _, text := range []string{"some avg10=49.81 total=468098425\n", "some total=999999999999999", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got := parsePressure(text); got < 0 && got != unknownPressure {
			t.Errorf("%q: %s", text, got)
		}
	})
}

// TestInTurns: each measures once in a round, and who goes first changes.
func TestInTurns(t *testing.T) {
	var order strings.Builder
	measure := func(name string) func() (int64, error) {
		return func() (int64, error) {
			order.WriteString(name)
			return int64(order.Len()), nil
		}
	}
	ours, theirs, err := inTurns(3, measure("a"), measure("b"))
	if err != nil || order.String() != "abbaab" || !cmp.Equal(ours, []int64{1, 4, 5}) || !cmp.Equal(theirs, []int64{2, 3, 6}) {
		t.Errorf("%s: %d, %d, %v", order.String(), ours, theirs, err)
	}
	broken := errors.New("no answer")
	if _, _, err := inTurns(3, measure("a"), func() (int64, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func TestDelayRow(t *testing.T) {
	const ms = int64(time.Millisecond)
	got, err := delayRow(5*time.Millisecond, []int64{5*ms + 1000, 5*ms + 2000, 5 * ms, 5*ms - 1000, 5*ms + 40_000})
	want := row{
		what: "delay that netem added to the fastest round trip, in 5 turns", known: "5ms", measured: "5.001ms", off: "+0.02 % (-0.02 %..+0.80 %)", bound: "1 %", holds: true,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{})); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := delayRow(time.Millisecond, []int64{ms, ms, ms, ms, 2 * ms}); err != nil || got.holds || got.why != tooWide {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := delayRow(time.Millisecond, []int64{ms, -1, ms, ms, ms}); err == nil || !strings.Contains(err.Error(), "a delay of 1ms more") {
		t.Errorf("a delay that took less than no time: %v", err)
	}
}
