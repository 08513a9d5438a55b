// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package traffic

import (
	"os"
	"syscall"
)

// preemptions is how often the kernel gave the CPU of a process that has ended to something else (getrusage(2), ru_nivcsw).
func preemptions(ended *os.ProcessState) uint64 {
	usage, known := ended.SysUsage().(*syscall.Rusage)
	if !known || usage == nil {
		return 0
	}
	return uint64(max(0, usage.Nivcsw))
}
