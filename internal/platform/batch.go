// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package platform

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// parallelWrites is how many writes about single nodes are under way at once. The API server shares itself out between
	// its clients (API priority and fairness), and this many use their share.
	parallelWrites = 16
	// MaximumBatch is how many nodes are written in one go. What moves the fleet, and the status, are looked at again before
	// the next go, so that neither waits for thousands of nodes.
	MaximumBatch = 256
	// NextBatch is when to go on with what was left.
	NextBatch = time.Millisecond

	// seenTimeout is for how long to wait until the cache shows what was written, and seenPause how often it is asked.
	seenTimeout = 10 * time.Second
	seenPause   = 5 * time.Millisecond
	// toldFailures bounds the failures of one go that are told.
	toldFailures = 3
)

// NodeWrite is a write about one node. None of a batch counts on another.
type NodeWrite struct {
	// Do writes.
	Do func(context.Context) error
	// IsSeen reports whether the cache shows what was written; nil when that does not matter.
	IsSeen func(context.Context) bool
}

// WriteNodes carries out at most MaximumBatch writes, several at once, and waits until the cache shows them, so that who
// decides next does not write them again. It reports whether others are left. A node that cannot be written keeps no
// other one from it: its error comes back in the end. The error is a conflict only when all failures are conflicts.
func WriteNodes(ctx context.Context, writes []NodeWrite) (left bool, err error) {
	done := &batch{}
	var group errgroup.Group
	group.SetLimit(parallelWrites)
	for i := range writes {
		if left = done.size() >= MaximumBatch; left || ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			done.add(&writes[i], writes[i].Do(ctx))
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return left, err
	}
	done.await(ctx)
	return left, errors.Join(ctx.Err(), done.failure())
}

// batch is what has become of writes.
type batch struct {
	mutex               sync.Mutex
	written             []*NodeWrite
	failures, conflicts []error
}

func (b *batch) add(write *NodeWrite, err error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	switch {
	case err == nil:
		b.written = append(b.written, write)
	case apierrors.IsConflict(err):
		b.conflicts = append(b.conflicts, err)
	default:
		b.failures = append(b.failures, err)
	}
}

// size is how many writes have succeeded.
func (b *batch) size() int {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return len(b.written)
}

// failure is what went wrong; nil when nothing did.
func (b *batch) failure() error {
	all := b.failures
	if len(all) == 0 {
		all = b.conflicts
	}
	if more := len(all) - toldFailures; more > 0 {
		return fmt.Errorf("%w\n(and %d more)", errors.Join(all[:toldFailures]...), more)
	}
	return errors.Join(all...)
}

// await waits until the cache shows what was written. One that lags behind is no failure: deciding again from an old view
// costs requests, and no more.
func (b *batch) await(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, seenTimeout)
	defer cancel()
	ticker := time.NewTicker(seenPause)
	defer ticker.Stop()
	for _, write := range b.written {
		for write.IsSeen != nil && !write.IsSeen(ctx) {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}
}
