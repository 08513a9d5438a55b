// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package shorten

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestSentence(t *testing.T) {
	cases := map[string]struct {
		text  string
		limit int
		want  string
	}{
		"a text that fits":                         {"CPU 7 ran a timer.", 18, "CPU 7 ran a timer."},
		"a text of one byte too many":              {"CPU 7 ran a timer.", 17, "CPU 7 ran a…"},
		"a word that ends at the limit":            {"CPU 7 ran a timer.", 14, "CPU 7 ran a…"},
		"a cut number would be another":            {"CPUs 0-3,5-127,200", 16, "CPUs 0-3…"},
		"an item of a list that ends at the limit": {"0-3,5-127,200", 12, "0-3,5-127…"},
		"no comma before the ellipsis":             {"irq 7, irq 8, irq 9", 16, "irq 7, irq 8…"},
		"a long word is cut":                       {"at /sys/" + strings.Repeat("x", 60), 48, "at /sys/" + strings.Repeat("x", 37) + "…"},
		"a word alone is cut":                      {"0123456789", 8, "01234…"},
		"a character of several bytes stays whole": {"ääääää", 8, "ää…"},
		"bytes that are no UTF-8":                  {"a\xffb", 10, "a\uFFFDb"},
		"bytes that are no UTF-8 at the limit":     {"a\xff\xfe\xfdb", 3, "…"},
		"room for the ellipsis only":               {"abcd", 3, "…"},
		"no room":                                  {"abc", 2, ""},
		"nothing":                                  {"", 0, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Sentence(tc.text, tc.limit)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWithKeepsTheRemark(t *testing.T) {
	got := With("node-1: the plan needs more memory", " (and 3 more)", 36)
	if want := "node-1: the plan… (and 3 more)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestValue(t *testing.T) {
	cases := map[string]struct {
		text  string
		limit int
		want  string
	}{
		"a value that fits":       {"0x1924", 6, "0x1924"},
		"a value that is cut":     {"mitigations=off quiet", 15, "mitigations=off"},
		"characters are counted":  {"äöü", 2, "äö"},
		"exactly the characters":  {"äöü", 3, "äöü"},
		"bytes that are no UTF-8": {"\xff1234", 2, "\uFFFD1"},
		"nothing is left":         {"a", 0, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Value(tc.text, tc.limit)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestList(t *testing.T) {
	for limit, want := range map[int][]int{0: {}, 2: {1, 2}, 3: {1, 2, 3}, 9: {1, 2, 3}} {
		if diff := cmp.Diff(want, List([]int{1, 2, 3}, limit)); diff != "" {
			t.Errorf("limit %d (-want +got):\n%s", limit, diff)
		}
	}
}

func FuzzShorten(f *testing.F) {
	f.Add("CPUs 0-3,5-127 ä\xff", 9)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 0 || limit > 1<<20 {
			return
		}
		sentence, value := Sentence(text, limit), Value(text, limit)
		if len(sentence) > limit || !utf8.ValidString(sentence) {
			t.Errorf("Sentence(%q, %d) is %q", text, limit, sentence)
		}
		if utf8.RuneCountInString(value) > limit || !utf8.ValidString(value) {
			t.Errorf("Value(%q, %d) is %q", text, limit, value)
		}
	})
}
