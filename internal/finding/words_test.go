// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package finding

import (
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

func TestWords(t *testing.T) {
	interrupts := func(ids ...string) Objects {
		var o Objects
		for _, id := range ids {
			o.Interrupts = append(o.Interrupts, v1alpha1.Interrupt{ID: id})
		}
		return o
	}
	for name, tc := range map[string]struct {
		objects       Objects
		words, beside string
	}{
		"nothing":          {Objects{}, "", ""},
		"files alone":      {OfFiles("/a", "/b"), "", ""},
		"CPUs alone":       {OfCPUs(cpus.Of(2, 3, 5)), "CPUs 2-3,5", ""},
		"a CPU":            {OfCPUs(cpus.Of(2)), "CPU 2", ""},
		"an interrupt":     {Union(OfCPUs(cpus.Of(2)), interrupts("8")), "CPU 2 · interrupt 8", "CPU 2 · interrupt 8"},
		"four interrupts":  {interrupts("8", "9", "NMI", "LOC"), "interrupts 8, 9, NMI, LOC", "interrupts 8, 9, NMI, LOC"},
		"five interrupts":  {interrupts("1", "2", "3", "4", "5"), "5 interrupts", "5 interrupts"},
		"what is unlisted": {Objects{CPUs: cpus.Of(1), Unlisted: v1alpha1.ObjectCounts{CPUs: 6, NICs: 2}}, "CPUs 1 and 6 more · 2 NICs", "CPUs 1 and 6 more · 2 NICs"},
		"the others": {
			Objects{NICs: []string{"a"}, NUMANodes: []int32{0, 1}, Processes: []v1alpha1.Process{{PID: 7, Name: "x"}, {PID: 8, Name: "y"}}, Containers: []string{"n/p/c"}},
			"NIC a · NUMA nodes 0, 1 · processes x (7), y (8) · container n/p/c", "NIC a · NUMA nodes 0, 1 · processes x (7), y (8) · container n/p/c",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.objects.Words(); got != tc.words {
				t.Errorf("words %q, want %q", got, tc.words)
			}
			if got := tc.objects.Beside(); got != tc.beside {
				t.Errorf("beside %q, want %q", got, tc.beside)
			}
		})
	}
}
