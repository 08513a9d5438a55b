// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencytest

import (
	"strings"
	"testing"
	"time"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

func TestDue(t *testing.T) {
	for name, tc := range map[string]struct {
		at                  v1alpha1.TestSchedule
		measured, now, want string
	}{
		"the next Saturday": {
			v1alpha1.TestSchedule{Schedule: "30 2 * * 6"}, "2026-11-26T12:00:00Z", "2026-11-26T13:00:00Z", "2026-11-28T02:30:00Z",
		},
		"it has come": {
			v1alpha1.TestSchedule{Schedule: "30 2 * * 6"}, "2026-11-26T12:00:00Z", "2026-11-28T02:30:00Z", "2026-11-28T02:30:00Z",
		},
		"it was missed, and counts whenever": {
			v1alpha1.TestSchedule{Schedule: "30 2 * * 6"}, "2026-11-26T12:00:00Z", "2026-11-30T09:00:00Z", "2026-11-28T02:30:00Z",
		},
		"a measurement may begin for an hour": {
			v1alpha1.TestSchedule{Schedule: "30 2 * * 6", StartWithinMinutes: 60}, "2026-11-26T12:00:00Z", "2026-11-28T03:29:59Z", "2026-11-28T02:30:00Z",
		},
		"the hour is over": {
			v1alpha1.TestSchedule{Schedule: "30 2 * * 6", StartWithinMinutes: 60}, "2026-11-26T12:00:00Z", "2026-11-28T03:30:00Z", "2026-12-05T02:30:00Z",
		},
		"measured within the hour": {
			v1alpha1.TestSchedule{Schedule: "30 2 * * 6", StartWithinMinutes: 60}, "2026-11-28T02:40:00Z", "2026-11-28T02:50:00Z", "2026-12-05T02:30:00Z",
		},
		"ended at that very time": {
			v1alpha1.TestSchedule{Schedule: "30 2 * * 6"}, "2026-11-28T02:30:00Z", "2026-11-28T02:30:00Z", "2026-12-05T02:30:00Z",
		},
		"in winter in New York": {
			v1alpha1.TestSchedule{Schedule: "0 18 * * mon-fri", TimeZone: "America/New_York"}, "2026-11-27T12:00:00Z", "2026-11-27T12:00:00Z", "2026-11-27T23:00:00Z",
		},
		"in summer in New York": {
			v1alpha1.TestSchedule{Schedule: "0 18 * * mon-fri", TimeZone: "America/New_York"}, "2026-07-03T12:00:00Z", "2026-07-03T12:00:00Z", "2026-07-03T22:00:00Z",
		},
		"a clock that was ahead": {
			v1alpha1.TestSchedule{Schedule: "30 2 * * 6", StartWithinMinutes: 60}, "2026-12-01T00:00:00Z", "2026-11-26T12:00:00Z", "2026-12-05T02:30:00Z",
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := moment(t, tc.now)
			s, err := scheduleOf(&v1alpha1.LatencyTestSpec{RepeatAt: &tc.at}, now)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.due(moment(t, tc.measured), now); !got.Equal(moment(t, tc.want)) {
				t.Errorf("due at %s, want %s", got, tc.want)
			}
		})
	}
}

func moment(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestSchedulesThatAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		at   v1alpha1.TestSchedule
		want string
	}{
		"a minute that no hour has": {v1alpha1.TestSchedule{Schedule: "61 * * * *"}, "spec.repeatAt.schedule \"61 * * * *\" is no schedule of cron"},
		"a field too few":           {v1alpha1.TestSchedule{Schedule: "1 * * *"}, "write minute, hour, day of the month, month and day of the week"},
		"a step of nothing":         {v1alpha1.TestSchedule{Schedule: "*/0 * * * *"}, "is no schedule of cron"},
		"a day that no month has":   {v1alpha1.TestSchedule{Schedule: "0 2 30 2 *"}, "does not come within five years"},
		"a zone that nobody has":    {v1alpha1.TestSchedule{Schedule: "0 2 * * *", TimeZone: "Europe/Londn"}, "spec.repeatAt.timeZone \"Europe/Londn\" is no time zone"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := scheduleOf(&v1alpha1.LatencyTestSpec{RepeatAt: &tc.at}, moment(t, "2026-11-26T12:00:00Z"))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
	if s, err := scheduleOf(&v1alpha1.LatencyTestSpec{}, time.Time{}); s != nil || err != nil {
		t.Errorf("without a schedule: %v, %v", s, err)
	}
}

// FuzzScheduleOf: what users write is refused in a sentence, or has a time that is still to come.
func FuzzScheduleOf(f *testing.F) {
	for _, schedule := range []string{"30 2 * * 6", "*/5 9-17 * * mon-fri", "0 0 29 2 *", "? ? ? ? ?", "59 23 31 12 0,7", "@daily", "TZ=0"} {
		f.Add(schedule, "Europe/London")
	}
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, schedule, zone string) {
		s, err := scheduleOf(&v1alpha1.LatencyTestSpec{RepeatAt: &v1alpha1.TestSchedule{Schedule: schedule, TimeZone: zone}}, now)
		if err != nil {
			return
		}
		if due := s.due(now, now); !due.After(now) {
			t.Errorf("%q in %q is due at %s", schedule, zone, due)
		}
	})
}
