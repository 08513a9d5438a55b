// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package picture

import (
	"encoding/xml"
	"fmt"
	"strings"

	prettytext "github.com/jedib0t/go-pretty/v6/text"
)

// canvas collects the elements of a drawing. Whatever text comes from a host or a cluster goes through escape.
type canvas struct {
	strings.Builder
}

// printf adds to the drawing; a strings.Builder returns no error.
func (c *canvas) printf(format string, args ...any) { _, _ = fmt.Fprintf(&c.Builder, format, args...) }

// escape makes a text fit for XML: markup becomes text, and what XML does not allow at all a replacement character.
func escape(text string) string {
	var b strings.Builder
	// A strings.Builder returns no error.
	_ = xml.EscapeText(&b, []byte(text))
	return b.String()
}

// point is a place in pixels, from the upper left corner.
type point struct{ x, y float64 }

// size is in pixels.
type size struct{ w, h float64 }

// rect draws a rectangle with rounded corners.
func (c *canvas) rect(class string, at point, s size, radius float64) {
	c.printf(`<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="%.1f"/>`+"\n", class, at.x, at.y, s.w, s.h, radius)
}

// text writes a line; at is the left end of its base line.
func (c *canvas) text(class string, at point, text string) {
	c.printf(`<text class="%s" x="%.1f" y="%.1f">%s</text>`+"\n", class, at.x, at.y, escape(text))
}

// tspans writes a line in pieces of different classes: class, text, class, text …
func (c *canvas) tspans(at point, pieces ...string) {
	c.printf(`<text class="t" x="%.1f" y="%.1f">`, at.x, at.y)
	for i := 0; i+1 < len(pieces); i += 2 {
		if pieces[i+1] != "" {
			c.printf(`<tspan class="%s" xml:space="preserve">%s</tspan>`, pieces[i], escape(pieces[i+1]))
		}
	}
	c.WriteString("</text>\n")
}

// warning draws the sign of a finding, a triangle with an exclamation mark, at is its upper left corner.
func (c *canvas) warning(at point, height float64) {
	half := height * 0.58
	c.printf(`<path class="warn" d="M%.1f %.1fl%.1f %.1fh-%.1fz"/><text class="bang" style="font-size:%.1fpx" x="%.1f" y="%.1f">!</text>`+"\n",
		at.x+half, at.y, half, height, 2*half, height*0.8, at.x+half, at.y+height*0.9)
}

// characters is how many characters of small text fit into so many pixels. They are all of one width.
func characters(pixels float64) int { return max(4, int(pixels/advance)) }

// cut shortens a text to what fits.
func cut(text string, pixels float64) string { return prettytext.Snip(text, characters(pixels), "…") }

// long is the length of a text in pixels.
func long(text string) float64 {
	return float64(prettytext.StringWidthWithoutEscSequences(text)) * advance
}
