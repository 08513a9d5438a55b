// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cpus

import (
	"fmt"
	"strconv"
	"strings"
)

// Parse reads the kernel list format: "0-3,8", with the stride notation "0-31:2/8" of
// Documentation/admin-guide/kernel-parameters.rst. The empty string and "(null)", which
// /sys/devices/system/cpu/nohz_full prints when it holds no CPU, are the empty set.
func Parse(list string) (Set, error) {
	list = strings.TrimSpace(list)
	if list == "" || list == "(null)" {
		return Set{}, nil
	}
	var ids []int
	for element := range strings.SplitSeq(list, ",") {
		more, err := parseElement(strings.TrimSpace(element))
		if err != nil {
			return Set{}, fmt.Errorf("CPU list %q: %w", abbreviate(list), err)
		}
		ids = append(ids, more...)
		if len(ids) > 2*(MaxCPU+1) {
			return Set{}, fmt.Errorf("CPU list %q repeats CPUs more often than any kernel does", abbreviate(list))
		}
	}
	return Of(ids...), nil
}

// parseElement reads one "N", "N-M" or "N-M:used/group" of a list.
func parseElement(element string) ([]int, error) {
	span, stride, strided := strings.Cut(element, ":")
	from, to, ranged := strings.Cut(span, "-")
	first, err := parseID(from)
	if err != nil {
		return nil, err
	}
	last := first
	if ranged {
		if last, err = parseID(to); err != nil {
			return nil, err
		}
	}
	if last < first {
		return nil, fmt.Errorf("range %q runs backwards", span)
	}
	used, group := 1, 1
	if strided {
		if !ranged {
			return nil, fmt.Errorf("%q has a stride but no range", element)
		}
		if used, group, err = parseStride(stride); err != nil {
			return nil, err
		}
	}
	var ids []int
	for start := first; start <= last; start += group {
		for id := start; id < start+used && id <= last; id++ {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func parseStride(stride string) (used, group int, err error) {
	left, right, ok := strings.Cut(stride, "/")
	if !ok {
		return 0, 0, fmt.Errorf("stride %q is not of the form used/group", stride)
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
	words := strings.Split(mask, ",")
	if len(words) > (MaxCPU+1)/32 {
		return Set{}, fmt.Errorf("CPU mask %q is longer than %d CPUs", abbreviate(mask), MaxCPU+1)
	}
	var ids []int
	for i, word := range words {
		bits, err := strconv.ParseUint(word, 16, 32)
		if err != nil {
			return Set{}, fmt.Errorf("CPU mask %q: %q is not a 32-bit hexadecimal group", abbreviate(mask), abbreviate(word))
		}
		base := (len(words) - 1 - i) * 32
		for bit := range 32 {
			if bits&(1<<bit) != 0 {
				ids = append(ids, base+bit)
			}
		}
	}
	return Of(ids...), nil
}

// abbreviate keeps quoted input short enough for an error message.
func abbreviate(text string) string {
	const limit = 40
	if len(text) <= limit {
		return text
	}
	return text[:limit] + "…"
}
