// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package terminal draws what a program wrote to a terminal, with its colours, as SVG.
package terminal

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	cellWidth, lineHeight, margin = 8.4, 19.0, 16.0
	foreground, background        = "#d8dee9", "#1f2430"
)

// Lines are those of a recording as a terminal shows them in the end: "cursor up", "erase below" and "erase to the right" take back what
// was drawn before. The first two stand at the beginning of lines; the marks of synchronized updates (DEC private mode 2026) change nothing.
func Lines(in io.Reader) ([]string, error) {
	move := regexp.MustCompile(`^\r?\x1b\[(\d*)([AJ])\r?`)
	updates := strings.NewReplacer("\x1b[?2026h", "", "\x1b[?2026l", "")
	var lines []string
	row := 0
	scanner := bufio.NewScanner(in)
	for scanner.Scan() {
		line := strings.TrimRight(updates.Replace(scanner.Text()), "\r")
		for match := move.FindStringSubmatch(line); match != nil; match = move.FindStringSubmatch(line) {
			line = line[len(match[0]):]
			if match[2] == "J" {
				lines = lines[:row]
				continue
			}
			back, err := strconv.Atoi(match[1])
			if err != nil {
				return nil, fmt.Errorf("reading %q: %w", match[0], err)
			}
			row = max(0, row-back)
		}
		lines = append(lines[:row], append([]string{strings.ReplaceAll(line, "\x1b[K", "")}, lines[min(row+1, len(lines)):]...)...)
		row++
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("reading the recording: %w", err)
	}
	return lines, nil
}

// Cut returns count lines from the first one that contains the text; none when no line does.
func Cut(lines []string, from string, count int) []string {
	for i, line := range lines {
		if strings.Contains(line, from) {
			return lines[i:min(len(lines), i+count)]
		}
	}
	return nil
}

// span is text in one style.
type span struct {
	text, colour string
	bold         bool
	column       int
}

// palette maps the foreground colours of SGR sequences.
func palette() map[string]string {
	return map[string]string{
		"31": "#ff6b6b", "32": "#8fd46b", "33": "#ffd166", "34": "#6fb1fc", "35": "#d699ff", "36": "#5fd7d7", "90": "#7b8496",
		"91": "#ff6b6b", "92": "#8fd46b", "93": "#ffd166", "94": "#6fb1fc", "95": "#d699ff", "96": "#5fd7d7", "97": "#ffffff",
	}
}

// spans splits a line at its SGR sequences.
func spans(line string) []span {
	sequence := regexp.MustCompile(`\x1b\[([0-9;]*)m`)
	colours := palette()
	current := span{colour: foreground}
	var out []span
	column := 0
	add := func(text string) {
		if text != "" {
			out = append(out, span{text: text, colour: current.colour, bold: current.bold, column: column})
			column += utf8.RuneCountInString(text)
		}
	}
	position := 0
	for _, match := range sequence.FindAllStringSubmatchIndex(line, -1) {
		add(line[position:match[0]])
		position = match[1]
		for code := range strings.SplitSeq(line[match[2]:match[3]], ";") {
			switch {
			case code == "" || code == "0":
				current = span{colour: foreground}
			case code == "1":
				current.bold = true
			case colours[code] != "":
				current.colour = colours[code]
			}
		}
	}
	add(line[position:])
	return out
}

// Draw lays lines out in a grid of cells. It is a complete SVG document.
func Draw(lines []string) string {
	var body strings.Builder
	widest := 0
	for row, line := range lines {
		for _, s := range spans(line) {
			widest = max(widest, s.column+utf8.RuneCountInString(s.text))
			weight := ""
			if s.bold {
				weight = ` font-weight="bold"`
			}
			fmt.Fprintf(&body, `<text x="%.1f" y="%.1f" fill="%s"%s textLength="%.1f" xml:space="preserve">%s</text>`+"\n",
				margin+float64(s.column)*cellWidth, margin+float64(row+1)*lineHeight-5, s.colour, weight,
				float64(utf8.RuneCountInString(s.text))*cellWidth, html.EscapeString(s.text))
		}
	}
	width, height := 2*margin+float64(widest)*cellWidth, 2*margin+float64(len(lines))*lineHeight
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="14">
<rect width="100%%" height="100%%" rx="8" fill="%s"/>
%s</svg>
`, width, height, background, body.String())
}
