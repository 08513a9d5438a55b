// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package topology

import (
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

func list(t *testing.T, text string) cpus.Set {
	t.Helper()
	set, err := cpus.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func cpusSets(t *testing.T, texts ...string) []cpus.Set {
	t.Helper()
	return each(texts, func(text string) cpus.Set { return list(t, text) })
}

func known[T any](value T) host.Fact[T] { return host.Known(value, "test") }

// thread is one CPU of a test host. Siblings of "" mean an offline CPU or one without the file.
type thread struct {
	id                    int
	pkg, die, core        int
	siblings, pkgCPUs     string
	l3                    string
	offline               bool
	noPackage, noTopology bool
}

func (th thread) facts(t *testing.T) host.CPU {
	t.Helper()
	cpu := host.CPU{ID: th.id, Online: known(!th.offline)}
	if th.noTopology {
		return cpu
	}
	cpu.Core, cpu.Die = known(th.core), known(th.die)
	if !th.noPackage {
		cpu.Package = known(th.pkg)
	}
	if th.siblings != "" {
		cpu.Siblings = known(list(t, th.siblings))
	}
	if th.pkgCPUs != "" {
		cpu.PackageCPUs = known(list(t, th.pkgCPUs))
	}
	cpu.Caches = []host.Cache{
		{Level: known(1), Type: known("Instruction"), SharedCPUs: known(cpus.Of(th.id))},
		{Level: known(2), Type: known("Unified"), SharedCPUs: known(cpus.Of(th.id))},
	}
	if th.l3 != "" {
		cpu.Caches = append(cpu.Caches, host.Cache{Level: known(3), Type: known("Unified"), SharedCPUs: known(list(t, th.l3))})
	}
	return cpu
}

func hostOf(t *testing.T, nodes map[int]string, threads ...thread) *host.Facts {
	t.Helper()
	f := &host.Facts{Architecture: known("amd64")}
	for _, th := range threads {
		f.CPUs.List = append(f.CPUs.List, th.facts(t))
	}
	for id := range 1024 {
		if text, ok := nodes[id]; ok {
			f.NUMANodes = append(f.NUMANodes, host.NUMANode{ID: id, CPUs: known(list(t, text))})
		}
	}
	return f
}

// smtHost has two packages of two cores with two threads, numbered as Linux does, one NUMA node and
// one L3 cache each.
func smtHost(t *testing.T) *host.Facts {
	t.Helper()
	threads := make([]thread, 8)
	for id := range threads {
		core := id % 4
		first := core / 2 * 2
		members := fmt.Sprintf("%d-%d,%d-%d", first, first+1, first+4, first+5)
		threads[id] = thread{
			id: id, pkg: core / 2, core: core % 2, siblings: fmt.Sprintf("%d,%d", core, core+4), pkgCPUs: members, l3: members,
		}
	}
	return hostOf(t, map[int]string{0: "0-1,4-5", 1: "2-3,6-7"}, threads...)
}

// describe prints the sets of a topology in one comparable value.
func describe(t *Topology) map[string][]string {
	out := map[string][]string{
		"cpus": {"online " + t.Online.String(), "offline " + t.Offline.String(), "present " + t.Present.String()},
	}
	for _, c := range t.Cores {
		out["cores"] = append(out["cores"], fmt.Sprintf("%s node %d package %d l3 %d", c.CPUs, c.NUMANode, c.Package, c.L3))
	}
	for _, p := range t.Packages {
		out["packages"] = append(out["packages"], p.String())
	}
	for _, d := range t.L3Domains {
		out["l3"] = append(out["l3"], d.String())
	}
	for _, n := range t.NUMANodes {
		out["nodes"] = append(out["nodes"], fmt.Sprintf("%d: %s", n.ID, n.CPUs))
	}
	return out
}

// layoutCase is a host and the sets that its topology has.
type layoutCase struct {
	facts *host.Facts
	want  map[string][]string
}

// ordinaryLayouts have every fact, or those that offline CPUs still have.
func ordinaryLayouts(t *testing.T) map[string]layoutCase {
	t.Helper()
	return map[string]layoutCase{
		"two sockets with SMT": {
			facts: smtHost(t),
			want: map[string][]string{
				"cpus": {"online 0-7", "offline ", "present 0-7"},
				"cores": {
					"0,4 node 0 package 0 l3 0", "1,5 node 0 package 0 l3 0",
					"2,6 node 1 package 1 l3 1", "3,7 node 1 package 1 l3 1",
				},
				"packages": {"0-1,4-5", "2-3,6-7"},
				"l3":       {"0-1,4-5", "2-3,6-7"},
				"nodes":    {"0: 0-1,4-5", "1: 2-3,6-7"},
			},
		},
		"nosmt: offline siblings have no topology and are in no core": {
			facts: hostOf(t, map[int]string{0: "0-1"},
				thread{id: 0, core: 0, siblings: "0"}, thread{id: 1, core: 1, siblings: "1"},
				thread{id: 2, offline: true, noTopology: true}, thread{id: 3, offline: true, noTopology: true}),
			want: map[string][]string{
				"cpus":     {"online 0-1", "offline 2-3", "present 0-3"},
				"cores":    {"0 node 0 package 0 l3 -1", "1 node 0 package 0 l3 -1"},
				"packages": {"0-1"},
				"nodes":    {"0: 0-1"},
			},
		},
		"offline CPU that keeps its topology joins its core and package": {
			facts: hostOf(t, map[int]string{0: "0-3"},
				thread{id: 0, core: 0, siblings: "0"}, thread{id: 1, core: 1, siblings: "1,3", l3: "0-3"},
				thread{id: 2, core: 0, offline: true}, thread{id: 3, core: 1, siblings: "1,3"}),
			want: map[string][]string{
				"cpus":     {"online 0-1,3", "offline 2", "present 0-3"},
				"cores":    {"0,2 node 0 package 0 l3 0", "1,3 node 0 package 0 l3 0"},
				"packages": {"0-3"},
				"l3":       {"0-1,3"},
				"nodes":    {"0: 0-1,3"},
			},
		},
		"offline CPU whose core identifier repeats in the package joins no core": {
			facts: hostOf(t, map[int]string{0: "0-1"},
				thread{id: 0, core: 0, siblings: "0"}, thread{id: 1, core: 0, siblings: "1"},
				thread{id: 2, core: 0, offline: true}),
			want: map[string][]string{
				"cpus":     {"online 0-1", "offline 2", "present 0-2"},
				"cores":    {"0 node 0 package 0 l3 -1", "1 node 0 package 0 l3 -1"},
				"packages": {"0-2"},
				"nodes":    {"0: 0-1"},
			},
		},
		"lists with CPUs that are not present": {
			facts: hostOf(t, map[int]string{0: "0-1,9"},
				thread{id: 0, siblings: "0,8", pkgCPUs: "0-15", l3: "0-15"}, thread{id: 1, siblings: "1,9", pkgCPUs: "0-15", l3: "0-15"}),
			want: map[string][]string{
				"cpus":     {"online 0-1", "offline ", "present 0-1"},
				"cores":    {"0 node 0 package 0 l3 0", "1 node 0 package 0 l3 0"},
				"packages": {"0-1"},
				"l3":       {"0-1"},
				"nodes":    {"0: 0-1"},
			},
		},
	}
}

// oddLayouts repeat or lack numbers.
func oddLayouts(t *testing.T) map[string]layoutCase {
	t.Helper()
	return map[string]layoutCase{
		"core identifiers that repeat across dies and packages": {
			facts: hostOf(t, map[int]string{0: "0-1", 1: "2-3"},
				thread{id: 0, pkg: 0, die: 0, core: 0, siblings: "0"}, thread{id: 1, pkg: 0, die: 1, core: 0, siblings: "1"},
				thread{id: 2, pkg: 1, die: 0, core: 0, siblings: "2"}, thread{id: 3, pkg: 1, die: 1, core: 0, siblings: "3"}),
			want: map[string][]string{
				"cpus": {"online 0-3", "offline ", "present 0-3"},
				"cores": {
					"0 node 0 package 0 l3 -1", "1 node 0 package 0 l3 -1",
					"2 node 1 package 1 l3 -1", "3 node 1 package 1 l3 -1",
				},
				"packages": {"0-1", "2-3"},
				"nodes":    {"0: 0-1", "1: 2-3"},
			},
		},
		"siblings with core identifiers of their own are compute units of AMD": {
			facts: hostOf(t, map[int]string{0: "0-3,9"},
				thread{id: 0, core: 0, siblings: "0-1"}, thread{id: 1, core: 1, siblings: "0-1"},
				thread{id: 2, core: 2, siblings: "2-3"}, thread{id: 3, core: 2, siblings: "2-3"}),
			want: map[string][]string{
				"cpus": {"online 0-3", "offline ", "present 0-3"},
				"cores": {
					"0 node 0 package 0 l3 -1", "1 node 0 package 0 l3 -1", "2-3 node 0 package 0 l3 -1",
				},
				"packages": {"0-3"},
				"nodes":    {"0: 0-3"},
			},
		},
		"package numbers that repeat are told apart by the list of the package's CPUs": {
			facts: hostOf(t, map[int]string{0: "0-1"},
				thread{id: 0, siblings: "0", pkgCPUs: "0"}, thread{id: 1, siblings: "1", pkgCPUs: "1"}),
			want: map[string][]string{
				"cpus":     {"online 0-1", "offline ", "present 0-1"},
				"cores":    {"0 node 0 package 0 l3 -1", "1 node 0 package 1 l3 -1"},
				"packages": {"0", "1"},
				"nodes":    {"0: 0-1"},
			},
		},
		"several L3 caches in a NUMA node, sparse node numbers, a memory-only node": {
			facts: hostOf(t, map[int]string{0: "0-3", 2: "", 33: "4-5"},
				thread{id: 0, core: 0, siblings: "0", l3: "0-1"}, thread{id: 1, core: 1, siblings: "1", l3: "0-1"},
				thread{id: 2, core: 2, siblings: "2", l3: "2-3"}, thread{id: 3, core: 3, siblings: "3", l3: "2-3"},
				thread{id: 4, core: 4, siblings: "4", l3: "4-5"}, thread{id: 5, core: 5, siblings: "5", l3: "4-5"}),
			want: map[string][]string{
				"cpus": {"online 0-5", "offline ", "present 0-5"},
				"cores": {
					"0 node 0 package 0 l3 0", "1 node 0 package 0 l3 0", "2 node 0 package 0 l3 1",
					"3 node 0 package 0 l3 1", "4 node 33 package 0 l3 2", "5 node 33 package 0 l3 2",
				},
				"packages": {"0-5"},
				"l3":       {"0-1", "2-3", "4-5"},
				"nodes":    {"0: 0-3", "2: ", "33: 4-5"},
			},
		},
		"a NUMA node that is offline while its CPUs run": {
			facts: hostOf(t, map[int]string{1: "1"}, thread{id: 0, siblings: "0"}, thread{id: 1, core: 1, siblings: "1"}),
			want: map[string][]string{
				"cpus":     {"online 0-1", "offline ", "present 0-1"},
				"cores":    {"0 node -1 package 0 l3 -1", "1 node 1 package 0 l3 -1"},
				"packages": {"0-1"},
				"nodes":    {"1: 1"},
			},
		},
		"no topology, no NUMA": {
			facts: hostOf(t, nil, thread{id: 0, noTopology: true}, thread{id: 1, noTopology: true}),
			want: map[string][]string{
				"cpus":  {"online 0-1", "offline ", "present 0-1"},
				"nodes": {"0: 0-1"},
			},
		},
		"a package without number": {
			facts: hostOf(t, nil, thread{id: 7, siblings: "7", noPackage: true}),
			want: map[string][]string{
				"cpus":  {"online 7", "offline ", "present 7"},
				"cores": {"7 node 0 package -1 l3 -1"},
				"nodes": {"0: 7"},
			},
		},
	}
}

func TestFromFactsLayout(t *testing.T) {
	cases := ordinaryLayouts(t)
	maps.Copy(cases, oddLayouts(t))
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := FromFacts(tc.facts)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, describe(got)); diff != "" {
				t.Errorf("layout (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFromFactsPrefersTheKernelsLists(t *testing.T) {
	f := hostOf(t, map[int]string{0: "0-1"}, thread{id: 0, siblings: "0"}, thread{id: 1, siblings: "1"})
	f.CPUs.Present, f.CPUs.Online = known(list(t, "0-3")), known(list(t, "0"))
	f.CPUs.Offline = known(list(t, "1-63"))
	got, err := FromFacts(f)
	if err != nil {
		t.Fatal(err)
	}
	if got.Present.String() != "0-3" || got.Online.String() != "0" || got.Offline.String() != "1-3" {
		t.Errorf("present %s, online %s, offline %s; offline CPUs must be present ones", got.Present, got.Online, got.Offline)
	}
}

func TestFromFactsValues(t *testing.T) {
	f := smtHost(t)
	f.Processor = host.Processor{Vendor: known("Intel"), Model: known(strings.Repeat("é", 200)), Hypervisor: known("KVM"),
		Family: known(6), ModelNumber: known(106)}
	f.Kernel = host.Kernel{Release: known("5.14.0-570.rt"), RealTime: known(true), CommandLine: known("quiet nosmt")}
	f.CPUs.List[0].Frequency = host.Frequency{HardwareMinimum: known[int64](800000), HardwareMaximum: known[int64](3000000)}
	f.CPUs.List[1].Frequency = host.Frequency{HardwareMinimum: known[int64](1000000), HardwareMaximum: known[int64](3900000)}
	f.CPUs.List[2].Frequency = host.Frequency{HardwareMinimum: known[int64](700000), HardwareMaximum: known[int64](3100000)}
	f.NUMANodes[0].MemoryTotalBytes = known[int64](1 << 30)
	f.NUMANodes[0].Distances = known([]int{10, 21})
	f.NUMANodes[1].Distances = known([]int{21, 10, 30})
	f.NUMANodes[0].Hugepages = []host.HugepagePool{
		{SizeKibibytes: 2048, Total: known[int64](400), Free: known[int64](390)},
		{SizeKibibytes: 1048576, Total: known[int64](4)},
	}
	f.NICs = []host.NIC{
		{
			PCIAddress: "0000:af:00.0", Name: known("ens1f0"), NUMANode: known(1), LocalCPUs: known(list(t, "2-3,6-7")),
			MaximumVirtualFunctions: known(16),
		},
		{PCIAddress: "0000:3b:00.0", NUMANode: host.Absent[int]("numa_node", "the firmware reports -1"), PhysicalFunction: known("0000:3b:00.1")},
	}
	f.Bypass.Networks = known([]host.Route{{Destination: netip.MustParsePrefix("::/0"), Interface: "ens1f0"}})
	got, err := FromFacts(f)
	if err != nil {
		t.Fatal(err)
	}
	one := 1
	want := &Topology{
		Architecture: "amd64", Vendor: "Intel", Model: strings.Repeat("é", 128), Hypervisor: "KVM",
		Family: 6, ModelNumber: 106,
		KernelRelease: "5.14.0-570.rt", KernelRealTime: new(true), CommandLine: "quiet nosmt",
		Online: list(t, "0-7"), Present: list(t, "0-7"),
		Cores: got.Cores, Packages: got.Packages, L3Domains: got.L3Domains,
		NUMANodes: []NUMANode{
			{
				ID: 0, CPUs: list(t, "0-1,4-5"), MemoryBytes: new(int64(1 << 30)), Distances: []int{10, 21},
				HugepageSizes: []int64{2048, 1048576},
				Hugepages:     []HugepagePool{{SizeKibibytes: 2048, Total: 400, Free: 390}},
			},
			{ID: 1, CPUs: list(t, "2-3,6-7")},
		},
		NICs: []NIC{
			{PCIAddress: "0000:3b:00.0", PhysicalFunction: "0000:3b:00.1"},
			{PCIAddress: "0000:af:00.0", Name: "ens1f0", NUMANode: &one, LocalCPUs: list(t, "2-3,6-7"), MaximumVirtualFunctions: 16, Management: "the default route"},
		},
		MinimumFrequency: 700000, MaximumFrequency: 3900000,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFromFactsWithoutNUMA(t *testing.T) {
	f := hostOf(t, nil, thread{id: 0, siblings: "0"}, thread{id: 1, offline: true})
	f.Hugepages = []host.HugepagePool{{SizeKibibytes: 2048, Total: known[int64](8), Free: known[int64](2)}}
	f.MemoryTotalBytes = known[int64](4096)
	got, err := FromFacts(f)
	if err != nil {
		t.Fatal(err)
	}
	want := []NUMANode{{
		CPUs: list(t, "0"), MemoryBytes: new(int64(4096)), HugepageSizes: []int64{2048},
		Hugepages: []HugepagePool{{SizeKibibytes: 2048, Total: 8, Free: 2}},
	}}
	if diff := cmp.Diff(want, got.NUMANodes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.HasNUMA() {
		t.Error("a host without NUMA must not have NUMA")
	}
}

func TestFromFactsRefusesContradictions(t *testing.T) {
	pair := []thread{{id: 0, siblings: "0"}, {id: 1, siblings: "1"}}
	cases := map[string]struct {
		facts *host.Facts
		want  []string
	}{
		"nothing online": {
			facts: hostOf(t, nil, thread{id: 0, offline: true}),
			want:  []string{"/sys/devices/system/cpu/online names no online CPU"},
		},
		"online CPU that is not present": {
			facts: func() *host.Facts {
				f := hostOf(t, nil, pair...)
				f.CPUs.Online, f.CPUs.Present = known(list(t, "0-2")), known(list(t, "0-1"))
				return f
			}(),
			want: []string{"/sys/devices/system/cpu/online lists CPUs 2", "/sys/devices/system/cpu/present"},
		},
		"CPU in two NUMA nodes": {
			facts: hostOf(t, map[int]string{0: "0-1", 1: "1"}, pair...),
			want:  []string{"CPU 1", "NUMA nodes 0 and 1", "node0/cpulist", "node1/cpulist", "numa=fake"},
		},
		"NUMA node that cannot be read": {
			facts: func() *host.Facts {
				f := hostOf(t, map[int]string{0: "0-1"}, pair...)
				f.NUMANodes[0].CPUs = host.Absent[cpus.Set]("x", "permission denied")
				return f
			}(),
			want: []string{"/sys/devices/system/node/node0/cpulist", "permission denied"},
		},
		"siblings that disagree": {
			facts: hostOf(t, nil, thread{id: 0, siblings: "0-1"}, thread{id: 1, siblings: "1"}),
			want:  []string{"CPU 1", "core", "cpu0/topology/thread_siblings_list", "cpu1/topology/thread_siblings_list"},
		},
		"siblings in two NUMA nodes": {
			facts: hostOf(t, map[int]string{0: "0", 1: "1"}, thread{id: 0, siblings: "0-1"}, thread{id: 1, siblings: "0-1"}),
			want:  []string{"CPUs 0 and 1 share a core", "NUMA nodes 0 and 1"},
		},
		"packages that overlap": {
			facts: hostOf(t, nil, thread{id: 0, siblings: "0", pkgCPUs: "0-1"}, thread{id: 1, siblings: "1", pkgCPUs: "1"}),
			want:  []string{"CPU 1", "package", "core_siblings_list"},
		},
		"L3 caches that overlap": {
			facts: hostOf(t, nil, thread{id: 0, siblings: "0", l3: "0-1"}, thread{id: 1, siblings: "1", l3: "1"}),
			want:  []string{"CPU 1", "L3 cache", "cache/index*/shared_cpu_list"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := FromFacts(tc.facts)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
}
