// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build !linux

package traffic

import "os"

// preemptions are not told here.
func preemptions(*os.ProcessState) uint64 { return 0 }
