// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import "testing"

func TestNames(t *testing.T) {
	cases := map[string]struct {
		names []string
		want  string
	}{
		"none":        {nil, ""},
		"one":         {[]string{"a"}, "a"},
		"as many":     {[]string{"a", "b", "c", "d", "e"}, "a, b, c, d, e"},
		"more":        {[]string{"a", "b", "c", "d", "e", "f", "g"}, "a, b, c, d, e and 2 more"},
		"just beyond": {[]string{"a", "b", "c", "d", "e", "f"}, "a, b, c, d, e and 1 more"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Names(tc.names); got != tc.want {
				t.Errorf("Names() = %q, want %q", got, tc.want)
			}
		})
	}
}
