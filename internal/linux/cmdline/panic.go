// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cmdline

import "github.com/lowlatency-dev/lowlatency-operator/internal/linux/setting"

// longestPanic is how many seconds a kernel may wait after a panic before it reboots.
const longestPanic = 60

// RebootsSoon reports whether a kernel with this value of panic= reboots within a minute of a panic by itself. Zero waits for ever, and
// less than zero reboots at once (kernel/panic.c).
func RebootsSoon(value string) bool {
	seconds, ok := setting.Integer(value)
	return ok && seconds != 0 && seconds <= longestPanic
}
