// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cpus_test

import (
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

func TestParseArgument(t *testing.T) {
	const invalid = "invalid"
	cases := map[string]struct{ list, possible, want string }{
		"nothing":                  {"", "0-7", ""},
		"a list":                   {"2-3,5", "0-7", "2-3,5"},
		"white space":              {" 2-3\t5\n", "0-7", "2-3,5"},
		"empty elements":           {",2,,3,", "0-7", "2-3"},
		"the last CPU":             {"N", "0-7", "7"},
		"up to the last CPU":       {"2-N", "0-7", "2-7"},
		"all CPUs":                 {"all", "0-7", "0-7"},
		"all CPUs in capitals":     {"ALL", "0-7", "0-7"},
		"a pattern of all CPUs":    {"all:1/2", "0-7", "0,2,4,6"},
		"groups":                   {"0-7:2/4", "0-7", "0-1,4-5"},
		"a CPU above the last":     {"2-8", "0-7", invalid},
		"the last of unknown":      {"2-N", "", invalid},
		"all of unknown":           {"all", "", invalid},
		"a list of unknown":        {"2-8", "", "2-8"},
		"backwards":                {"3-2", "0-7", invalid},
		"a letter":                 {"n", "0-7", invalid},
		"something behind all":     {"allx", "0-7", invalid},
		"a CPU between two others": {"1 - 3", "0-7", invalid},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			possible, err := cpus.Parse(tc.possible)
			if err != nil {
				t.Fatal(err)
			}
			set, err := cpus.ParseArgument(tc.list, possible)
			got := set.String()
			if err != nil {
				got = invalid
			}
			if got != tc.want {
				t.Errorf("%q is %s (%v), want %s", tc.list, got, err, tc.want)
			}
		})
	}
}

func TestNormal(t *testing.T) {
	for list, want := range map[string]string{"": "", "1,2,3": "1-3", "0-0": "0", "x": "x"} {
		if got := cpus.Normal(list); got != want {
			t.Errorf("%q is %q, want %q", list, got, want)
		}
	}
}

func TestName(t *testing.T) {
	for list, want := range map[string]string{"5": "CPU 5", "2-5": "CPUs 2-5", "": "CPUs "} {
		if got := cpus.Normal(list); got != list {
			t.Fatalf("%q is %q", list, got)
		}
		set, err := cpus.Parse(list)
		if err != nil || set.Name() != want {
			t.Errorf("%q is %q, %v", list, set.Name(), err)
		}
	}
}

// FuzzParseArgument checks that the command line takes every list that others take, and that nothing is above the last CPU.
func FuzzParseArgument(f *testing.F) {
	for _, seed := range []string{"0-3,8", "all", "2-N", "N", "ALL:1/2", ",, 1", "0-7:N/N", "8191", "allN", "NN"} {
		f.Add(seed)
	}
	possible := cpus.Of(0, 1, 2, 3, 4, 5, 6, 7)
	f.Fuzz(func(t *testing.T, list string) {
		if set, err := cpus.ParseArgument(list, possible); err == nil && set.Last() > 7 {
			t.Errorf("%q is %s", list, set)
		}
		plain, err := cpus.Parse(list)
		if err != nil || list == "(null)" {
			return
		}
		if set, err := cpus.ParseArgument(plain.String(), cpus.Set{}); err != nil || !set.Equal(plain) {
			t.Errorf("%q is %s, %v", plain, set, err)
		}
	})
}
