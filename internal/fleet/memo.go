// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

// memo remembers at most twice its limit of values. When the younger half is full, the older half, which holds
// what was not asked for since, is forgotten. It is not safe for concurrent use.
type memo[K comparable, V any] struct {
	limit      int
	young, old map[K]V
}

func newMemo[K comparable, V any](limit int) *memo[K, V] {
	return &memo[K, V]{limit: limit, young: make(map[K]V)}
}

// get returns what was put under the key, and whether it is still remembered.
func (m *memo[K, V]) get(key K) (V, bool) {
	if value, found := m.young[key]; found {
		return value, true
	}
	value, found := m.old[key]
	if found {
		m.put(key, value)
	}
	return value, found
}

// put remembers a value.
func (m *memo[K, V]) put(key K, value V) {
	if len(m.young) >= m.limit {
		m.young, m.old = make(map[K]V), m.young
	}
	m.young[key] = value
}
