// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build amd64 || arm64

package jitter

// gap is an interruption as the loop sees it: two successive readings of the counter that lie far apart.
type gap struct {
	// at is the reading before the interruption.
	at uint64
	// length in ticks of the counter.
	length uint64
}

// spinState is what the loop reads at its begin and writes at its end; go vet checks its offsets in assembly.
type spinState struct {
	// deadline is the reading at which the loop ends.
	deadline uint64
	// threshold is the least length of a gap that counts as an interruption.
	threshold uint64
	// gaps has room for capacity gaps; further ones are counted only.
	gaps     *gap
	capacity uint64

	begin, finish uint64
	interruptions uint64
	loops         uint64
	// shortest is the shortest gap: what one turn of the loop costs.
	shortest uint64
}

// spin reads the CPU's counter without a pause until the deadline. It cannot be preempted by the Go runtime: the
// caller locks the goroutine to a thread and keeps the runtime's own work away.
//
//go:noescape
func spin(s *spinState)

// readCounter reads the CPU's counter, after all earlier instructions.
//
//go:noescape
func readCounter() uint64
