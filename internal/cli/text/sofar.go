// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import "strings"

const (
	// SoFar begins the lines by which a measurement says how far it is, so that they are told from others in the log of a pod.
	SoFar = "so far: "
	// mostSoFar is as much of such a line as is taken from a log, in bytes.
	mostSoFar = 400
)

// LastSoFar is what the last of such lines of a log says; "" where it has none. The log is somebody else's word.
func LastSoFar(log string) string {
	last := ""
	for line := range strings.Lines(log) {
		if said, found := strings.CutPrefix(strings.TrimSuffix(line, "\n"), SoFar); found {
			last = said
		}
	}
	return strings.ReplaceAll(Harmless(strings.ToValidUTF8(last[:min(len(last), mostSoFar)], "")), "\t", " ")
}
