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
	// Housekeeping, Isolated, DataPlane and Shared CPUs.
	Housekeeping, Isolated, DataPlane, Shared Paint
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
		Housekeeping: paint(color.FgYellow),
		Isolated:     paint(color.FgGreen),
		DataPlane:    paint(color.FgMagenta),
		Shared:       paint(color.FgCyan),
	}
}
