// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package jitter

// counterFrequency reads CNTFRQ_EL0, which the firmware sets.
//
//go:noescape
func counterFrequency() uint64

// counterHertz is the frequency of the counter.
func counterHertz() uint64 { return counterFrequency() }
