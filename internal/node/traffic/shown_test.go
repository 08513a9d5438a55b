// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package traffic

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// memoryOf is what the program shows: its fields, and counts of buckets.
func memoryOf(fields [shownFields]uint64, counts map[int]uint64) []byte {
	memory := make([]byte, shownSize)
	for i, value := range fields {
		binary.NativeEndian.PutUint64(memory[8*i:], value)
	}
	for bucket, count := range counts {
		binary.NativeEndian.PutUint64(memory[8*(shownFields+bucket):], count)
	}
	return memory
}

func TestParseShown(t *testing.T) {
	got, whole := parseShown(memoryOf([...]uint64{4, 3, 256, 50_000, 9_000, 20_000, 0, 3, 1_000_000}, map[int]uint64{10: 12_000, 64: 8_000}))
	want := Progress{
		Phase: PhaseOnSchedule, Bytes: 256, PerSecond: 50_000, Sent: 9_000, Late: 3, Samples: 20_000, LongestNanoseconds: 1_000_000,
		Percentiles: []latency.Percentile{{Percent: 50, Nanoseconds: 10}, {Percent: 90, Nanoseconds: 65}, {Percent: 99, Nanoseconds: 65}},
	}
	if diff := cmp.Diff(want, got); diff != "" || !whole {
		t.Errorf("%v %s", whole, diff)
	}
	for name, memory := range map[string][]byte{
		"nothing begun":        memoryOf([...]uint64{0, 0, 0, 0, 0, 0, 0, 0, 0}, nil),
		"a part just begins":   memoryOf([...]uint64{3, 2, 64, 0, 0, 0, 0, 0, 0}, nil),
		"no phase of ours":     memoryOf([...]uint64{2, 4, 64, 0, 0, 0, 0, 0, 0}, nil),
		"another length":       make([]byte, shownSize-8),
		"nothing at all to do": nil,
	} {
		if p, whole := parseShown(memory); whole {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if few, _ := parseShown(memoryOf([...]uint64{2, 2, 64, 0, 199, 199, 0, 0, 9}, map[int]uint64{9: 199})); len(few.Percentiles) != 0 {
		t.Errorf("199 samples carry no percentile: %+v", few)
	}
}

// TestBuckets: they follow each other without a hole, and are at most a 32nd of their times wide.
func TestBuckets(t *testing.T) {
	before := int64(-1)
	for bucket := range shownBuckets {
		largest := largestIn(bucket)
		if width := largest - before; width < 1 || float64(width) > math.Max(1, float64(largest)/perPower) {
			t.Errorf("bucket %d goes from %d to %d", bucket, before+1, largest)
		}
		before = largest
	}
	if before != 1<<40-1 {
		t.Errorf("the last bucket ends with %d", before)
	}
}

func FuzzParseShown(f *testing.F) {
	f.Add(memoryOf([...]uint64{4, 3, 256, 50_000, 9_000, 20_000, 0, 3, 1_000_000}, map[int]uint64{10: 12_000, 64: 8_000}))
	f.Add(memoryOf([...]uint64{4, 2, 1, 0, 0, 0, 0, 0, 0}, map[int]uint64{0: math.MaxUint64, 1: 1}))
	f.Fuzz(func(t *testing.T, memory []byte) {
		p, _ := parseShown(memory)
		before := int64(0)
		for _, percentile := range p.Percentiles {
			if percentile.Nanoseconds < before {
				t.Errorf("%+v", p.Percentiles)
			}
			before = percentile.Nanoseconds
		}
	})
}
