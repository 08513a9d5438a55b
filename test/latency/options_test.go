// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseOptions(t *testing.T) {
	type chosen struct {
		Rounds          int
		Server, Delayed string
		Sizes           []int
		Judges          string
		IsWhole         bool
	}
	for arguments, want := range map[string]chosen{
		"":                       {7, "", "", []int{64}, "count netem delay capacity stall sockperf qperf generator", true},
		"-only delay,count":      {7, "", "", []int{64}, "count delay", false},
		"-rounds 5 -only qperf":  {5, "", "", []int{64}, "qperf", false},
		"-sizes 64,1024,1472,14": {7, "", "", []int{64, 1024, 1472, 14}, "count netem delay capacity stall sockperf qperf generator", true},
		"-server 10.0.0.2":       {7, "10.0.0.2", "", []int{64}, "sockperf qperf", true},
		"-server 10.0.0.2 -delayed eth1 -sizes 1024":       {7, "10.0.0.2", "eth1", []int{1024}, "delay sockperf qperf", true},
		"-server 10.0.0.2 -delayed eth1 -only qperf,delay": {7, "10.0.0.2", "eth1", []int{64}, "delay qperf", false},
	} {
		o, err := parseOptions(strings.Fields(arguments))
		if err != nil {
			t.Errorf("%q: %v", arguments, err)
			continue
		}
		names := make([]string, 0, len(o.judges))
		for _, j := range o.judges {
			names = append(names, j.name)
		}
		got := chosen{o.rounds, o.server, o.delayed, o.sizes, strings.Join(names, " "), o.isWhole}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", arguments, diff)
		}
	}
}

func TestParseOptionsRefuses(t *testing.T) {
	for arguments, want := range map[string]string{
		"-rounds 4":                          "it takes 5",
		"-rounds many":                       "invalid value",
		"-delayed eth1":                      "-delayed is for -server",
		"-server there":                      "-server there is no address of IPv4",
		"-server ::1":                        "-server ::1 is no address of IPv4",
		"-sizes 13":                          `"13" is no size from 14 to 1472`,
		"-sizes 64,1473":                     `"1473" is no size`,
		"-sizes 64,":                         `"" is no size`,
		"-only stal":                         `there is no judge "stal" here, only count, netem`,
		"-server 10.0.0.2 -only count":       `there is no judge "count" here, only sockperf, qperf`,
		"-server 10.0.0.2 -only qperf,delay": `there is no judge "delay" here`,
	} {
		if _, err := parseOptions(strings.Fields(arguments)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", arguments, err, want)
		}
	}
}

func FuzzParseSizes(f *testing.F) {
	for _, text := range []string{"64,1024", "", ",", "14", "-1", "99999999999999999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sizes, err := parseSizes(text)
		if err == nil && len(sizes) != strings.Count(text, ",")+1 {
			t.Errorf("%q has %d sizes", text, len(sizes))
		}
		for _, size := range sizes {
			if size < smallestMessage || size > largestMessage {
				t.Errorf("%q has a size of %d", text, size)
			}
		}
	})
}
