// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
)

// Manual draws what the catalogue says about one check.
func Manual(manual *view.Manual, palette Palette, columns int) string {
	rows := manual.Rows(func(file string) string { return file })
	for _, row := range rows {
		row[0] = palette.Faint(row[0])
	}
	title := strings.Join(wrap(string(manual.Check)+": "+manual.Title+".", "", columns), "\n")
	return palette.Title(title) + "\n\n" + columnsOf(rows, fit(natural(rows), columns))
}

// Manuals draws one line for each check.
func Manuals(manuals []view.Manual, palette Palette, columns int) string {
	rows := make([][]string, 0, len(manuals))
	for i := range manuals {
		m := &manuals[i]
		rows = append(rows, []string{string(m.Check), string(m.Severity), m.Title})
	}
	return Table([]string{"CHECK", "SEVERITY", "PASSES WHEN"}, rows, palette, columns)
}
