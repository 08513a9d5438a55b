// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package lab

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestMachinesThatStandStill: a console that says nothing, or that a timer is lost twice, and no other.
func TestMachinesThatStandStill(t *testing.T) {
	begin := time.Date(2026, 11, 26, 3, 0, 0, 0, time.UTC)
	type look struct {
		after   time.Duration
		console string
	}
	for name, tc := range map[string]struct {
		looks []look
		want  error
	}{
		"nothing yet":             {[]look{{0, ""}, {silenceLimit - 1, ""}}, nil},
		"nothing at all":          {[]look{{0, ""}, {silenceLimit, ""}}, errSilent},
		"silent in the end":       {[]look{{time.Minute, "a"}, {silenceLimit, "a"}, {time.Minute + silenceLimit, "a"}}, errSilent},
		"slow":                    {[]look{{silenceLimit - 1, "a"}, {2*silenceLimit - 2, "ab"}, {3*silenceLimit - 3, "ab"}}, nil},
		"one complaint":           {[]look{{0, timerLost + "1"}}, nil},
		"a complaint that stays":  {[]look{{0, timerLost + "1\n" + timerLost + "1"}}, errTimerLost},
		"a console that is begun": {[]look{{time.Minute, "before"}, {silenceLimit, "a"}, {silenceLimit + time.Minute, "a"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			v, got := &voice{since: begin}, error(nil)
			for _, l := range tc.looks {
				if got != nil {
					t.Errorf("%v too early, before %s", got, l.after)
				}
				got = v.judge([]byte(l.console), begin.Add(l.after))
			}
			if !errors.Is(got, tc.want) {
				t.Errorf("judge() = %v, want %v", got, tc.want)
			}
		})
	}
	if !strings.Contains(errSilent.Error(), "5m0s") {
		t.Errorf("%v does not say how long", errSilent)
	}
}
