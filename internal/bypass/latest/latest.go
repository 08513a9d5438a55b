// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package latest holds a value of which only the newest counts, and tells its readers when there is a newer one. A
// reader that was slow does not see what came in between.
package latest

import "sync"

// Value is the newest of the values that were set. The zero Value has none and is ready to use. It must not be copied.
type Value[T any] struct {
	mutex   sync.Mutex
	current T
	// changed is closed when current is replaced; nil while nobody has asked for it.
	changed chan struct{}
}

// Get returns the value, the zero T before the first one.
func (v *Value[T]) Get() T {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.current
}

// Watch returns the value and a channel that is closed when there is a newer one.
func (v *Value[T]) Watch() (T, <-chan struct{}) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.changed == nil {
		v.changed = make(chan struct{})
	}
	return v.current, v.changed
}

// Set replaces the value.
func (v *Value[T]) Set(next T) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.current = next
	if v.changed != nil {
		close(v.changed)
		v.changed = nil
	}
}
