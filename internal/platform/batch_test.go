// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package platform

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// writesOf makes a write of each number, and counts those that were carried out.
func writesOf(count int, carriedOut *atomic.Int64, do func(i int) error) []NodeWrite {
	writes := make([]NodeWrite, 0, count)
	for i := range count {
		writes = append(writes, NodeWrite{Do: func(context.Context) error {
			carriedOut.Add(1)
			return do(i)
		}})
	}
	return writes
}

func TestWriteNodesInBatches(t *testing.T) {
	cases := map[string]struct {
		nodes   int
		fails   func(i int) bool
		written int64
		left    bool
		failure string
	}{
		"none":                           {},
		"few":                            {nodes: 3, written: 3},
		"exactly as many as one go":      {nodes: MaximumBatch, written: MaximumBatch},
		"one fails, the others do not":   {nodes: 40, fails: func(i int) bool { return i == 7 }, written: 40, failure: "node 7"},
		"many fail, and some are told":   {nodes: 40, fails: func(int) bool { return true }, written: 40, failure: "(and 37 more)"},
		"those that fail hold up nobody": {nodes: MaximumBatch + 20, fails: func(i int) bool { return i < 20 }, written: MaximumBatch + 20, failure: "(and 17 more)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var carriedOut atomic.Int64
			left, err := WriteNodes(t.Context(), writesOf(tc.nodes, &carriedOut, func(i int) error {
				if tc.fails != nil && tc.fails(i) {
					return fmt.Errorf("node %d", i)
				}
				return nil
			}))
			if left != tc.left || carriedOut.Load() != tc.written {
				t.Errorf("WriteNodes() carried out %d and left some: %v, want %d, %v", carriedOut.Load(), left, tc.written, tc.left)
			}
			if (err == nil) != (tc.failure == "") || err != nil && !strings.Contains(err.Error(), tc.failure) {
				t.Errorf("WriteNodes() = %v, want %q", err, tc.failure)
			}
		})
	}
}

// TestWriteNodesLeavesSome: writes that are under way when the go is full are finished.
func TestWriteNodesLeavesSome(t *testing.T) {
	var carriedOut atomic.Int64
	left, err := WriteNodes(t.Context(), writesOf(3*MaximumBatch, &carriedOut, func(int) error { return nil }))
	if n := carriedOut.Load(); err != nil || !left || n < MaximumBatch || n > MaximumBatch+parallelWrites {
		t.Errorf("WriteNodes() carried out %d and left some: %v, %v", n, left, err)
	}
}

func TestWriteNodesTellsConflicts(t *testing.T) {
	conflict := apierrors.NewConflict(corev1.Resource("nodes"), "n", errors.New("it has changed"))
	var carriedOut atomic.Int64
	_, err := WriteNodes(t.Context(), writesOf(4, &carriedOut, func(int) error { return conflict }))
	if !apierrors.IsConflict(err) {
		t.Errorf("WriteNodes() = %v, want a conflict", err)
	}
	_, err = WriteNodes(t.Context(), writesOf(4, &carriedOut, func(i int) error {
		if i == 3 {
			return errors.New("the disk is full")
		}
		return conflict
	}))
	if err == nil || apierrors.IsConflict(err) || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("WriteNodes() = %v, want the failure that is no conflict", err)
	}
}

func TestWriteNodesWaitsForTheCache(t *testing.T) {
	asked := 0
	writes := []NodeWrite{{
		Do: func(context.Context) error { return nil },
		IsSeen: func(context.Context) bool {
			asked++
			return asked == 3
		},
	}}
	if left, err := WriteNodes(t.Context(), writes); left || err != nil || asked != 3 {
		t.Errorf("WriteNodes() = %v, %v after asking %d times, want 3", left, err, asked)
	}
	ended, cancel := context.WithCancel(t.Context())
	writes[0].IsSeen = func(context.Context) bool {
		cancel()
		return false
	}
	if _, err := WriteNodes(ended, writes); !errors.Is(err, context.Canceled) {
		t.Errorf("WriteNodes() = %v, want the end of the context", err)
	}
}
