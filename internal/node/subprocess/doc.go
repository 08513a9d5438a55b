// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package subprocess is how programs that run on nodes start others that must not outlive them, such as one that spins on a CPU.
package subprocess
