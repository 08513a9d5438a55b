// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cpus

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// Parse reads the kernel list format: "0-3,8", with the stride notation "0-31:2/8" of
// Documentation/admin-guide/kernel-parameters.rst. The empty string and "(null)", which
// /sys/devices/system/cpu/nohz_full prints when it holds no CPU, are the empty set.
func Parse(list string) (Set, error) {
	list = strings.TrimSpace(list)
	if list == "" || list == "(null)" {
		return Set{}, nil
	}
	var words []uint64
	named := 0
	for text := range strings.SplitSeq(list, ",") {
		e, err := parseElement(strings.TrimSpace(text))
		if err != nil {
			return Set{}, fmt.Errorf("CPU list %q: %w", abbreviate(list), err)
		}
		if named += e.size(); named > 2*(MaxCPU+1) {
			return Set{}, fmt.Errorf("CPU list %q repeats CPUs more often than any kernel does", abbreviate(list))
		}
		words = e.addTo(words)
	}
	return Set{words}, nil
}

// Normal writes a list in its shortest form; a text that is none stays as it is.
func Normal(list string) string {
	set, err := Parse(list)
	if err != nil {
		return list
	}
	return set.String()
}

// ParseArgument reads a list as the kernel does on its command line (bitmap_parselist of lib/bitmap-str.c): commas and
// white space separate elements, empty ones do not count, "all" stands for all CPUs and "N" for the last one. Possible are
// the CPUs that a kernel has room for; where they are empty, that is where they are not known, "all" and "N" are errors.
// So is a CPU above the last possible one, and the kernel then ignores the whole list.
func ParseArgument(list string, possible Set) (Set, error) {
	parts := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r >= '\t' && r <= '\r' })
	for i, part := range parts {
		if len(part) >= 3 && strings.EqualFold(part[:3], "all") {
			parts[i] = "0-N" + part[3:]
		}
	}
	text := strings.Join(parts, ",")
	if !possible.IsEmpty() {
		text = strings.ReplaceAll(text, "N", strconv.Itoa(possible.Last()))
	}
	set, err := Parse(text)
	if err == nil && !possible.IsEmpty() && set.Last() > possible.Last() {
		return Set{}, fmt.Errorf("CPU list %q names CPU %d, and the last possible one is %d", abbreviate(list), set.Last(), possible.Last())
	}
	return set, err
}

// element is one element of a list: of every group of CPUs from first to last, the first used ones. A
// plain range uses every CPU of groups of one.
type element struct{ first, last, used, group int }

// size returns how many CPUs the element names, at least.
func (e element) size() int {
	return (e.last-e.first)/e.group*e.used + 1
}

func (e element) addTo(words []uint64) []uint64 {
	if e.used == e.group {
		return withRange(words, e.first, e.last)
	}
	for start := e.first; start <= e.last; start += e.group {
		words = withRange(words, start, min(start+e.used-1, e.last))
	}
	return words
}

// parseElement reads one "N", "N-M" or "N-M:used/group" of a list.
func parseElement(text string) (element, error) {
	span, stride, strided := strings.Cut(text, ":")
	from, to, ranged := strings.Cut(span, "-")
	first, err := parseID(from)
	if err != nil {
		return element{}, err
	}
	last := first
	if ranged {
		if last, err = parseID(to); err != nil {
			return element{}, err
		}
	}
	if last < first {
		return element{}, fmt.Errorf("range %q runs backwards", span)
	}
	if !strided {
		return element{first, last, 1, 1}, nil
	}
	if !ranged {
		return element{}, fmt.Errorf("%q has a stride but no range", text)
	}
	used, group, err := parseStride(stride)
	return element{first, last, used, group}, err
}

func parseStride(stride string) (used, group int, err error) {
	left, right, ok := strings.Cut(stride, "/")
	if !ok {
		return 0, 0, fmt.Errorf("stride %q is not of the form used/group", abbreviate(stride))
	}
	if used, err = parseID(left); err != nil {
		return 0, 0, err
	}
	if group, err = parseID(right); err != nil {
		return 0, 0, err
	}
	if group == 0 || used == 0 || used > group {
		return 0, 0, fmt.Errorf("stride %q must satisfy 0 < used <= group", stride)
	}
	return used, group, nil
}

func parseID(text string) (int, error) {
	id, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%q is not a CPU number", abbreviate(text))
	}
	if id > MaxCPU {
		return 0, fmt.Errorf("CPU %d is above the largest possible CPU %d", id, MaxCPU)
	}
	return int(id), nil
}

// ParseMask reads the kernel mask format: hexadecimal groups of 32 bits separated by commas, the
// highest first ("ff,ffffffff"), as in /proc/irq/default_smp_affinity.
func ParseMask(mask string) (Set, error) {
	mask = strings.TrimSpace(mask)
	groups := strings.Count(mask, ",") + 1
	if groups > (MaxCPU+1)/32 {
		return Set{}, fmt.Errorf("CPU mask %q is longer than %d CPUs", abbreviate(mask), MaxCPU+1)
	}
	words := make([]uint64, (groups+1)/2)
	for text := range strings.SplitSeq(mask, ",") {
		value, err := strconv.ParseUint(text, 16, 32)
		if err != nil {
			return Set{}, fmt.Errorf("CPU mask %q: %q is not a 32-bit hexadecimal group", abbreviate(mask), abbreviate(text))
		}
		groups--
		words[groups/2] |= value << (groups % 2 * 32)
	}
	return trimmed(words), nil
}

// abbreviate keeps quoted input short enough for an error message.
func abbreviate(text string) string {
	return shorten.Sentence(text, 40)
}
