// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencytest

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
	// The operator's image has no database of time zones, and that of a host, where there is one, comes first.
	_ "time/tzdata"

	"github.com/robfig/cron/v3"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// schedule says when nodes are measured once more: spec.repeatAt of a LatencyTest.
type schedule struct {
	times  cron.Schedule
	zone   *time.Location
	within time.Duration
}

// scheduleOf reads spec.repeatAt; nil when there is none. The library that reads the fields of cron is that of CronJobs of Kubernetes. now is needed to see whether a
// time will come at all. An error says in a sentence which field is wrong, and what to write.
func scheduleOf(spec *v1alpha1.LatencyTestSpec, now time.Time) (*schedule, error) {
	at := spec.RepeatAt
	if at == nil {
		return nil, nil
	}
	times, err := timesOf(at.Schedule)
	if err != nil {
		return nil, fmt.Errorf("spec.repeatAt.schedule %q is no schedule of cron (%w): write minute, hour, day of the month, month and day of the week, such as 30 2 * * 6", at.Schedule, err)
	}
	zone, err := time.LoadLocation(cmp.Or(at.TimeZone, "UTC"))
	if err != nil {
		return nil, fmt.Errorf("spec.repeatAt.timeZone %q is no time zone that the operator knows: write a name of the database of time zones, such as Europe/London", at.TimeZone)
	}
	s := &schedule{times: times, zone: zone, within: time.Duration(at.StartWithinMinutes) * time.Minute}
	if s.due(now, now).IsZero() {
		return nil, fmt.Errorf("spec.repeatAt.schedule %q names a time that does not come within five years: write another day of the month", at.Schedule)
	}
	return s, nil
}

// timesOf reads the five fields. The library reads more than these, and panics at TZ= without a space (its issue 554).
func timesOf(fields string) (cron.Schedule, error) {
	if strings.ContainsAny(fields, "@=") {
		return nil, errors.New("neither @ nor = stands in its fields")
	}
	return cron.ParseStandard(fields)
}

// due is when a node whose measurement ended at the first time is measured once more, as it is known now: the first time of the schedule after
// that at which measurements may still begin. It is not after now where one may begin now, and zero where none ever may.
func (s *schedule) due(measured, now time.Time) time.Time {
	after := measured
	if opens := now.Add(-s.within); s.within > 0 && opens.After(after) {
		after = opens
	}
	return s.times.Next(after.In(s.zone))
}
