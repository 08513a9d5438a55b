// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package nearname finds the name that was probably meant by one that does not exist.
package nearname

import (
	"cmp"
	"strings"
)

// Of is the first name with the fewest changes, when no more than a third of the letters would change; else the only name
// that begins with the text; else the only name that is near to one of the text's words, between which there are dashes; else "".
func Of(text string, names []string) string {
	if near := nearest(text, names); near != "" {
		return near
	}
	if begun := onlyBegunBy(text, names); begun != "" {
		return begun
	}
	return onlyNearWord(text, names)
}

// nearest is the first name with the fewest changes.
func nearest(text string, names []string) string {
	best, fewest := "", len(text)/3+1
	for _, name := range names {
		if changes := distance(strings.ToLower(text), strings.ToLower(name)); changes < fewest {
			best, fewest = name, changes
		}
	}
	return best
}

// onlyNearWord is the only name that is near to one of several words of the text; "" when there are several.
func onlyNearWord(text string, names []string) string {
	const enough = 4
	words, near := strings.Split(text, "-"), ""
	for _, word := range words {
		found := ""
		if len(words) > 1 && len(word) >= enough {
			found = nearest(word, names)
		}
		if found != "" && near != "" && found != near {
			return ""
		}
		near = cmp.Or(near, found)
	}
	return near
}

// onlyBegunBy is the only name that begins with the text; "" when there are several, or when the text is too short to tell.
func onlyBegunBy(text string, names []string) string {
	const enough = 3
	begun := ""
	for _, name := range names {
		switch {
		case len(text) < enough || !strings.HasPrefix(name, text):
		case begun != "":
			return ""
		default:
			begun = name
		}
	}
	return begun
}

// distance is how many letters must be put in, taken out, replaced or exchanged with their neighbour to make one text of the other
// (optimal string alignment). Longer texts than any field has are far from all.
func distance(a, b string) int {
	const longest = 128
	if len(a) > longest || len(b) > longest {
		return longest
	}
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			next[j+1] = min(row[j]+differ(a[i], b[j]), next[j]+1, row[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}

// differ is 1 for two letters and 0 for the same.
func differ(a, b byte) int {
	if a == b {
		return 0
	}
	return 1
}
