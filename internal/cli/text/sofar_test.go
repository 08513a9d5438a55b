// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLastSoFar(t *testing.T) {
	for log, want := range map[string]string{
		"": "", "so far: ": "", "repetition 1 of 3\n": "", "so far: one\nso far: two\ntable\n": "two", "not so far: x\n": "", "so far: cut": "cut",
		"so far: \x1b]0;title\x07\tx\r\n": "�]0;title� x�", "so far: " + strings.Repeat("µ", 1000): strings.Repeat("µ", 200),
		"so far: x" + strings.Repeat("µ", 1000): "x" + strings.Repeat("µ", 199),
	} {
		if got := LastSoFar(log); got != want || !utf8.ValidString(got) {
			t.Errorf("%.40q: %q, want %q", log, got, want)
		}
	}
}
