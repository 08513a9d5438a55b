// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
)

// hardlySwaps is the largest vm.swappiness with which the kernel takes pages of files as long as it can
// (Documentation/admin-guide/sysctl/vm.rst; what TuneD's latency-performance sets).
const hardlySwaps = 10

// swapArea is a line of /proc/swaps (swap_show of mm/swapfile.c), in KiB.
type swapArea struct {
	name string
	used int64
}

// parseSwaps reads /proc/swaps: a heading, then name, type, size, used and priority of each area. A white space in a name
// is written as \040.
func parseSwaps(text string) ([]swapArea, error) {
	var areas []swapArea
	first := true
	for line := range strings.Lines(strings.TrimSpace(text)) {
		if first {
			first = false
			continue
		}
		fields := strings.Fields(line)
		if len(fields) < 5 {
			return nil, fmt.Errorf("a line with %d columns", len(fields))
		}
		// What was deleted while in use has one more word behind its name.
		numbers := fields[len(fields)-4:]
		_, sizeErr := strconv.ParseInt(numbers[1], 10, 64)
		used, usedErr := strconv.ParseInt(numbers[2], 10, 64)
		if sizeErr != nil || usedErr != nil {
			return nil, fmt.Errorf("sizes that are no numbers: %q and %q", numbers[1], numbers[2])
		}
		areas = append(areas, swapArea{fields[0], used})
	}
	return areas, nil
}

// swapIsUnused accepts a host without swap, and one with swap to which nothing was written and that would swap only as the
// last resort. Low vm.swappiness does not excuse what is swapped out: the kernel swaps at 0, too, when memory is short.
func swapIsUnused(s *state) verdict {
	const expected = "no swap"
	swaps := s.facts.Setting(settingSwaps)
	if swaps.Missing {
		return passed("the kernel was built without swap")
	}
	return judge(parseSetting(swaps, parseSwaps), expected, func(areas []swapArea) verdict {
		if len(areas) == 0 {
			return passed(expected)
		}
		var used int64
		names := make([]string, 0, len(areas))
		for _, area := range areas {
			used += area.used
			names = append(names, area.name)
		}
		if used > 0 {
			return failed(fmt.Sprintf("%s of memory is swapped out to %s", kibibytesText(used), enumerate(names)),
				fmt.Sprintf("%d KiB swapped out", used), expected).about(finding.OfFiles(settingSwaps))
		}
		return s.wouldHardlySwap(enumerate(names), expected)
	})
}

// wouldHardlySwap judges a host with swap that nothing was written to.
func (s *state) wouldHardlySwap(areas, expected string) verdict {
	expected += fmt.Sprintf(", or nothing swapped out and vm.swappiness of at most %d", hardlySwaps)
	return judge(parseSetting(s.facts.Setting(settingSwappiness), strconv.Atoi), expected, func(value int) verdict {
		observed := fmt.Sprintf("swap on %s, nothing swapped out, vm.swappiness %d", areas, value)
		if value <= hardlySwaps {
			return passed(observed)
		}
		return failed(fmt.Sprintf("the host can swap to %s, and vm.swappiness is %d", areas, value), observed, expected).
			about(finding.OfFiles(settingSwaps, settingSwappiness))
	})
}

// kibibytesText writes an amount in the largest unit of which there is at least one, rounded down.
func kibibytesText(kibibytes int64) string {
	switch {
	case kibibytes >= 1<<20:
		return fmt.Sprintf("%d GiB", kibibytes>>20)
	case kibibytes >= 1<<10:
		return fmt.Sprintf("%d MiB", kibibytes>>10)
	default:
		return fmt.Sprintf("%d KiB", kibibytes)
	}
}
