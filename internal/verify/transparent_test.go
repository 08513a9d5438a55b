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
