// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package topology

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// wholeInventory is a node of two NUMA nodes with all CPUs online.
func wholeInventory() *v1alpha1.Inventory {
	inventory := &v1alpha1.Inventory{
		Architecture: "amd64", ProcessorVendor: "Intel", ProcessorModel: "Xeon", OnlineCPUs: "0-7",
		Cores: []string{"0,4", "1,5", "2,6", "3,7"}, Packages: []string{"0-1,4-5", "2-3,6-7"}, L3Domains: []string{"0-1,4-5", "2-3,6-7"},
		NUMANodes: []v1alpha1.InventoryNUMANode{
			{ID: 0, CPUs: "0-1,4-5", MemoryBytes: new(int64(64)), Distances: []int32{10, 21}},
			{ID: 1, CPUs: "2-3,6-7", MemoryBytes: new(int64(64)), Distances: []int32{21, 10}},
		},
		NICs:                      []v1alpha1.InventoryNIC{{PCIAddress: "0000:3b:00.0", LocalCPUs: "0-1,4-5"}, {PCIAddress: "0000:af:00.0", LocalCPUs: "2-3,6-7"}},
		MaximumFrequencyKilohertz: 3000000,
	}
	inventory.Hash = inventoryHash(inventory)
	return inventory
}

// withoutThree is the same node as the kernel shows it when CPU 3 is offline.
func withoutThree() *v1alpha1.Inventory {
	inventory := wholeInventory()
	inventory.OnlineCPUs, inventory.OfflineCPUs = "0-2,4-7", "3"
	inventory.Cores = []string{"0,4", "1,5", "2,6", "7"}
	inventory.Packages[1], inventory.L3Domains[1] = "2,6-7", "2,6-7"
	inventory.NUMANodes[1].CPUs, inventory.NUMANodes[1].MemoryBytes = "2,6-7", new(int64(60))
	inventory.NICs[1].LocalCPUs = "2,6-7"
	inventory.KernelCommandLine = "quiet"
	inventory.Hash = inventoryHash(inventory)
	return inventory
}

func TestSettled(t *testing.T) {
	whole, all := wholeInventory(), cpus.Of(0, 1, 2, 3, 4, 5, 6, 7)
	settled := wholeInventory()
	settled.KernelCommandLine, settled.NUMANodes[1].MemoryBytes = "quiet", new(int64(60))
	settled.Hash = inventoryHash(settled)
	forgotten := withoutThree()
	forgotten.NUMANodes = forgotten.NUMANodes[:1]
	renewed := wholeInventory()
	renewed.KernelCommandLine = "quiet"
	renewed.Hash = inventoryHash(renewed)
	cases := map[string]struct {
		now, earlier *v1alpha1.Inventory
		counted      cpus.Set
		want         *v1alpha1.Inventory
	}{
		"a CPU of the plan is offline":          {withoutThree(), whole, all, settled},
		"it stays so":                           {withoutThree(), settled, all, settled},
		"its NUMA node went with it":            {forgotten, whole, all, renewed},
		"it is back":                            {whole, settled, all, whole},
		"all are online":                        {whole, whole, all, whole},
		"a CPU that no plan counts on":          {withoutThree(), whole, cpus.Of(0, 1, 2), nil},
		"nothing was reported before":           {withoutThree(), nil, all, nil},
		"it was offline before":                 {withoutThree(), withoutThree(), all, nil},
		"another processor":                     {withoutThree(), changed(whole, func(i *v1alpha1.Inventory) { i.ProcessorModel = "EPYC" }), all, nil},
		"another vendor":                        {withoutThree(), changed(whole, func(i *v1alpha1.Inventory) { i.ProcessorVendor = "AMD" }), all, nil},
		"another architecture":                  {withoutThree(), changed(whole, func(i *v1alpha1.Inventory) { i.Architecture = "arm64" }), all, nil},
		"a CPU was added at the same time":      {changed(withoutThree(), func(i *v1alpha1.Inventory) { i.OnlineCPUs = "0-2,4-8" }), whole, all, nil},
		"a CPU was unplugged":                   {changed(withoutThree(), func(i *v1alpha1.Inventory) { i.OfflineCPUs = "" }), whole, all, nil},
		"another one is offline, unasked for":   {changed(withoutThree(), func(i *v1alpha1.Inventory) { i.OnlineCPUs, i.OfflineCPUs = "0-2,4-6", "3,7" }), whole, cpus.Of(0, 1, 2, 3), nil},
		"nobody knows what is online":           {changed(withoutThree(), func(i *v1alpha1.Inventory) { i.OnlineCPUs = "" }), whole, all, nil},
		"nobody can read what was online":       {withoutThree(), changed(whole, func(i *v1alpha1.Inventory) { i.OnlineCPUs = "0-" }), all, nil},
		"one was offline and another one joins": {changed(withoutThree(), func(i *v1alpha1.Inventory) { i.OnlineCPUs, i.OfflineCPUs = "0-2,4-6", "3,7" }), withoutThree(), all, withoutThree()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := tc.want
			if want == nil {
				want = tc.now.DeepCopy()
			}
			kept := tc.now.DeepCopy()
			if diff := cmp.Diff(want, Settled(tc.now, tc.earlier, tc.counted)); diff != "" {
				t.Errorf("inventory (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(kept, tc.now); diff != "" {
				t.Errorf("what was read has changed:\n%s", diff)
			}
		})
	}
}

func changed(inventory *v1alpha1.Inventory, change func(*v1alpha1.Inventory)) *v1alpha1.Inventory {
	other := inventory.DeepCopy()
	change(other)
	return other
}
