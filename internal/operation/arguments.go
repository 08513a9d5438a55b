// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package operation

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// MarkerParameter is the parameter of the marker. The kernel takes a name with a dot for a parameter of a module, ignores
// it, and does not hand it to init (kernel/params.c and init/main.c, unknown_bootoption).
const MarkerParameter = "lowlatency.boot"

// panicArgument has the kernel reboot after a panic, so late that whoever looks at the console can read it. The kubelet sets the same number of
// seconds itself, and with protectKernelDefaults does not start with any other (setupKernelTunables in pkg/kubelet/cm of Kubernetes).
const (
	panicParameter = "panic="
	panicArgument  = panicParameter + "10"
)

// markerBytes is how much of the digest is in the marker.
const markerBytes = 6

// Marker is the argument that tells a kernel started with these arguments from any other. It is the hash of the arguments,
// not of the plan: a plan that differs in a sysctl must not reboot a host.
func Marker(arguments []string) string {
	without := slices.DeleteFunc(slices.Clone(arguments), isMarker)
	digest := sha256.Sum256([]byte(strings.Join(without, " ")))
	return MarkerParameter + "=" + hex.EncodeToString(digest[:markerBytes])
}

// MarkerOf is the marker among arguments, "" where there is none. The last one counts.
func MarkerOf(arguments []string) string {
	for _, argument := range slices.Backward(arguments) {
		if isMarker(argument) {
			return argument
		}
	}
	return ""
}

func isMarker(argument string) bool { return strings.HasPrefix(argument, MarkerParameter+"=") }

func withWayBack(arguments []string) []string {
	arguments = slices.DeleteFunc(arguments, isMarker)
	isPanic := func(argument string) bool { return strings.HasPrefix(argument, panicParameter) }
	if !slices.ContainsFunc(arguments, isPanic) {
		arguments = append(arguments, panicArgument)
	}
	return append(arguments, Marker(arguments))
}
