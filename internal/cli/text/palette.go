// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package text draws what the command line prints for people: the machine, CPU maps, tables. It returns
// text and writes nothing; colours are there only when the palette has them.
package text

import (
	"github.com/fatih/color"
)

// Paint colours a text, or leaves it.
type Paint func(string) string

// Palette holds the paints by meaning.
type Palette struct {
	// Title of a section or box, Faint for what matters least.
	Title, Faint Paint
	// Good, Bad and Warn for outcomes.
	Good, Bad, Warn Paint
	// Housekeeping, Isolated, DataPlane and Shared CPUs, and those that a container Owns. The colours are told apart with
	// any colour vision, and stand beside letters all the same.
	Housekeeping, Isolated, DataPlane, Shared, Owned Paint
}

// NewPalette returns paints that colour, or paints that leave the text as it is.
func NewPalette(colours bool) Palette {
	paint := func(attributes ...color.Attribute) Paint {
		pen := color.New(attributes...)
		if colours {
			pen.EnableColor()
		} else {
			pen.DisableColor()
		}
		return func(text string) string { return pen.Sprint(text) }
	}
	return Palette{
		Title:        paint(color.Bold),
		Faint:        paint(color.Faint),
		Good:         paint(color.FgGreen),
		Bad:          paint(color.FgRed, color.Bold),
		Warn:         paint(color.FgYellow),
		Housekeeping: paint(indexed(208)...),
		Isolated:     paint(indexed(36)...),
		DataPlane:    paint(indexed(170)...),
		Shared:       paint(indexed(142)...),
		Owned:        paint(append(indexed(33), color.Bold)...),
	}
}

// indexed is a colour of the table of 256 that terminals share. Those used are of middling lightness, to be read on a
// dark ground and on a light one.
func indexed(number color.Attribute) []color.Attribute {
	const foreground, byNumber = 38, 5
	return []color.Attribute{foreground, byNumber, number}
}
