// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"k8s.io/apimachinery/pkg/api/resource"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// HugepageSupply says whether the kernel has free hugepages of every size that a pool reserves left on the NUMA node of a
// NIC (free_hugepages; kernel: Documentation/admin-guide/mm/hugetlbpage.rst); "" for a pool that reserves none. The kubelet
// counts what it promised to pods, and not what programs beside it took.
func HugepageSupply(spec *v1alpha1.BypassNICPoolSpec, nic *host.NIC, facts *host.Facts) v1alpha1.HugepageSupply {
	if len(spec.Hugepages) == 0 {
		return ""
	}
	id, known := nic.NUMANode.Get()
	if !known {
		return v1alpha1.HugepagesUnknown
	}
	supply := v1alpha1.HugepagesLeft
	for _, wanted := range spec.Hugepages {
		switch free := freePages(facts, id, wanted.Size); {
		case free.Known && free.Value == 0:
			return v1alpha1.HugepagesExhausted
		case !free.Known:
			supply = v1alpha1.HugepagesUnknown
		}
	}
	return supply
}

// freePages are the free hugepages of a size on a NUMA node.
func freePages(facts *host.Facts, node int, size v1alpha1.HugepageSize) host.Fact[int64] {
	const kibibyte = 1024
	bytes, err := resource.ParseQuantity(string(size))
	if err != nil {
		return host.Absent[int64]("spec.hugepages", err.Error())
	}
	for i := range facts.NUMANodes {
		if facts.NUMANodes[i].ID != node {
			continue
		}
		for _, pool := range facts.NUMANodes[i].Hugepages {
			if pool.SizeKibibytes*kibibyte == bytes.Value() {
				return pool.Free
			}
		}
	}
	return host.Absent[int64]("free_hugepages", "there is no pool of that size")
}
