// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package jitter measures how often and for how long something else runs on a CPU that a program believes to own. A
// loop in assembly reads the CPU's cycle counter; two readings that lie far apart are an interruption. The loop is
// that of sysjitter and oslat; what caused an interruption is told from the kernel's counters, which another CPU
// reads meanwhile.
package jitter
