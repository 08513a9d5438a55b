// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/text"
)

func TestHarmless(t *testing.T) {
	const instead = "\ufffd"
	cases := map[string]struct{ given, want string }{
		"plain":                      {"IRQ 142 (eth0)\n\tCPU 5 – ✓\n", "IRQ 142 (eth0)\n\tCPU 5 – ✓\n"},
		"our colours":                {text.NewPalette(true).Bad("FAILED"), text.NewPalette(true).Bad("FAILED")},
		"our colours of the table":   {text.NewPalette(true).Owned("7"), text.NewPalette(true).Owned("7")},
		"the cursor is moved":        {"a\x1b[2Ab", "a" + instead + "[2Ab"},
		"the screen is cleared":      {"\x1b[2J\x1b[H", instead + "[2J" + instead + "[H"},
		"the title of the window":    {"\x1b]0;root\x07", instead + "]0;root" + instead},
		"text is hidden":             {"\x1b[8mhidden\x1b[0m", instead + "[8mhidden\x1b[0m"},
		"the line is written over":   {"FAILED\rPASSED", "FAILED" + instead + "PASSED"},
		"a letter is taken back":     {"FAILED\b\b", "FAILED" + instead + instead},
		"an escape in eight bits":    {"a\u009b2J", "a" + instead + "2J"},
		"the writing direction":      {"eth0 \u202egnp.exe", "eth0 " + instead + "gnp.exe"},
		"nothing to see":             {"a\u200bb", "a" + instead + "b"},
		"a zero":                     {"a\x00b", "a" + instead + "b"},
		"an escape and nothing more": {"\x1b", instead},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := text.Harmless(tc.given); got != tc.want {
				t.Errorf("it becomes %q, want %q", got, tc.want)
			}
		})
	}
}

// FuzzHarmless: whatever is given, no control character is left but those of colours, and what is harmless stays so.
func FuzzHarmless(f *testing.F) {
	for _, seed := range []string{"a", "\x1b[31mx\x1b[0m", "\x1b[31;8m", "\x1b[", "\u009b\xff\x1b", "\x1b[38;5;300m\r\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, given string) {
		got := text.Harmless(given)
		if again := text.Harmless(got); again != got {
			t.Errorf("%q becomes %q and then %q", given, got, again)
		}
		for at, c := range got {
			if unicode.IsControl(c) && c != '\n' && c != '\t' && (c != '\x1b' || !strings.HasPrefix(got[at:], "\x1b[")) {
				t.Errorf("%q becomes %q, with %U", given, got, c)
			}
		}
	})
}
