// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package jitter

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

func set(t *testing.T, list string) cpus.Set {
	t.Helper()
	parsed, err := cpus.Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestPlace(t *testing.T) {
	pod := func(list string) []Owner { return []Owner{{"trading/engine-0/engine", set(t, list)}} }
	cases := map[string]struct {
		measured, online string
		cores            []string
		owners           []Owner
		wantControl      string
		wantMessage      string
	}{
		"the rest controls":          {measured: "2-3", online: "0-3", wantControl: "0-1"},
		"siblings do not control":    {measured: "1", online: "0-7", cores: []string{"0,4", "1,5", "2,6", "3,7"}, wantControl: "0,2-4,6-7"},
		"a pod on other CPUs":        {measured: "1", online: "0-3", owners: pod("2-3"), wantControl: "0,2-3"},
		"a CPU that is offline":      {measured: "2-5", online: "0-3", wantMessage: "CPU 4-5 is not online; online are 0-3"},
		"a CPU that a pod owns":      {measured: "2-3", online: "0-3", owners: pod("3"), wantMessage: "CPU 3 belongs to container trading/engine-0/engine"},
		"no CPU is left":             {measured: "0-3", online: "0-3", wantMessage: "no CPU is left to control the measurement of CPUs 0-3"},
		"only a sibling is left":     {measured: "0", online: "0-1", cores: []string{"0-1"}, wantMessage: "no CPU is left"},
		"the sibling of no measured": {measured: "0", online: "0-2", cores: []string{"0", "1-2"}, wantControl: "1-2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cores := make([]cpus.Set, 0, len(tc.cores))
			for _, core := range tc.cores {
				cores = append(cores, set(t, core))
			}
			got, err := Place(set(t, tc.measured), set(t, tc.online), cores, tc.owners)
			if tc.wantMessage != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantMessage) {
					t.Errorf("the error is %v, want %q", err, tc.wantMessage)
				}
				return
			}
			if err != nil || got.Control.String() != tc.wantControl || got.Measured.String() != tc.measured {
				t.Errorf("control CPUs %s of %s, %v, want %s", got.Control, got.Measured, err, tc.wantControl)
			}
		})
	}
}

func TestBusy(t *testing.T) {
	stat := func(user, idle float64) procfs.Stat {
		return procfs.Stat{CPU: map[int64]procfs.CPUStat{2: {User: user, Idle: idle}, 3: {Idle: user + idle}}}
	}
	cases := map[string]struct {
		after procfs.Stat
		want  string
	}{
		"idle":              {stat(10.01, 20.99), ""},
		"at work":           {stat(10.6, 20.4), "CPU 2 is busy for 60 % of the time"},
		"no time passed":    {stat(10, 20), ""},
		"a CPU disappeared": {procfs.Stat{}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Busy(set(t, "2-3"), stat(10, 20), tc.after); got != tc.want {
				t.Errorf("busy is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestRequestCheck(t *testing.T) {
	cases := map[string]struct {
		change func(*Request)
		want   string
	}{
		"good":               {func(*Request) {}, ""},
		"no CPU":             {func(r *Request) { r.CPUs = nil }, "no CPU is given"},
		"no duration":        {func(r *Request) { r.Duration = 0 }, "the duration 0s"},
		"too long":           {func(r *Request) { r.Duration = 25 * time.Hour }, "the duration 25h"},
		"warm-up too long":   {func(r *Request) { r.WarmUp = time.Hour }, "the warm-up of 1h"},
		"negative warm-up":   {func(r *Request) { r.WarmUp = -1 }, "the warm-up of -1ns"},
		"threshold too low":  {func(r *Request) { r.Threshold = 50 }, "the threshold 50ns"},
		"threshold too high": {func(r *Request) { r.Threshold = time.Minute }, "the threshold 1m"},
		"priority too high":  {func(r *Request) { r.Priority = 99 }, "the priority 99"},
		"negative priority":  {func(r *Request) { r.Priority = -1 }, "the priority -1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			request := Request{CPUs: []int{1}, Duration: time.Minute, WarmUp: time.Second, Threshold: time.Microsecond}
			tc.change(&request)
			err := request.Check()
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %q", err, tc.want)
			}
		})
	}
}

func TestRoom(t *testing.T) {
	request := Request{Duration: 100 * time.Second, WarmUp: time.Second}
	for seen, want := range map[uint64]int{0: 1 << 16, 1_000: 200_000, 1 << 40: maximumRoom} {
		if got := request.room(seen); got != want {
			t.Errorf("room for %d interruptions in the warm-up is %d, want %d", seen, got, want)
		}
	}
	request.WarmUp = 0
	if got := request.room(0); got != maximumRoom {
		t.Errorf("room without a warm-up is %d, want %d", got, maximumRoom)
	}
}
