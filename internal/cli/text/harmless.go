// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"regexp"
	"strings"
	"unicode"
)

// Harmless returns a text as it may be printed on a terminal. What a status or a host says is somebody else's word: control
// characters in it could move the cursor, set the title of the window or hide what follows, and marks of writing direction could
// turn it around. Line ends and tabs stay, and the colours of a Palette; every other control or formatting character becomes
// the replacement character. It is called where text is printed, and nowhere else.
func Harmless(text string) string {
	if !strings.ContainsFunc(text, isControl) {
		return text
	}
	// Sequences that choose a colour or weight, and nothing that hides, blinks or reverses.
	colour := regexp.MustCompile("^\x1b\\[(38;5;[0-9]{1,3}|0|1|2|22|25|3[0-7])(;(0|1|2|22|25|3[0-7]))*m")
	var safe strings.Builder
	for at := 0; at < len(text); {
		if text[at] == '\x1b' {
			if sequence := colour.FindString(text[at:]); sequence != "" {
				safe.WriteString(sequence)
				at += len(sequence)
				continue
			}
		}
		next := at + 1
		for next < len(text) && text[next]&0xc0 == 0x80 {
			next++
		}
		safe.WriteString(strings.Map(replaceControl, text[at:next]))
		at = next
	}
	return safe.String()
}

func isControl(c rune) bool {
	return c != '\n' && c != '\t' && (unicode.IsControl(c) || unicode.Is(unicode.Cf, c) || c == '\u2028' || c == '\u2029')
}

func replaceControl(c rune) rune {
	if isControl(c) {
		return unicode.ReplacementChar
	}
	return c
}
