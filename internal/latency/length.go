// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

import (
	"fmt"
	"strings"
)

// Length is a number of nanoseconds with the unit that fits, such as 12.3 µs.
func Length(nanoseconds int64) string {
	const thousand = 1000
	value, units := float64(nanoseconds), []string{"ns", "µs", "ms", "s"}
	for value >= thousand && len(units) > 1 {
		value, units = value/thousand, units[1:]
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", value), "0"), ".") + " " + units[0]
}
