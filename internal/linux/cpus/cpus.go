// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package cpus holds sets of logical CPUs and the two notations in which Linux writes them. It is pure.
package cpus

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// MaxCPU is the highest CPU number that is accepted: the largest NR_CPUS of a distribution kernel is
// 8192 (arch/x86/Kconfig, MAXSMP). A larger number in a file or a field is an error, which also keeps
// a hostile "0-4294967295" from exhausting memory.
const MaxCPU = 8191

const wordBits = 64

// Set is an immutable set of logical CPU numbers. The zero value is the empty set. It is written in
// kernel list format ("0-3,8") in JSON and text.
//
// It is a bitmap and not k8s.io/utils/cpuset, whose map costs some 40 bytes for each CPU: a host with N
// CPUs shows N lists of up to N CPUs for every level of its caches.
type Set struct {
	// words hold 64 CPUs each; the last one is never zero, so that equal sets have equal words.
	words []uint64
}

// Of returns the set that holds the given CPUs. Numbers that no kernel has, negative or above MaxCPU, are
// left out.
func Of(ids ...int) Set {
	var words []uint64
	for _, id := range ids {
		if id >= 0 && id <= MaxCPU {
			words = withRange(words, id, id)
		}
	}
	return Set{words}
}

// withRange adds the CPUs from first to last, and makes room for them.
func withRange(words []uint64, first, last int) []uint64 {
	if missing := last/wordBits + 1 - len(words); missing > 0 {
		words = append(words, make([]uint64, missing)...)
	}
	for id := first; id <= last; {
		if id%wordBits == 0 && last-id >= wordBits {
			words[id/wordBits] = ^uint64(0)
			id += wordBits
			continue
		}
		words[id/wordBits] |= 1 << (id % wordBits)
		id++
	}
	return words
}

// trimmed makes a set of words that may end in zeros.
func trimmed(words []uint64) Set {
	for len(words) > 0 && words[len(words)-1] == 0 {
		words = words[:len(words)-1]
	}
	if len(words) == 0 {
		return Set{}
	}
	return Set{words}
}

// Len returns the number of CPUs in the set.
func (s Set) Len() int {
	n := 0
	for _, word := range s.words {
		n += bits.OnesCount64(word)
	}
	return n
}

// IsEmpty reports whether the set holds no CPU.
func (s Set) IsEmpty() bool { return len(s.words) == 0 }

// Contains reports whether the CPU is in the set.
func (s Set) Contains(id int) bool {
	return id >= 0 && id/wordBits < len(s.words) && s.words[id/wordBits]&(1<<(id%wordBits)) != 0
}

// IDs returns the CPU numbers in ascending order.
func (s Set) IDs() []int {
	ids := make([]int, 0, s.Len())
	for i, word := range s.words {
		for ; word != 0; word &= word - 1 {
			ids = append(ids, i*wordBits+bits.TrailingZeros64(word))
		}
	}
	return ids
}

// First returns the lowest CPU number, or -1 for the empty set.
func (s Set) First() int {
	for i, word := range s.words {
		if word != 0 {
			return i*wordBits + bits.TrailingZeros64(word)
		}
	}
	return -1
}

// Last returns the highest CPU number, or -1 for the empty set.
func (s Set) Last() int {
	if s.IsEmpty() {
		return -1
	}
	return len(s.words)*wordBits - 1 - bits.LeadingZeros64(s.words[len(s.words)-1])
}

// Union returns the CPUs that are in s or in any of the others.
func (s Set) Union(others ...Set) Set {
	words := slices.Clone(s.words)
	for _, o := range others {
		if missing := len(o.words) - len(words); missing > 0 {
			words = append(words, make([]uint64, missing)...)
		}
		for i, word := range o.words {
			words[i] |= word
		}
	}
	return Set{words}
}

// Intersection returns the CPUs that are in both sets.
func (s Set) Intersection(o Set) Set {
	words := slices.Clone(s.words[:min(len(s.words), len(o.words))])
	for i := range words {
		words[i] &= o.words[i]
	}
	return trimmed(words)
}

// Difference returns the CPUs of s that are not in o.
func (s Set) Difference(o Set) Set {
	words := slices.Clone(s.words)
	for i := range min(len(s.words), len(o.words)) {
		words[i] &^= o.words[i]
	}
	return trimmed(words)
}

// Equal reports whether both sets hold the same CPUs.
func (s Set) Equal(o Set) bool { return slices.Equal(s.words, o.words) }

// IsSubsetOf reports whether every CPU of s is in o.
func (s Set) IsSubsetOf(o Set) bool { return s.Difference(o).IsEmpty() }

// Overlaps reports whether the sets share a CPU.
func (s Set) Overlaps(o Set) bool {
	for i := range min(len(s.words), len(o.words)) {
		if s.words[i]&o.words[i] != 0 {
			return true
		}
	}
	return false
}

// Filter returns the CPUs for which keep is true.
func (s Set) Filter(keep func(id int) bool) Set {
	return Of(slices.DeleteFunc(s.IDs(), func(id int) bool { return !keep(id) })...)
}

// String returns the kernel list format: "0-3,8", or "" for the empty set.
func (s Set) String() string {
	var b strings.Builder
	ids := s.IDs()
	for i := 0; i < len(ids); {
		last := i
		for last+1 < len(ids) && ids[last+1] == ids[last]+1 {
			last++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(ids[i]))
		if last > i {
			b.WriteString("-" + strconv.Itoa(ids[last]))
		}
		i = last + 1
	}
	return b.String()
}

// Name is "CPU 5" or "CPUs 2-5".
func (s Set) Name() string {
	if s.Len() == 1 {
		return "CPU " + s.String()
	}
	return "CPUs " + s.String()
}

// Mask returns the kernel mask format of /proc/irq/default_smp_affinity and of the workqueue
// cpumasks: comma-separated groups of 32 bits, the highest first ("ff,ffffffff").
func (s Set) Mask() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%x", s.group(s.Last()/32))
	for i := s.Last()/32 - 1; i >= 0; i-- {
		fmt.Fprintf(&b, ",%08x", s.group(i))
	}
	return b.String()
}

// group returns the CPUs from 32*i on as bits.
func (s Set) group(i int) uint32 {
	if i/2 >= len(s.words) {
		return 0
	}
	return uint32(s.words[i/2] >> (i % 2 * 32))
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
