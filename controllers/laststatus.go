// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lastStatuses remembers the status of each object of a kind that was sent last. The cache may not show it yet, and its coming
// there starts no pass: a status that changes to and fro must not be taken for written because the cache shows it still.
type lastStatuses[S any] struct {
	same  func(a, b *S) bool
	mutex sync.Mutex
	sent  map[client.ObjectKey]sentStatus[S]
}

type sentStatus[S any] struct {
	of     types.UID
	status *S
}

func newLastStatuses[S any](same func(a, b *S) bool) *lastStatuses[S] {
	return &lastStatuses[S]{same: same, sent: map[client.ObjectKey]sentStatus[S]{}}
}

// isWritten reports whether an object, whose status is in the cache, needs no write to have the next one. If it does, the next
// one counts as sent: a write whose answer is lost may have been done.
func (l *lastStatuses[S]) isWritten(object client.Object, cached, next *S) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	key := client.ObjectKeyFromObject(object)
	last, found := l.sent[key]
	isLast := !found || last.of != object.GetUID() || l.same(last.status, next)
	if isLast && l.same(cached, next) {
		return true
	}
	l.sent[key] = sentStatus[S]{object.GetUID(), next}
	return false
}

// forget forgets an object that is gone.
func (l *lastStatuses[S]) forget(key client.ObjectKey) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	delete(l.sent, key)
}
