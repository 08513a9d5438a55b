// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"maps"
	"weak"
)

// memory remembers one value for each node of an owner, a profile or a pool: what was made last. It is not safe for concurrent
// use.
type memory[K comparable, V any] map[string]map[string]remembered[K, V]

// remembered is a value and what it was made from.
type remembered[K comparable, V any] struct {
	from  K
	value V
}

// get returns what was made for a node of the owner, if it was made from this.
func (m memory[K, V]) get(owner, node string, from K) (value V, found bool) {
	last, found := m[owner][node]
	if !found || last.from != from {
		return value, false
	}
	return last.value, true
}

// put remembers a value in the place of the former one.
func (m memory[K, V]) put(owner, node string, from K, value V) {
	if m[owner] == nil {
		m[owner] = map[string]remembered[K, V]{}
	}
	m[owner][node] = remembered[K, V]{from: from, value: value}
}

// retain forgets nodes that the owner no longer has: at most as many are remembered as are named. None forgets the owner.
func (m memory[K, V]) retain(owner string, nodes []string) {
	switch {
	case len(nodes) == 0:
		delete(m, owner)
	case len(m[owner]) > len(nodes):
		kept := make(map[string]remembered[K, V], len(nodes))
		for _, node := range nodes {
			if last, found := m[owner][node]; found {
				kept[node] = last
			}
		}
		m[owner] = kept
	}
}

// minimumShared is how many values are shared before the first look for those that are gone.
const minimumShared = 64

// shared finds values by what they were made from, as long as somebody else keeps them. The zero value is empty. It is not safe
// for concurrent use.
type shared[K comparable, V any] struct {
	values map[K]weak.Pointer[V]
	// limit is the number of values at which those that are gone are looked for.
	limit int
}

// get returns a value that is still in use; nil if there is none.
func (s *shared[K, V]) get(key K) *V { return s.values[key].Value() }

// put makes a value known, which the caller keeps.
func (s *shared[K, V]) put(key K, value *V) {
	if s.values == nil {
		s.values, s.limit = map[K]weak.Pointer[V]{}, minimumShared
	}
	if len(s.values) >= s.limit {
		maps.DeleteFunc(s.values, func(_ K, p weak.Pointer[V]) bool { return p.Value() == nil })
		s.limit = max(minimumShared, 2*len(s.values))
	}
	s.values[key] = weak.Make(value)
}
