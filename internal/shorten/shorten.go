// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package shorten cuts texts and lists to the bounds of the API. It is pure. It is the only place that does: a text that is cut in
// the midst of a character is refused by the API server, and one that is cut in the midst of a number reads as another.
package shorten

import (
	"strings"
	"unicode/utf8"
)

const (
	// ellipsis says that a sentence was cut.
	ellipsis = "…"
	// longestWord is how many bytes a sentence may lose so that it ends with a whole word. Longer ones, such as
	// hashes and paths, are cut.
	longestWord = 32
)

// Sentence returns a text for people of at most limit bytes, of which it never has fewer than characters. One that is
// longer ends with an ellipsis behind a whole word, or behind a whole item of a list; bytes that are no UTF-8 become
// U+FFFD. A limit that leaves no room for the ellipsis gives "".
func Sentence(text string, limit int) string {
	text = valid(text)
	if len(text) <= limit {
		return text
	}
	room := limit - len(ellipsis)
	if room < 0 {
		return ""
	}
	for room > 0 && !utf8.RuneStart(text[room]) {
		room--
	}
	cut := text[:room]
	if !separates(text[room]) {
		if end := strings.LastIndexFunc(cut, isSeparator); end > 0 && room-end <= longestWord {
			cut = cut[:end]
		}
	}
	return strings.TrimRightFunc(cut, isSeparator) + ellipsis
}

// With returns a sentence of at most limit bytes that ends with a remark, such as " (and 3 more)", which is kept whole.
func With(text, remark string, limit int) string {
	return Sentence(text, limit-len(remark)) + remark
}

// Value returns the first characters of a value, at most limit of them. It has no sign that it was cut, which would
// make another value of it; bytes that are no UTF-8 become U+FFFD.
func Value(text string, limit int) string {
	text = valid(text)
	if len(text) <= limit {
		return text
	}
	for i := range text {
		if limit == 0 {
			return text[:i]
		}
		limit--
	}
	return text
}

// List returns the first items of a list, at most limit of them.
func List[T any](list []T, limit int) []T { return list[:min(len(list), limit)] }

func valid(text string) string { return strings.ToValidUTF8(text, string(utf8.RuneError)) }

func isSeparator(c rune) bool { return c == ' ' || c == ',' || c == '\n' }

func separates(b byte) bool { return isSeparator(rune(b)) }
