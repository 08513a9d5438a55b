// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package importer

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cmdline"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/setting"
)

// hugepageReader reads hugepage arguments in their order, as the kernel does (mm/hugetlb.c): a hugepages=
// speaks of the hugepagesz= before it, or of the default size.
type hugepageReader struct {
	*converter
	// size of the last hugepagesz=; "" before the first one.
	size v1alpha1.HugepageSize
}

// hugepageArguments takes the hugepage arguments out and turns them into reservations.
func (c *converter) hugepageArguments(arguments []cmdline.Arg) []cmdline.Arg {
	reader := &hugepageReader{converter: c}
	readers := map[string]func(string) error{
		"default_hugepagesz": reader.defaultSize,
		"hugepagesz":         reader.pageSize,
		"hugepages":          reader.count,
	}
	var rest []cmdline.Arg
	for _, argument := range arguments {
		read, ok := readers[argument.Name]
		if !ok {
			rest = append(rest, argument)
			continue
		}
		if err := read(argument.Value); err != nil {
			c.remark(argumentsField, "%.80s was left out: %s.", argument.Text(), err)
			continue
		}
		c.remark(argumentsField, "%s became part of spec.memory.", argument.Text())
	}
	return rest
}

func (r *hugepageReader) defaultSize(text string) error {
	size, err := kernelSize(text)
	if err != nil {
		return err
	}
	r.spec.Memory.DefaultHugepageSize, r.size = size, size
	return nil
}

func (r *hugepageReader) pageSize(text string) error {
	size, err := kernelSize(text)
	r.size = size
	return err
}

// count reads "512", or "0:512,1:256" with a number for each NUMA node.
func (r *hugepageReader) count(text string) error {
	var reservations []v1alpha1.HugepageReservation
	for part := range strings.SplitSeq(text, ",") {
		reservation, err := r.reservation(part)
		if err != nil {
			return err
		}
		reservations = append(reservations, reservation)
	}
	if r.spec.Memory.DefaultHugepageSize == "" {
		r.spec.Memory.DefaultHugepageSize = "2Mi"
	}
	for _, reservation := range reservations {
		if reservation.Count > 0 {
			r.reserve(argumentsField, reservation)
		}
	}
	return nil
}

// reservation reads "512" or "0:512".
func (r *hugepageReader) reservation(text string) (v1alpha1.HugepageReservation, error) {
	// Without a size, the kernel means the default one of amd64, and of arm64 with pages of 4 KiB.
	reservation := v1alpha1.HugepageReservation{Size: cmp.Or(r.size, "2Mi")}
	node, count, found := strings.Cut(text, ":")
	if found {
		id, err := natural(node)
		if err != nil {
			return reservation, fmt.Errorf("%q is no NUMA node", node)
		}
		reservation.NUMANode = &id
	} else {
		count = text
	}
	pages, err := natural(count)
	if err != nil {
		return reservation, fmt.Errorf("%q is not a number of pages", count)
	}
	reservation.Count = pages
	return reservation, nil
}

// natural reads a number that is not negative.
func natural(text string) (int32, error) {
	number, err := strconv.ParseUint(text, 10, 31)
	return int32(number), err
}

// kernelSize reads a size as the kernel does.
func kernelSize(text string) (v1alpha1.HugepageSize, error) {
	bytes, ok := setting.Size(text)
	sizes := map[uint64]v1alpha1.HugepageSize{
		64: "64Ki", 2 << 10: "2Mi", 32 << 10: "32Mi", 512 << 10: "512Mi", 1 << 20: "1Gi", 16 << 20: "16Gi",
	}
	if size, known := sizes[bytes>>10]; ok && known && bytes%1024 == 0 {
		return size, nil
	}
	return "", fmt.Errorf("%q is no size of hugepages", text)
}
