// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/setting"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// hugepageFolder holds the pools of the whole host.
const hugepageFolder = "/sys/kernel/mm/hugepages"

// hugepagesAreReserved judges each planned reservation on its NUMA node, and reservations that the
// kernel spreads by the sum over all and by the share of each NUMA node.
func hugepagesAreReserved(s *state) verdict {
	verdicts := make([]verdict, 0, len(s.plan.Hugepages))
	for _, want := range s.promised() {
		if want.numaNode == nil {
			verdicts = append(verdicts, poolHolds(s.facts.Hugepages, want, "the host", hugepageFolder))
			continue
		}
		verdicts = append(verdicts, s.nodeHolds(want))
	}
	for _, planned := range s.plan.Hugepages {
		if planned.NUMANode == nil && planned.Method == plan.ByKernelArgument {
			verdicts = append(verdicts, s.isSpread(planned)...)
		}
	}
	return worst(verdicts...)
}

// promise is a number of hugepages of one size on one NUMA node, or on the host.
type promise struct {
	size          v1alpha1.HugepageSize
	sizeKibibytes int64
	count         int64
	numaNode      *int
	// shareOf is the number of which count is the share of one NUMA node; 0 where it is no share.
	shareOf int64
}

// wanted ends the sentence about too few pages.
func (p promise) wanted() string {
	if p.shareOf > 0 {
		return fmt.Sprintf("and its share of the %d planned is %d", p.shareOf, p.count)
	}
	return fmt.Sprintf("planned are %d", p.count)
}

// promised adds up the planned hugepages by size and NUMA node; the host as a whole must hold the sum
// of all if some are spread.
func (s *state) promised() []promise {
	var promises []promise
	add := func(p plan.HugepagePlan, numaNode *int) {
		same := func(q promise) bool { return q.sizeKibibytes == p.SizeKibibytes && ptr.Equal(q.numaNode, numaNode) }
		i := slices.IndexFunc(promises, same)
		if i < 0 {
			i = len(promises)
			promises = append(promises, promise{size: p.Size, sizeKibibytes: p.SizeKibibytes, numaNode: numaNode})
		}
		promises[i].count += p.Count
	}
	for _, planned := range s.plan.Hugepages {
		if planned.NUMANode != nil {
			add(planned, planned.NUMANode)
		}
		add(planned, nil)
	}
	return promises
}

func (s *state) nodeHolds(want promise) verdict {
	path := fmt.Sprintf("/sys/devices/system/node/node%d/hugepages", *want.numaNode)
	for _, node := range s.facts.NUMANodes {
		if node.ID == *want.numaNode {
			return poolHolds(node.Hugepages, want, fmt.Sprintf("NUMA node %d", node.ID), path).about(finding.OfNUMANodes(node.ID))
		}
	}
	return unknown(path, "no such NUMA node", fmt.Sprintf("%d hugepages of %s", want.count, want.size)).
		about(finding.OfNUMANodes(*want.numaNode))
}

// isSpread judges pages that the kernel deals out to the NUMA nodes with memory in turn (for_each_node_mask_to_alloc of
// mm/hugetlb.c): each holds its share, rounded down.
func (s *state) isSpread(planned plan.HugepagePlan) []verdict {
	var nodes []*host.NUMANode
	for i := range s.facts.NUMANodes {
		if s.facts.NUMANodes[i].HasMemory() {
			nodes = append(nodes, &s.facts.NUMANodes[i])
		}
	}
	if len(nodes) < 2 {
		return nil
	}
	share := planned.Count / int64(len(nodes))
	var verdicts []verdict
	for _, node := range nodes {
		path := fmt.Sprintf("/sys/devices/system/node/node%d/hugepages", node.ID)
		place := fmt.Sprintf("NUMA node %d", node.ID)
		want := promise{size: planned.Size, sizeKibibytes: planned.SizeKibibytes, count: share, shareOf: planned.Count}
		verdicts = append(verdicts, poolHolds(node.Hugepages, want, place, path).about(finding.OfNUMANodes(node.ID)))
	}
	return verdicts
}

// poolHolds judges one pool. Surplus pages vanish when they are freed, so they do not count. A kernel that lists its sizes
// has no others.
func poolHolds(pools []host.HugepagePool, want promise, place, path string) verdict {
	expected := fmt.Sprintf("%s: %d hugepages of %s", place, want.count, want.size)
	for _, pool := range pools {
		if pool.SizeKibibytes != want.sizeKibibytes {
			continue
		}
		return judge(pool.Total, expected, func(total int64) verdict {
			total -= pool.Surplus.Value
			observed := fmt.Sprintf("%s: %d hugepages of %s", place, total, want.size)
			if total >= want.count {
				return passed(observed + ", " + freeText(pool.Free) + " free")
			}
			found := failed(fmt.Sprintf("%s holds %d hugepages of %s, %s", place, total, want.size, want.wanted()), observed, expected)
			found.reboot = plan.RebootForHugepages(want.sizeKibibytes)
			return found
		})
	}
	if len(pools) > 0 {
		return failed(fmt.Sprintf("the running kernel has no hugepages of %s, only of %s", want.size, sizesText(pools)), "", expected)
	}
	return unknown(fmt.Sprintf("%s/hugepages-%dkB", path, want.sizeKibibytes), "no such pool", expected)
}

// sizesText lists the sizes of pools.
func sizesText(pools []host.HugepagePool) string {
	texts := make([]string, len(pools))
	for i, pool := range pools {
		texts[i] = hugepageSizeText(pool.SizeKibibytes)
	}
	return strings.Join(texts, ", ")
}

// hugepageSizeText is a size as the API writes it: 2Mi.
func hugepageSizeText(kibibytes int64) string { return setting.SizeText(uint64(kibibytes)<<10) + "i" }

func freeText(free host.Fact[int64]) string {
	if count, ok := free.Get(); ok {
		return strconv.FormatInt(count, 10)
	}
	return "an unknown number"
}

// noOtherHugepages compares the pools of the host with the sum of what is planned. Where nothing is planned, hugepages are
// somebody else's business.
func noOtherHugepages(s *state) verdict {
	if len(s.plan.Hugepages) == 0 {
		return notApplicable()
	}
	if len(s.facts.Hugepages) == 0 {
		return unsaid(hugepageFolder, "no pool is listed", "no more hugepages than planned")
	}
	planned := map[int64]int64{}
	for _, pages := range s.plan.Hugepages {
		planned[pages.SizeKibibytes] += pages.Count
	}
	verdicts := make([]verdict, 0, len(s.facts.Hugepages))
	for _, pool := range s.facts.Hugepages {
		size, count := hugepageSizeText(pool.SizeKibibytes), planned[pool.SizeKibibytes]
		expected := fmt.Sprintf("%d hugepages of %s", count, size)
		verdicts = append(verdicts, judge(pool.Total, expected, func(total int64) verdict {
			total -= pool.Surplus.Value
			if total <= count {
				return passed(fmt.Sprintf("%d hugepages of %s", total, size))
			}
			return failed(fmt.Sprintf("the host holds %d hugepages of %s, planned are %d: %s of memory is taken unplanned",
				total, size, count, kibibytesText((total-count)*pool.SizeKibibytes)), fmt.Sprintf("%d hugepages of %s", total, size), expected).about(finding.OfFiles(pool.Total.Source))
		}))
	}
	return worst(verdicts...)
}
