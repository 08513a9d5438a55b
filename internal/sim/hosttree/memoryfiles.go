// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hosttree

import (
	"fmt"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/release"
)

const nodeFolder = "/sys/devices/system/node"

// writeNUMANodes writes what Documentation/ABI/stable/sysfs-devices-node describes. A NUMA node lists its
// online CPUs.
func (k *kernel) writeNUMANodes(t *tree) {
	members := k.groups(k.online, func(p place) int { return p.numaNode })
	for node := range k.numaNodes() {
		if _, some := members[node]; !some {
			members[node] = notationOf(cpus.Set{})
		}
		folder := fmt.Sprint(nodeFolder, "/node", node)
		t.masks(folder, "cpumap", "cpulist", members[node])
		t.file(folder+"/distance", strings.Trim(fmt.Sprint(k.Distances[node]), "[]"))
		total := k.MemoryBytesPerNUMANode / 1024
		free := total*9/10 - k.hugepages.reservedKiB(node)
		t.text(folder+"/meminfo", fmt.Sprintf("Node %[1]d MemTotal:       %[2]d kB\nNode %[1]d MemFree:        %[3]d kB\nNode %[1]d MemUsed:        %[4]d kB\n",
			node, total, max(free, 0), total-max(free, 0)))
		t.text(folder+"/numastat", "numa_hit 0\nnuma_miss 0\nnuma_foreign 0\ninterleave_hit 0\nlocal_node 0\nother_node 0\n")
		for _, size := range k.hugepages.sizes {
			pool := fmt.Sprintf("%s/hugepages/hugepages-%dkB", folder, size)
			t.file(pool+"/nr_hugepages", k.hugepages.counts[size][node])
			t.file(pool+"/free_hugepages", k.hugepages.counts[size][node])
			t.file(pool+"/surplus_hugepages", 0)
		}
	}
	// Lists of NUMA nodes have the notation of CPU lists.
	all := upTo(k.numaNodes())
	for _, name := range []string{"online", "possible", "has_memory", "has_normal_memory"} {
		t.file(nodeFolder+"/"+name, all)
	}
	t.file(nodeFolder+"/has_cpu", all.Filter(func(node int) bool { return members[node].list != "" }))
}

// upTo returns the numbers below n.
func upTo(n int) cpus.Set {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	return cpus.Of(numbers...)
}

// writeHugepages writes the pools of the whole machine (Documentation/admin-guide/mm/hugetlbpage.rst) and
// transparent hugepages and KSM (Documentation/admin-guide/mm/{transhuge,ksm}.rst). A real-time kernel is built without
// transparent hugepages (TRANSPARENT_HUGEPAGE in mm/Kconfig).
func (k *kernel) writeHugepages(t *tree) {
	for _, size := range k.hugepages.sizes {
		pool := fmt.Sprintf("/sys/kernel/mm/hugepages/hugepages-%dkB", size)
		t.file(pool+"/nr_hugepages", k.hugepages.total(size))
		t.file(pool+"/free_hugepages", k.hugepages.total(size))
		t.file(pool+"/resv_hugepages", 0)
		t.file(pool+"/surplus_hugepages", 0)
		t.file(pool+"/nr_overcommit_hugepages", 0)
	}
	if !k.realTime() {
		mode, _ := k.line.Get("transparent_hugepage")
		t.file(transparentFolder+"/enabled", choice(mode, "madvise", "always", "madvise", "never"))
		t.file(transparentFolder+"/shmem_enabled", choice("", "never", "always", "within_size", "advise", "never", "deny", "force"))
		t.file(transparentFolder+"/defrag", choice("", "madvise", "always", "defer", "defer+madvise", "madvise", "never"))
		t.file(transparentFolder+"/khugepaged/defrag", 1)
		k.writeTransparentSizes(t)
	}
	t.file("/sys/kernel/mm/ksm/run", 0)
	t.file("/sys/kernel/mm/ksm/pages_shared", 0)
}

const transparentFolder = "/sys/kernel/mm/transparent_hugepage"

// writeTransparentSizes writes the switches by size that Linux has since 6.8, of shared memory since 6.11: only the largest
// size does what all sizes do (Documentation/admin-guide/mm/transhuge.rst).
func (k *kernel) writeTransparentSizes(t *tree) {
	running, _ := release.Parse(k.release())
	if !running.AtLeast(6, 8) {
		return
	}
	smallest, largest := int64(16), int64(2048)
	if k.largePages() {
		smallest, largest = 128, 512*1024
	}
	for size := smallest; size <= largest; size *= 2 {
		mode := "never"
		if size == largest {
			mode = "inherit"
		}
		folder := fmt.Sprintf("%s/hugepages-%dkB", transparentFolder, size)
		t.file(folder+"/enabled", choice(mode, "", "always", "inherit", "madvise", "never"))
		if running.AtLeast(6, 11) {
			t.file(folder+"/shmem_enabled", choice(mode, "", "always", "inherit", "within_size", "advise", "never"))
		}
	}
}

// choice prints words with the chosen one in brackets, as sysfs does.
func choice(chosen, fallback string, words ...string) string {
	text := " " + strings.Join(words, " ") + " "
	if !strings.Contains(text, " "+chosen+" ") || chosen == "" {
		chosen = fallback
	}
	return strings.TrimSpace(strings.Replace(text, " "+chosen+" ", " ["+chosen+"] ", 1))
}

// memoryInformation is /proc/meminfo.
func (k *kernel) memoryInformation() string {
	total := k.MemoryBytesPerNUMANode / 1024 * int64(k.numaNodes())
	var reserved int64
	for node := range k.numaNodes() {
		reserved += k.hugepages.reservedKiB(node)
	}
	pages := k.hugepages.total(k.hugepages.defaultSize)
	return fmt.Sprintf("MemTotal:       %d kB\nMemFree:        %d kB\nMemAvailable:   %[2]d kB\nSwapTotal:             0 kB\nSwapFree:              0 kB\n"+
		"HugePages_Total:   %[3]d\nHugePages_Free:    %[3]d\nHugePages_Rsvd:        0\nHugePages_Surp:        0\n"+
		"Hugepagesize:    %[4]d kB\nHugetlb:         %[5]d kB\n",
		total, max(0, total*9/10-reserved), pages, k.hugepages.defaultSize, reserved)
}
