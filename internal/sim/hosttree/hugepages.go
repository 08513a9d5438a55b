// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hosttree

import (
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cmdline"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/setting"
)

// hugepages are the pools that the kernel reserves at boot.
type hugepages struct {
	// sizes that the kernel offers, in KiB, ascending.
	sizes []int64
	// defaultSize is Hugepagesize of /proc/meminfo.
	defaultSize int64
	// counts by size and NUMA node.
	counts map[int64][]int64
}

// hugepageSizes are what arch/x86/mm/hugetlbpage.c and arch/arm64/mm/hugetlbpage.c register, the default
// (one page middle directory) last.
func hugepageSizes(architecture string, largePages bool) (sizes []int64, defaultSize int64) {
	const mebibyte = 1024
	switch {
	case architecture == "amd64":
		return []int64{2 * mebibyte, 1024 * mebibyte}, 2 * mebibyte
	case largePages:
		return []int64{2 * mebibyte, 512 * mebibyte, 16 * 1024 * mebibyte}, 512 * mebibyte
	default:
		return []int64{64, 2 * mebibyte, 32 * mebibyte, 1024 * mebibyte}, 2 * mebibyte
	}
}

// reserve follows mm/hugetlb.c: hugepages= counts pages of the last hugepagesz= or default_hugepagesz=,
// else of the default size; a size that the kernel does not offer voids the next hugepages=. The first
// count for a size stands. A plain count is dealt out to the NUMA nodes in turn as far as their memory
// reaches; "0:16,1:64" names the NUMA nodes.
func reserve(line cmdline.Line, m Machine, largePages bool) hugepages {
	h := hugepages{counts: map[int64][]int64{}}
	h.sizes, h.defaultSize = hugepageSizes(m.Architecture, largePages)
	for _, size := range h.sizes {
		h.counts[size] = make([]int64, m.numaNodes())
	}
	h.setDefault(line)
	size, counted := h.defaultSize, map[int64]bool{}
	for _, arg := range line.Args() {
		switch arg.Name {
		case "hugepagesz", "default_hugepagesz":
			size = h.parseSize(arg.Value)
		case "hugepages":
			if size != 0 && !counted[size] {
				h.count(size, arg.Value, m.MemoryBytesPerNUMANode)
				counted[size] = true
			}
		}
	}
	return h
}

func (h *hugepages) setDefault(line cmdline.Line) {
	// default_hugepagesz_setup of mm/hugetlb.c takes the first one.
	if all := line.All("default_hugepagesz"); len(all) > 0 {
		if size := h.parseSize(all[0].Value); size != 0 {
			h.defaultSize = size
		}
	}
}

// parseSize reads a size in KiB; 0 when the kernel does not offer it.
func (h *hugepages) parseSize(text string) int64 {
	bytes, _ := setting.Size(text)
	for _, size := range h.sizes {
		if uint64(size)<<10 == bytes {
			return size
		}
	}
	return 0
}

// count reserves what hugepages= asks for.
func (h *hugepages) count(size int64, value string, memory int64) {
	if total, err := strconv.ParseUint(value, 10, 62); err == nil {
		h.spread(size, int64(total), memory)
		return
	}
	for element := range strings.SplitSeq(value, ",") {
		node, count, _ := strings.Cut(element, ":")
		index, nodeErr := strconv.Atoi(node)
		wanted, countErr := strconv.ParseUint(count, 10, 62)
		if nodeErr != nil || countErr != nil || index < 0 || index >= len(h.counts[size]) {
			return
		}
		h.counts[size][index] = min(int64(wanted), h.room(index, size, memory))
	}
}

// spread deals pages out one by one, as for_each_node_mask_to_alloc does.
func (h *hugepages) spread(size, total, memory int64) {
	for placed := true; total > 0 && placed; {
		placed = false
		for node := range h.counts[size] {
			if total > 0 && h.room(node, size, memory) > 0 {
				h.counts[size][node]++
				total--
				placed = true
			}
		}
	}
}

// room is how many more pages of the size fit on a NUMA node, of whose memory the kernel itself needs a
// twentieth in this simulation.
func (h *hugepages) room(node int, size, memory int64) int64 {
	return max(0, memory/1024*19/20-h.reservedKiB(node)) / size
}

// reservedKiB is the memory that the pools of a NUMA node hold.
func (h *hugepages) reservedKiB(node int) int64 {
	var held int64
	for size, counts := range h.counts {
		held += size * counts[node]
	}
	return held
}

// total is the number of pages of a size on all NUMA nodes.
func (h *hugepages) total(size int64) int64 {
	var total int64
	for _, count := range h.counts[size] {
		total += count
	}
	return total
}
