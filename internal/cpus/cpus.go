// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package cpus holds sets of logical CPUs and the two notations in which Linux writes them.
package cpus

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/cpuset"
)

// MaxCPU is the highest CPU number that is accepted: the largest NR_CPUS of a distribution kernel is
// 8192 (arch/x86/Kconfig, MAXSMP). A larger number in a file or a field is an error, which also keeps
// a hostile "0-4294967295" from exhausting memory.
const MaxCPU = 8191

// Set is an immutable set of logical CPU numbers. The zero value is the empty set. It is written in
// kernel list format ("0-3,8") in JSON and text.
type Set struct {
	set cpuset.CPUSet
}

// Of returns the set that holds the given CPUs.
func Of(ids ...int) Set { return Set{cpuset.New(ids...)} }

// Len returns the number of CPUs in the set.
func (s Set) Len() int { return s.set.Size() }

// IsEmpty tells whether the set holds no CPU.
func (s Set) IsEmpty() bool { return s.set.IsEmpty() }

// Contains tells whether the CPU is in the set.
func (s Set) Contains(id int) bool { return s.set.Contains(id) }

// IDs returns the CPU numbers in ascending order.
func (s Set) IDs() []int { return s.set.List() }

// First returns the lowest CPU number, or -1 for the empty set.
func (s Set) First() int {
	if ids := s.IDs(); len(ids) > 0 {
		return ids[0]
	}
	return -1
}

// Last returns the highest CPU number, or -1 for the empty set.
func (s Set) Last() int {
	if ids := s.IDs(); len(ids) > 0 {
		return ids[len(ids)-1]
	}
	return -1
}

// Union returns the CPUs that are in s or in any of the others.
func (s Set) Union(others ...Set) Set {
	plain := make([]cpuset.CPUSet, len(others))
	for i, o := range others {
		plain[i] = o.set
	}
	return Set{s.set.Union(plain...)}
}

// Intersection returns the CPUs that are in both sets.
func (s Set) Intersection(o Set) Set { return Set{s.set.Intersection(o.set)} }

// Difference returns the CPUs of s that are not in o.
func (s Set) Difference(o Set) Set { return Set{s.set.Difference(o.set)} }

// Equal tells whether both sets hold the same CPUs. It does not use CPUSet.Equals, to which the zero
// value and an empty set made by an operation differ.
func (s Set) Equal(o Set) bool { return s.Len() == o.Len() && s.IsSubsetOf(o) }

// IsSubsetOf tells whether every CPU of s is in o.
func (s Set) IsSubsetOf(o Set) bool { return s.set.IsSubsetOf(o.set) }

// Overlaps tells whether the sets share a CPU.
func (s Set) Overlaps(o Set) bool { return !s.Intersection(o).IsEmpty() }

// Filter returns the CPUs for which keep is true.
func (s Set) Filter(keep func(id int) bool) Set {
	var ids []int
	for _, id := range s.IDs() {
		if keep(id) {
			ids = append(ids, id)
		}
	}
	return Of(ids...)
}

// String returns the kernel list format: "0-3,8", or "" for the empty set.
func (s Set) String() string { return s.set.String() }

// Mask returns the kernel mask format of /proc/irq/default_smp_affinity and of the workqueue
// cpumasks: comma-separated groups of 32 bits, the highest first ("ff,ffffffff").
func (s Set) Mask() string {
	words := make([]uint32, s.Last()/32+1)
	for _, id := range s.IDs() {
		words[id/32] |= 1 << (id % 32)
	}
	var b strings.Builder
	for i, word := range slices.Backward(words) {
		if i == len(words)-1 {
			fmt.Fprintf(&b, "%x", word)
			continue
		}
		fmt.Fprintf(&b, ",%08x", word)
	}
	return b.String()
}

// MarshalJSON writes the kernel list format.
func (s Set) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// UnmarshalJSON reads the kernel list format.
func (s *Set) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("reading a CPU list: %w", err)
	}
	parsed, err := Parse(text)
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}
