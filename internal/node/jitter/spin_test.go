// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build amd64 || arm64

package jitter

import (
	"runtime"
	"testing"
)

// ticksOf runs the loop for a number of ticks of the counter.
func ticksOf(ticks, threshold uint64, room int) (spinState, []gap) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	gaps := make([]gap, room+1)
	s := spinState{deadline: readCounter() + ticks, threshold: threshold, gaps: &gaps[0], capacity: uint64(room)}
	spin(&s)
	return s, gaps
}

func TestSpinEndsAtItsDeadline(t *testing.T) {
	s, _ := ticksOf(1_000_000, 1<<62, 0)
	if s.finish < s.deadline || s.begin >= s.deadline {
		t.Errorf("the loop ran from %d to %d, want across the deadline %d", s.begin, s.finish, s.deadline)
	}
	if s.loops == 0 || s.shortest > (s.finish-s.begin)/s.loops {
		t.Errorf("%d loops with a shortest gap of %d in %d ticks", s.loops, s.shortest, s.finish-s.begin)
	}
	if s.interruptions != 0 {
		t.Errorf("%d interruptions of half an eternity", s.interruptions)
	}
}

// TestSpinRecordsEveryGap: with a threshold of nothing, every turn is an interruption, and the gaps follow each
// other without a hole.
func TestSpinRecordsEveryGap(t *testing.T) {
	const room = 100
	s, gaps := ticksOf(1_000_000, 0, room)
	if s.interruptions != s.loops {
		t.Errorf("%d interruptions in %d loops", s.interruptions, s.loops)
	}
	if s.loops <= room {
		t.Fatalf("%d loops fill no room of %d", s.loops, room)
	}
	for i := range gaps[:room-1] {
		if gaps[i].at+gaps[i].length != gaps[i+1].at {
			t.Fatalf("gap %d ends at %d, the next begins at %d", i, gaps[i].at+gaps[i].length, gaps[i+1].at)
		}
	}
	if gaps[0].at != s.begin {
		t.Errorf("the first gap begins at %d, want %d", gaps[0].at, s.begin)
	}
	if gaps[room] != (gap{}) {
		t.Errorf("the loop wrote beyond its room: %+v", gaps[room])
	}
}

func BenchmarkSpin(b *testing.B) {
	var loops uint64
	for b.Loop() {
		s, _ := ticksOf(10_000_000, 1<<62, 0)
		loops = s.loops
	}
	b.ReportMetric(10_000_000/float64(loops), "ticks/loop")
}
