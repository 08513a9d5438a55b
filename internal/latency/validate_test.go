// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

import "testing"

// some is a distribution as a measurement gives it.
func some(t *testing.T) Distribution {
	t.Helper()
	d, err := Distribute([]int64{4, 6, 5})
	if err != nil {
		t.Fatal(err)
	}
	d.Percentiles = []Percentile{{Percent: 50, Nanoseconds: 5, LowNanoseconds: 4, HighNanoseconds: new(int64(6))}}
	return d
}

func TestValidate(t *testing.T) {
	sizes := func(spoil func(*Size)) *Result {
		size := Size{Bytes: 64, Distribution: some(t)}
		spoil(&size)
		return &Result{Kind: KindPingPong, Sizes: []Size{size}}
	}
	rates := func(spoil func(*Rate)) *Result {
		rate := Rate{PerSecond: 100, AchievedPerSecond: 99, Bytes: 64, Load: Stream{Sent: 10, Lost: 10}, AnswersWanted: 5, AnswersLost: 5, FromIntended: some(t), FromActual: some(t)}
		spoil(&rate)
		return &Result{Kind: KindRateSweep, Rates: []Rate{rate}}
	}
	loads := func(spoil func(*Load)) *Result {
		load := Load{BestPass: 100, LowestFail: 101, Trials: []Trial{{Rate: Rate{PerSecond: 100}}}}
		spoil(&load)
		return &Result{Kind: KindLoadSearch, Load: &load}
	}
	cases := map[string]struct {
		result *Result
		want   string
	}{
		"sizes":                      {sizes(func(*Size) {}), ""},
		"rates":                      {rates(func(*Rate) {}), ""},
		"a search":                   {loads(func(*Load) {}), ""},
		"a search without a fail":    {loads(func(l *Load) { l.LowestFail = 0 }), ""},
		"an estimate below zero":     {rates(func(r *Rate) { r.FromIntended.MinimumNanoseconds = -7 }), ""},
		"another kind":               {&Result{Kind: "Walk"}, `its kind is "Walk"`},
		"no sizes":                   {&Result{Kind: KindPingPong}, "it has no sizes"},
		"no rates":                   {&Result{Kind: KindRateSweep}, "it has no rates"},
		"no search":                  {&Result{Kind: KindLoadSearch}, "it has no trials"},
		"no trials":                  {&Result{Kind: KindLoadSearch, Load: &Load{}, Outcome: Outcome{Reason: ReasonUnreachable}}, `it has no trials, since it ended as "Unreachable"`},
		"a reason for terminals":     {&Result{Kind: KindPingPong, Outcome: Outcome{Reason: "\x1b[2J"}}, `it has no sizes, since it ended as "\x1b[2J"`},
		"a size below zero":          {sizes(func(s *Size) { s.Bytes = -1 }), "it has a message of -1 bytes"},
		"a minimum above the others": {sizes(func(s *Size) { s.Distribution.MinimumNanoseconds = 7 }), "64 bytes: the shortest of its latencies is 7 ns and the longest 6 ns"},
		"a percentile below its interval": {sizes(func(s *Size) { s.Distribution.Percentiles[0].LowNanoseconds = 6 }),
			"64 bytes: 50 % is 5 ns, outside its interval"},
		"a percentile above its interval": {rates(func(r *Rate) { r.FromActual.Percentiles[0].HighNanoseconds = new(int64(4)) }),
			"100 messages a second: 50 % is 5 ns, outside its interval"},
		"a rate of nothing":         {rates(func(r *Rate) { r.PerSecond = 0 }), "it has a rate of 0 messages of 64 bytes a second, of which 99 were reached"},
		"a negative rate":           {rates(func(r *Rate) { r.AchievedPerSecond = -1 }), "it has a rate of 100 messages of 64 bytes a second, of which -1 were reached"},
		"messages below zero":       {rates(func(r *Rate) { r.Bytes = -64 }), "it has a rate of 100 messages of -64 bytes a second, of which 99 were reached"},
		"more lost than sent":       {rates(func(r *Rate) { r.Load.Lost = 11 }), "100 messages a second: more messages or answers were lost than there were"},
		"more answers lost":         {rates(func(r *Rate) { r.AnswersLost = 6 }), "100 messages a second: more messages or answers were lost than there were"},
		"a fail below a pass":       {loads(func(l *Load) { l.BestPass = 101 }), "its bestPass is 101 and its lowestFail 101, which is not above"},
		"stamps":                    {sizes(func(s *Size) { s.Stamps = &Stamps{Messages: 4, WithoutSent: 1, Wire: some(t), Host: some(t)} }), ""},
		"more stamps than messages": {sizes(func(s *Size) { s.Stamps = &Stamps{Messages: 2, Wire: some(t), Host: some(t)} }), "64 bytes: 3 and 3 messages of 2 have stamps"},
		"more that lack stamps":     {sizes(func(s *Size) { s.Stamps = &Stamps{Messages: 3, Impossible: 1, Wire: some(t), Host: some(t)} }), "64 bytes: 3 and 3 messages of 3 have stamps"},
		"stamps of half":            {sizes(func(s *Size) { s.Stamps = &Stamps{Messages: 3, Wire: some(t)} }), "64 bytes: 3 and 0 messages of 3 have stamps"},
		"stamps without order": {sizes(func(s *Size) {
			s.Stamps = &Stamps{Messages: 3, Wire: some(t), Host: some(t)}
			s.Stamps.Host.MinimumNanoseconds = 7
		}), "64 bytes: the shortest of its latencies is 7 ns and the longest 6 ns"},
		"a spoilt trial": {loads(func(l *Load) { l.Trials[0].Rate.PerSecond = 0 }), "it has a rate of 0 messages of 0 bytes a second, of which 0 were reached"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := tc.result.Validate(); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("the error is %q, want %q", got, tc.want)
			}
		})
	}
}
