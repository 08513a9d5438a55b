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
	value := float64(nanoseconds)
	for _, unit := range []string{"ns", "µs", "ms"} {
		if value < thousand {
			return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", value), "0"), ".") + " " + unit
		}
		value /= thousand
	}
	return fmt.Sprintf("%.2f s", value)
}
