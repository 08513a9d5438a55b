// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"strconv"
)

const (
	nodeRoot     = "/sys/devices/system/node"
	hugepageRoot = "/sys/kernel/mm/hugepages"
	meminfoFile  = "/proc/meminfo"

	// maxHugepageSizes bounds the sizes of hugepages; arm64 has four.
	maxHugepageSizes = 64
)

func readNUMANodes(r *reader, f *Facts) {
	f.NUMANodes = each(r.numbered(nodeRoot, "node", "", maxNUMANodes), func(id int) NUMANode {
		folder := nodeRoot + "/node" + strconv.Itoa(id)
		return NUMANode{
			ID:               id,
			CPUs:             demand(r, r.set(folder+"/cpulist", folder+"/cpumap")...),
			Distances:        read(r, source[[]int]{folder + "/distance", parseDistances}),
			MemoryTotalBytes: read(r, source[int64]{folder + "/meminfo", parseMemory("MemTotal")}),
			Hugepages:        r.hugepages(folder + "/hugepages"),

			ForeignAllocations: read(r, source[uint64]{folder + "/numastat", parseNUMAStatistic("numa_foreign")}),
		}
	})
}

func readHugepages(r *reader, f *Facts) { f.Hugepages = r.hugepages(hugepageRoot) }

func readMemory(r *reader, f *Facts) {
	f.MemoryTotalBytes = read(r, source[int64]{meminfoFile, parseMemory("MemTotal")})
	readPageSize(r, f)
}

// hugepages reads the pools below a folder of the host or of a NUMA node.
func (r *reader) hugepages(dir string) []HugepagePool {
	const prefix, suffix = "hugepages-", "kB"
	return each(r.numbered(dir, prefix, suffix, maxHugepageSizes), func(size int) HugepagePool {
		file := dir + "/" + prefix + strconv.Itoa(size) + suffix + "/"
		return HugepagePool{
			SizeKibibytes: int64(size),
			Total:         r.numberFact(file + "nr_hugepages"),
			Free:          r.numberFact(file + "free_hugepages"),
			Surplus:       r.numberFact(file + "surplus_hugepages"),
		}
	})
}
