// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import "testing"

func TestIsTransparentSwitch(t *testing.T) {
	const folder = "/sys/kernel/mm/transparent_hugepage/"
	for file, want := range map[string]bool{
		folder + "shmem_enabled":                 true,
		folder + "hugepages-64kB/enabled":        true,
		folder + "hugepages-64kB/shmem_enabled":  true,
		folder + "hugepages-64kB/stats":          false,
		folder + "enabled":                       false,
		folder + "khugepaged/defrag":             false,
		"/sys/module/zswap/parameters/enabled":   false,
		"/sys/kernel/mm/hugepages-64kB/enabled":  false,
		"/sys/kernel/mm/lru_gen/enabled":         false,
		"/sys/kernel/mm/numa/demotion_enabled":   false,
		"/sys/kernel/mm/transparent_hugepage_64": false,
	} {
		if got := isTransparentSwitch(file); got != want {
			t.Errorf("%s: %t, want %t", file, got, want)
		}
	}
}

// TestParseSwapsRefuses: sizes that are no numbers are not taken for none.
func TestParseSwapsRefuses(t *testing.T) {
	const heading = "Filename\tType\tSize\tUsed\tPriority\n"
	for line, wantError := range map[string]bool{
		"/dev/sda3 partition 8388604 4096 -2": false, "/dev/sda3 partition x 4096 -2": true, "/dev/sda3 partition 8388604 x -2": true, "/dev/sda3 partition": true,
	} {
		if _, err := parseSwaps(heading + line + "\n"); (err != nil) != wantError {
			t.Errorf("%s: %v, want an error: %t", line, err, wantError)
		}
	}
}
