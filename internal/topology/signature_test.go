// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package topology

import (
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// withNICs gives the host a card on NUMA node 1 with one virtual function.
func withNICs(f *host.Facts) *host.Facts {
	f.Processor.Vendor = known("Intel")
	f.NICs = []host.NIC{
		{PCIAddress: "0000:3b:00.0", Vendor: known("0x1924"), Device: known("0x0b03"), NUMANode: known(1)},
		{PCIAddress: "0000:3b:02.0", Vendor: known("0x1924"), Device: known("0x1b03"), PhysicalFunction: known("0000:3b:00.0")},
	}
	return f
}

// afterNoSMT is smtHost as it comes up with nosmt: CPUs 4-7 are offline and show no topology.
func afterNoSMT(t *testing.T) *host.Facts {
	t.Helper()
	var threads []thread
	for id := range 4 {
		members := []string{"0-1", "2-3"}[id/2]
		threads = append(threads, thread{
			id: id, pkg: id / 2, core: id % 2, siblings: cpus.Of(id).String(), pkgCPUs: members, l3: members,
		})
	}
	for id := 4; id < 8; id++ {
		threads = append(threads, thread{id: id, offline: true, noTopology: true})
	}
	return hostOf(t, map[int]string{0: "0-1", 1: "2-3"}, threads...)
}

func TestSignature(t *testing.T) {
	signature := func(t *testing.T, f *host.Facts) string {
		t.Helper()
		top, err := FromFacts(f)
		if err != nil {
			t.Fatal(err)
		}
		return top.Signature()
	}
	base := signature(t, withNICs(smtHost(t)))
	if len(base) < 8 {
		t.Fatalf("signature %q is shorter than 8 digits", base)
	}
	cases := map[string]struct {
		change   func(*host.Facts)
		facts    *host.Facts
		wantSame bool
	}{
		"another kernel": {wantSame: true, change: func(f *host.Facts) {
			f.Kernel = host.Kernel{Release: known("6.12"), CommandLine: known("isolcpus=1"), RealTime: known(true)}
		}},
		"another amount of memory and hugepages": {wantSame: true, change: func(f *host.Facts) {
			f.NUMANodes[0].MemoryTotalBytes = known[int64](7)
			f.NUMANodes[0].Hugepages = []host.HugepagePool{{SizeKibibytes: 2048, Total: known[int64](1), Free: known[int64](1)}}
		}},
		"booted with nosmt":        {wantSame: true, facts: withNICs(afterNoSMT(t))},
		"another virtual function": {wantSame: true, change: func(f *host.Facts) { f.NICs = f.NICs[:1] }},
		"another slot of the same NUMA node": {wantSame: true, change: func(f *host.Facts) {
			f.NICs[0].PCIAddress, f.NICs[1].PhysicalFunction = "0000:5e:00.0", known("0000:5e:00.0")
		}},
		"another model of the same vendor": {wantSame: true, change: func(f *host.Facts) { f.Processor.Model = known("Gold") }},
		"another vendor":                   {change: func(f *host.Facts) { f.Processor.Vendor = known("AMD") }},
		"another architecture":             {change: func(f *host.Facts) { f.Architecture = known("arm64") }},
		"the NIC on another NUMA node":     {change: func(f *host.Facts) { f.NICs[0].NUMANode = known(0) }},
		"the NIC on an unknown NUMA node":  {change: func(f *host.Facts) { f.NICs[0].NUMANode = host.Fact[int]{} }},
		"another NIC":                      {change: func(f *host.Facts) { f.NICs[0].Device = known("0x0a03") }},
		"no NIC":                           {change: func(f *host.Facts) { f.NICs = nil }},
		"an L3 cache per core": {change: func(f *host.Facts) {
			for i, cpu := range f.CPUs.List {
				f.CPUs.List[i].Caches[2].SharedCPUs = cpu.Siblings
			}
		}},
		"one package": {change: func(f *host.Facts) {
			for i := range f.CPUs.List {
				f.CPUs.List[i].PackageCPUs = known(cpus.Of(0, 1, 2, 3, 4, 5, 6, 7))
			}
		}},
		"one NUMA node": {change: func(f *host.Facts) { f.NUMANodes = nil }},
		"no SMT": {change: func(f *host.Facts) {
			for i, cpu := range f.CPUs.List {
				f.CPUs.List[i].Siblings = known(cpus.Of(cpu.ID))
			}
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := tc.facts
			if f == nil {
				f = withNICs(smtHost(t))
				tc.change(f)
			}
			if got := signature(t, f); (got == base) != tc.wantSame {
				t.Errorf("signature %s, before %s, want the same: %t", got, base, tc.wantSame)
			}
		})
	}
}
