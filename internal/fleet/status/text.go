// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package status

import "fmt"

// andMore is the end of a sentence about the first of several nodes.
func andMore(more int) string {
	if more <= 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more)", more)
}
