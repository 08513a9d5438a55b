// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"fmt"
	"strings"
)

// maximumNames is how many objects a message names before it says how many more there are.
const maximumNames = 5

// Names lists names in a sentence: "a, b, c, d, e and 7 more".
func Names(names []string) string {
	if len(names) <= maximumNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maximumNames], ", "), len(names)-maximumNames)
}
