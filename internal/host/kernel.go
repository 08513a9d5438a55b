// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"errors"
	"fmt"
	"strings"
)

const (
	versionFile = "/proc/version"
	smapsFile   = "/proc/self/smaps"
)

func readKernel(r *reader, f *Facts) {
	f.Name = r.nameFact("/proc/sys/kernel/hostname")
	f.Kernel.Release = read(r,
		source[string]{"/proc/sys/kernel/osrelease", parseRelease},
		source[string]{versionFile, parseVersion},
	)
	f.Kernel.RealTime = read(r,
		source[bool]{"/sys/kernel/realtime", parseSwitch},
		source[bool]{versionFile, parseRealTime},
	)
	f.Kernel.CommandLine = read(r, source[string]{"/proc/cmdline", parseCommandLine})
}

func parseRelease(text string) (string, error) {
	if text == "" || strings.ContainsAny(text, " \t\n") {
		return "", fmt.Errorf("not a kernel release: %q", abbreviate(text))
	}
	return text, nil
}

// parseVersion takes the release out of "Linux version 6.1.0 (builder) …".
func parseVersion(text string) (string, error) {
	fields := strings.Fields(text)
	if len(fields) < 3 || fields[0] != "Linux" || fields[1] != "version" {
		return "", fmt.Errorf("not a kernel version: %q", abbreviate(text))
	}
	return fields[2], nil
}

// parseRealTime looks for the word that kernels with PREEMPT_RT have in their version
// (init/Makefile, scripts/mkcompile_h), with an underscore since 5.4.
func parseRealTime(text string) (bool, error) {
	if _, err := parseVersion(text); err != nil {
		return false, err
	}
	return strings.Contains(text, "PREEMPT_RT") || strings.Contains(text, "PREEMPT RT"), nil
}

// parseCommandLine reads the one line of /proc/cmdline.
func parseCommandLine(text string) (string, error) {
	if strings.ContainsAny(text, "\n\r") {
		return "", errors.New("more than one line")
	}
	return text, nil
}

// readPageSize concludes the base page from the architecture where that tells. Only elsewhere it asks
// a mapping of our own process: the kernel walks its page tables to answer that.
func readPageSize(r *reader, f *Facts) {
	switch f.Architecture.Value {
	case "amd64":
		// x86-64 has no other base page (Intel SDM volume 3, chapter on paging).
		f.Kernel.PageSizeBytes = Known[int64](4<<10, f.Architecture.Source)
	case "arm64":
		f.Kernel.PageSizeBytes = arm64PageSize(f.Hugepages)
	}
	if !f.Kernel.PageSizeBytes.Known {
		f.Kernel.PageSizeBytes = r.pageSizeOfMapping()
	}
}

// pageSizeOfMapping reads the first KernelPageSize of smaps. The rest, addresses and sizes of our own
// memory, concerns nobody, so only that line goes into a snapshot.
func (r *reader) pageSizeOfMapping() Fact[int64] {
	const key = "KernelPageSize"
	text, err := r.peek(smapsFile, smallFile)
	if err != nil {
		r.taken.file(smapsFile, "", err)
		return Absent[int64](smapsFile, reasonOf(err))
	}
	bytes, err := parseMemory(key)(text)
	if err != nil {
		r.taken.replace(smapsFile, "")
		return Absent[int64](smapsFile, err.Error())
	}
	r.taken.replace(smapsFile, fmt.Sprintf("%s: %d kB\n", key, bytes>>10))
	return Known(bytes, smapsFile)
}

// arm64PageSize concludes the base page from the sizes of hugepages, which differ for each: contiguous
// and block mappings are 64 KiB, 2 MiB, 32 MiB and 1 GiB with base pages of 4 KiB; 2 MiB, 32 MiB and 1 GiB
// with 16 KiB; 2 MiB, 512 MiB and 16 GiB with 64 KiB (Documentation/arch/arm64/hugetlbpage.rst).
func arm64PageSize(pools []HugepagePool) Fact[int64] {
	const mebibyte = 1 << 10
	telling := map[int64]int64{64: 4 << 10, 512 * mebibyte: 64 << 10}
	for _, pool := range pools {
		if size, ok := telling[pool.SizeKibibytes]; ok {
			return Known(size, hugepageRoot)
		}
	}
	return Absent[int64](hugepageRoot, reasonMissing)
}
