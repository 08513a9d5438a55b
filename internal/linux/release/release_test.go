// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package release_test

import (
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/release"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]release.Release{
		"5.14.0-570.49.1.el9_6.x86_64":    {Major: 5, Minor: 14},
		"5.14.0-427.13.1.el9_4.x86_64+rt": {Major: 5, Minor: 14},
		"6.1.0-56-rt-amd64":               {Major: 6, Minor: 1},
		"6.12.0":                          {Major: 6, Minor: 12},
		"6.12+":                           {Major: 6, Minor: 12},
		"6.12-rc3":                        {Major: 6, Minor: 12},
		"6.12":                            {Major: 6, Minor: 12},
		"4.18.0-553.el8_10.x86_64":        {Major: 4, Minor: 18},
		"10.0":                            {Major: 10, Minor: 0},
		"":                                {},
		"6":                               {},
		"6.":                              {},
		".6":                              {},
		"0.0":                             {},
		"linux-6.1":                       {},
		"-6.1":                            {},
		"+6.1":                            {},
		" 6.1":                            {},
		"6.99999999999999999999":          {},
		"99999999999999999999.1":          {},
		"6.x":                             {},
		"five.fourteen":                   {},
		"5 .14":                           {},
	} {
		got, known := release.Parse(text)
		if got != want || known != want.IsKnown() {
			t.Errorf("%q is %v, %t; want %v", text, got, known, want)
		}
	}
}

func TestAtLeast(t *testing.T) {
	cases := map[string]struct {
		is           release.Release
		major, minor int
		want         bool
	}{
		"the same":                    {release.Release{Major: 5, Minor: 14}, 5, 14, true},
		"a later minor number":        {release.Release{Major: 5, Minor: 14}, 5, 9, true},
		"a later major number":        {release.Release{Major: 6, Minor: 1}, 5, 14, true},
		"an earlier minor number":     {release.Release{Major: 6, Minor: 9}, 6, 12, false},
		"an earlier major number":     {release.Release{Major: 5, Minor: 19}, 6, 1, false},
		"numbers are not text":        {release.Release{Major: 6, Minor: 12}, 6, 9, true},
		"an unknown one is none":      {release.Release{}, 0, 0, false},
		"an unknown one is not later": {release.Release{}, 4, 18, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.is.AtLeast(tc.major, tc.minor); got != tc.want {
				t.Errorf("%v.AtLeast(%d, %d) = %t", tc.is, tc.major, tc.minor, got)
			}
		})
	}
}

func TestAtLeastOfText(t *testing.T) {
	for text, want := range map[string]bool{
		"5.10.0": true, "5.11": true, "6.1.0-rt": true, "10.0": true, "5.9.99": false, "4.18.0": false, "5": false, "x": false, "": false,
	} {
		if is, _ := release.Parse(text); is.AtLeast(5, 10) != want {
			t.Errorf("%q at least 5.10 is %t", text, !want)
		}
	}
}

func TestString(t *testing.T) {
	if got := (release.Release{Major: 6, Minor: 12}).String(); got != "6.12" {
		t.Errorf("got %q", got)
	}
	if got := (release.Release{}).String(); got != "" {
		t.Errorf("an unknown release is %q", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"5.14.0-570.el9.x86_64", "6.1", "6", "", ".", "a.b", "6.12+", "0.0", "65536.1", "1.65536"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, known := release.Parse(text)
		if known != parsed.IsKnown() {
			t.Fatalf("%q is %v, known %t", text, parsed, known)
		}
		if !known {
			return
		}
		if !parsed.AtLeast(parsed.Major, parsed.Minor) || parsed.AtLeast(parsed.Major, parsed.Minor+1) {
			t.Errorf("%q is not what it is", text)
		}
		if again, ok := release.Parse(parsed.String()); !ok || again != parsed {
			t.Errorf("%q was read as %v, written as %q and read as %v", text, parsed, parsed, again)
		}
	})
}
