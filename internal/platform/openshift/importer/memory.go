// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package importer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// hugepageSizes are the sizes of a PerformanceProfile, which are written as on the kernel command line.
func hugepageSizes() map[string]v1alpha1.HugepageSize {
	return map[string]v1alpha1.HugepageSize{
		"64k": "64Ki", "2M": "2Mi", "32M": "32Mi", "512M": "512Mi", "1G": "1Gi", "16G": "16Gi",
	}
}

// memory converts spec.hugepages and spec.kernelPageSize. Transparent hugepages are off under every
// PerformanceProfile; it leaves KSM alone.
func (c *converter) memory() error {
	c.spec.Memory = v1alpha1.MemorySpec{
		TransparentHugepages: v1alpha1.ActivityDisabled,
		SamePageMerging:      v1alpha1.ActivityKept,
	}
	if err := c.kernelPageSize(); err != nil {
		return err
	}
	source := c.source.Spec.HugePages
	if source == nil {
		return nil
	}
	if source.DefaultHugepagesSize != nil {
		size, err := hugepageSize("spec.hugepages.defaultHugepagesSize", *source.DefaultHugepagesSize)
		if err != nil {
			return err
		}
		c.spec.Memory.DefaultHugepageSize = size
	} else if len(source.Pages) > 0 {
		return invalid("spec.hugepages.defaultHugepagesSize", "it must be set when spec.hugepages.pages is set")
	}
	for i, page := range source.Pages {
		if err := c.hugepages(fmt.Sprintf("spec.hugepages.pages[%d]", i), page); err != nil {
			return err
		}
	}
	return nil
}

func (c *converter) kernelPageSize() error {
	switch size := ptr.Deref(c.source.Spec.KernelPageSize, "4k"); size {
	case "4k":
		c.spec.Memory.KernelPageSize = v1alpha1.PageSize4Ki
	case "64k":
		c.spec.Memory.KernelPageSize = v1alpha1.PageSize64Ki
	default:
		return invalid("spec.kernelPageSize", "%q is neither 4k nor 64k", size)
	}
	return nil
}

// hugepages converts one element of spec.hugepages.pages.
func (c *converter) hugepages(field string, page sourceHugepageSize) error {
	size, err := hugepageSize(field+".size", page.Size)
	if err != nil {
		return err
	}
	if page.Count <= 0 {
		c.remark(field+".count", "%d pages are no reservation; it was left out.", page.Count)
		return nil
	}
	c.reserve(field, v1alpha1.HugepageReservation{Size: size, Count: page.Count, NUMANode: page.Node})
	return nil
}

// reserve adds a reservation, unless there is one of the same size and place: the kernel ignores the second.
func (c *converter) reserve(field string, reservation v1alpha1.HugepageReservation) {
	if reservation.NUMANode == nil {
		reservation.Placement = v1alpha1.HugepagesSpread
	}
	for _, other := range c.spec.Memory.Hugepages {
		if other.Size == reservation.Size && ptr.Equal(other.NUMANode, reservation.NUMANode) {
			c.remark(field, "pages of size %s are reserved in the same place before; %d pages were left out.", reservation.Size, reservation.Count)
			return
		}
	}
	c.spec.Memory.Hugepages = append(c.spec.Memory.Hugepages, reservation)
}

func hugepageSize(field, text string) (v1alpha1.HugepageSize, error) {
	sizes := hugepageSizes()
	if size, ok := sizes[text]; ok {
		return size, nil
	}
	return "", invalid(field, "%q is none of the sizes %s", text, strings.Join(slices.Sorted(maps.Keys(sizes)), ", "))
}

// isARM64 reports whether the profile can only be meant for arm64: by the size of its pages.
func (c *converter) isARM64() bool {
	amd64 := []v1alpha1.HugepageSize{"", "2Mi", "1Gi"}
	memory := c.spec.Memory
	return memory.KernelPageSize == v1alpha1.PageSize64Ki || !slices.Contains(amd64, memory.DefaultHugepageSize) ||
		slices.ContainsFunc(memory.Hugepages, func(h v1alpha1.HugepageReservation) bool {
			return !slices.Contains(amd64, h.Size)
		})
}
