// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"strings"
)

// block draws a headline with labelled sentences below it. Empty sentences are left out.
func block(headline string, sentences [][]string, palette Palette, columns int) string {
	const indent = "    "
	lines := []string{headline}
	for _, sentence := range sentences {
		label, text := sentence[0], sentence[1]
		if text == "" {
			continue
		}
		lead := indent
		if label != "" {
			lead += palette.Faint(padRight(label, 10))
		}
		for i, line := range wrap(text, "", columns-width(lead)) {
			if i > 0 {
				lead = strings.Repeat(" ", width(lead))
			}
			lines = append(lines, lead+line)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// fold breaks a text after commas, equal signs and slashes as well as at blanks, for values that have no
// blanks.
func fold(text string, columns int) []string {
	var lines []string
	for _, line := range wrap(text, "", columns) {
		for width(line) > columns {
			cut := strings.LastIndexAny(line[:columns], ",/=:") + 1
			if cut <= 0 {
				cut = columns
			}
			lines = append(lines, line[:cut])
			line = line[cut:]
		}
		lines = append(lines, line)
	}
	return lines
}
